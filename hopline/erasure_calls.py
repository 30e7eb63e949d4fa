"""Requests of the client that erase, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from hopline.calls import Call


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Signed counts; `remaining` are all zero. It holds no text of what was erased."""

    erasure_id: str
    tenant_id: str
    requested_by: str
    requested_at: str
    completed_at: str
    doc_ids: list[str]
    removed: dict[str, int]
    remaining: dict[str, int]
    log_expires_at: str
    signature: str


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """`more`: there are more documents that match; send the same request again."""

    erasure_id: str
    state: Literal["pending", "complete"]
    documents: int
    more: bool
    remaining: dict[str, int]
    receipt: Receipt | None = None


class ReceiptCheck(msgspec.Struct, frozen=True, kw_only=True):
    genuine: bool


def erase_document(doc_id: str) -> Call[Erasure]:
    path = f"/v1/documents/{quote(doc_id, safe='')}"
    return Call(method="DELETE", path=path, answer=Erasure, params={"erase": "true"})


def erase(
    *,
    doc_ids: Sequence[str] | None = None,
    agent: str | None = None,
    session: str | None = None,
    subject: str | None = None,
) -> Call[Erasure]:
    """Exactly one of them."""
    body: dict[str, Any] = {"doc_ids": doc_ids, "agent": agent, "session": session, "subject": subject}
    given = {name: value for name, value in body.items() if value is not None}
    return Call(method="POST", path="/v1/erasures", answer=Erasure, json=given)


def erasure(erasure_id: str) -> Call[Erasure]:
    return Call(method="GET", path=f"/v1/erasures/{quote(erasure_id, safe='')}", answer=Erasure)


def check_receipt(receipt: Mapping[str, Any]) -> Call[ReceiptCheck]:
    return Call(method="POST", path="/v1/erasures/check", answer=ReceiptCheck, json=receipt)
