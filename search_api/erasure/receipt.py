"""What an erasure says of itself, signed. Pure. It holds ids, counts and times, never a text."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

import msgspec

#: Signed text begins with it, so that no other text of the installation can pass for a receipt.
_CONTEXT: Final = b"hopline erasure receipt 1\n"
#: Under which the installation's secret gives the key of receipts.
KEY_LABEL: Final = "erasure-receipt"


class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`removed`: rows and files that there were; `remaining`: what was found afterwards, all zero when it is done.

    `log_expires_at`: by then the last log segment that may hold the text is deleted (topics' retention).
    """

    erasure_id: str
    tenant_id: str
    requested_by: str
    requested_at: str
    completed_at: str
    doc_ids: list[str]
    removed: dict[str, int]
    remaining: dict[str, int]
    log_expires_at: str
    signature: str = ""


def signed(receipt: Receipt, key: bytes) -> Receipt:
    """`signature`: HMAC-SHA256, hexadecimal, over the canonical JSON of all other fields."""
    return msgspec.structs.replace(receipt, signature=_signature(receipt, key))


def is_genuine(receipt: Receipt, key: bytes) -> bool:
    return hmac.compare_digest(
        receipt.signature.encode("utf-8", "replace"), _signature(receipt, key).encode()
    )


def is_complete(remaining: Mapping[str, int]) -> bool:
    return not any(remaining.values())


def _signature(receipt: Receipt, key: bytes) -> str:
    fields = msgspec.structs.asdict(receipt)
    del fields["signature"]
    canonical = msgspec.json.encode(fields, order="sorted")
    return hmac.new(key, _CONTEXT + canonical, hashlib.sha256).hexdigest()
