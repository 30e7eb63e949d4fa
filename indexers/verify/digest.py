"""One hash over all that a tenant's rows say: two indices made from the same vault have the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from indexers.domain.identity import Principal
from indexers.domain.title_names import UNLINKED_MENTION
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import REBUILT, Index

#: Left out: versions, event ids and clock times (each indexing has its own), vectors (they depend on their
#: company in a batch), and what the vault's bytes can't tell (a former name, the modification time).
LEFT_OUT = frozenset(
    {"version", "event_id", "indexed_at", "updated_at", "tombstone_until", "vector", "moved_from", "weight"}
)
_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentDigest:
    """`value` doesn't depend on the order of rows, nor on their ids where these hold a version (edges)."""

    value: str
    rows: Mapping[str, int]


async def content_digest(gate: Gate, principal: Principal) -> ContentDigest:
    """Over the living rows that the principal sees. Refreshes first; memory is that of one page."""
    await gate.refresh()
    total = 0
    rows: dict[str, int] = {}
    for index in REBUILT:
        rows[index.value] = 0
        async with aclosing(gate.scan(principal, index, {"match_all": {}})) as scan:
            async for row in scan:
                if not row.source.get("deleted", False) and not _is_mark(index, row.source):
                    rows[index.value] += 1
                    total = (total + row_digest(index, row.source)) % _MODULUS
    value = hashlib.sha256(msgspec.json.encode([total.to_bytes(32, "big"), rows], order="sorted")).hexdigest()
    return ContentDigest(value=f"sha256:{value}", rows=rows)


def _is_mark(index: Index, source: Mapping[str, Any]) -> bool:
    """Which texts carry the marks of a common name depends on who came first (indexers.linking.unlinked_rows)."""
    return index is Index.LINKS and source["link_type"] == UNLINKED_MENTION and source["to_doc_id"] is None


def row_digest(index: Index, source: Mapping[str, Any]) -> int:
    """Rows are added up: sums don't ask for an order."""
    kept = _kept(source)
    encoded = msgspec.json.encode([index.value, kept], order="deterministic")
    return int.from_bytes(hashlib.sha256(encoded).digest(), "big")


def _kept(value: Any) -> Any:
    """Of what is nested too: occurrences of a mention have weights of their own."""
    if isinstance(value, Mapping):
        return {name: _kept(inner) for name, inner in value.items() if name not in LEFT_OUT}
    return [_kept(inner) for inner in value] if isinstance(value, list) else value
