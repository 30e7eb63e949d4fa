"""Where a document may stand in the index, and how much of it does: what is counted before and after an erasure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from indexers.bookkeeping import ERASED
from indexers.control import LABELS
from indexers.domain.identity import Principal, TenantId
from indexers.event_rows import ERASED_KEY, KEY, emptied_key, events_with_text
from indexers.opensearch.gate import Gate, GatedSearch
from indexers.opensearch.rows import Index

#: Documents of one search: a terms query each, well below the engine's 65,536 terms.
IDS_AT_ONCE: Final = 500
_LIVING: Final[dict[str, Any]] = {"term": {"deleted": False}}
#: Name in a receipt → index, and the queries that find what belongs to the documents there.
_STORES: Final[Mapping[str, tuple[Index, str, tuple[dict[str, Any], ...]]]] = {
    "documents": (Index.DOCUMENTS, "doc_id", (_LIVING,)),
    "chunks": (Index.CHUNKS, "doc_id", ()),
    "links": (Index.LINKS, "from_doc_id", ()),
    # Their context is another document's text; but who is led to what is gone must not be told its name.
    "links_to_it": (Index.LINKS, "to_doc_id", ()),
    "mentions": (Index.MENTIONS, "doc_id", ()),
    "relations": (Index.RELATIONS, "doc_id", ()),
    "extractions": (Index.EXTRACTIONS, "doc_id", ()),
    "gate": (Index.GATE, "doc_id", (_LIVING,)),
    # Stage rows of before hold the path. Keys whose document is erased hold nothing.
    "events": (Index.EVENTS, "doc_id", ({"bool": {"must_not": [{"term": {"stage": ERASED_KEY}}]}},)),
}
STORES: Final = tuple(_STORES)
#: Indices that are looked through.
COUNTED: Final = tuple(dict.fromkeys(index for index, _, _ in _STORES.values()))


async def count_rows(gate: Gate, tenant_id: TenantId, doc_ids: Sequence[str]) -> dict[str, int]:
    """Rows of these documents by store, in one request for each 500 of them. The caller has refreshed.

    Of every generation of chunks: one that isn't searched (a reindex is open) must keep nothing either.
    """
    principal = Principal.pipeline(tenant_id)
    counts = Counter(dict.fromkeys(STORES, 0))
    for start in range(0, len(doc_ids), IDS_AT_ONCE):
        part = list(doc_ids[start : start + IDS_AT_ONCE])
        pages = await gate.everywhere.search_many([_search(principal, name, part) for name in STORES])
        counts.update({name: page.total for name, page in zip(STORES, pages, strict=True)})
    return dict(counts)


async def remove_events(gate: Gate, tenant_id: TenantId, doc_ids: Sequence[str]) -> None:
    """Rows of these documents' events. Keys stay, emptied, so that a request that is repeated isn't a new one.

    One that changes meanwhile stays as it is: it is counted, and the next call empties it.
    """
    principal = Principal.pipeline(tenant_id)
    query = events_with_text(doc_ids)
    keys = {"bool": {"filter": [query, {"term": {"stage": KEY}}]}}
    others = {"bool": {"filter": [query], "must_not": [{"term": {"stage": KEY}}]}}
    await gate.refresh(Index.EVENTS)
    async with aclosing(gate.scan(principal, Index.EVENTS, keys)) as rows:
        writes = [emptied_key(row, tenant_id) async for row in rows]
    for start in range(0, len(writes), IDS_AT_ONCE):
        await gate.write(writes[start : start + IDS_AT_ONCE])
    await gate.delete_matching(principal, Index.EVENTS, others)


def _search(principal: Principal, name: str, doc_ids: list[str]) -> GatedSearch:
    index, field, filters = _STORES[name]
    query = {"bool": {"filter": [{"terms": {field: doc_ids}}, *filters]}}
    return GatedSearch(
        principal=principal, index=index, body={"query": query, "size": 0, "track_total_hits": True}
    )


_UNFENCED: Final[dict[str, Any]] = {"bool": {"must_not": [{"term": {"no_vector_reason": ERASED}}]}}
_REST: Final[Mapping[Index, dict[str, Any]]] = {
    Index.DOCUMENTS: _UNFENCED,
    Index.GATE: {"bool": {"must_not": [{"term": {"versions": ERASED}}]}},
    Index.CONTROL: {"term": {"kind": LABELS}},
}


async def remove_the_rest(gate: Gate, tenant_id: TenantId) -> dict[str, int]:
    """All rows of a tenant but its fences, its audit log and its erasures; how many, by index."""
    principal = Principal.pipeline(tenant_id)
    removed = {
        index.value: await gate.everywhere.delete_matching(
            principal, index, _REST.get(index, {"match_all": {}})
        )
        for index in Index
    }
    return {name: count for name, count in removed.items() if count}
