"""What says an edge: read only for paths that are shown. Pure; the searches may ride in another multi-search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from indexers.domain.identity import Principal
from indexers.opensearch.gate import GatedSearch, SearchPage
from indexers.opensearch.rows import Index
from search_api.graph.model import Edge, EdgeContext

CONTEXT_FIELDS: Final[Mapping[Index, tuple[str, ...]]] = {
    Index.LINKS: ("from_doc_id", "occurrences", "version"),
    Index.MENTIONS: ("doc_id", "sentence", "surface", "version"),
    Index.RELATIONS: ("doc_id", "quote", "version"),
}


def context_searches(principal: Principal, edges: Iterable[Edge]) -> list[GatedSearch]:
    """One for each index that holds rows of these edges; computed edges have none."""
    wanted: defaultdict[Index, set[str]] = defaultdict(set)
    for edge in edges:
        if edge.index is not None:
            wanted[edge.index].add(edge.row_id)
    return [
        GatedSearch(principal=principal, index=index, body=_body(index, sorted(wanted[index])))
        for index in CONTEXT_FIELDS
        if index in wanted
    ]


def read_contexts(searches: Sequence[GatedSearch], pages: Sequence[SearchPage]) -> dict[str, EdgeContext]:
    """Row id → context. Compare `version` with the document's: the row of an older one says nothing any more."""
    return {
        hit.row_id: context_of(search.index, hit.row_id, hit.source)
        for search, page in zip(searches, pages, strict=True)
        for hit in page.hits
    }


def _body(index: Index, row_ids: Sequence[str]) -> dict[str, Any]:
    return {
        "query": {"bool": {"filter": [{"ids": {"values": list(row_ids)}}]}},
        "size": len(row_ids),
        "_source": list(CONTEXT_FIELDS[index]),
        "track_total_hits": False,
    }


def context_of(index: Index, row_id: str, source: Mapping[str, Any]) -> EdgeContext:
    """From fields of a row that says an edge."""
    match index:
        case Index.LINKS:
            text = str(source["occurrences"][0]["context"]) if source["occurrences"] else ""
        case Index.MENTIONS:
            text = source["sentence"]
        case _:
            text = source["quote"]
    return EdgeContext(
        row_id=row_id,
        said_by=source["from_doc_id" if index is Index.LINKS else "doc_id"],
        version=source["version"],
        text=text,
        surface=source.get("surface"),
    )
