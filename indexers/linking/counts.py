"""How often names and entities are mentioned, counted from the edges: never kept by adding up.

The engine counts, so an entity of 50,000 mentions costs one aggregation and not one edge is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from indexers.domain.identity import NameId, Principal
from indexers.opensearch.gate import Gate, GatedSearch, SearchPage
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import Query

#: Names of one aggregation, each with its most frequent spelling: the engine takes 65,535 buckets.
NAMES_MAX: Final = 1_000
#: Documents with more than one name of an entity that one look can tell of.
REPEATED_MAX: Final = 10_000
SEARCHES_MAX: Final = 20
_DIGITS: Final = "0123456789abcdef"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameCount:
    """`mentions`: documents that mention the name. `spelling`: the most frequent one, of equals the first."""

    mentions: int
    spelling: str


async def count_names(
    gate: Gate, principal: Principal, name_ids: Iterable[NameId], excluded: Sequence[Query] = ()
) -> dict[NameId, NameCount]:
    """Names without any edge are left out. `excluded`: edges that don't count. The caller has refreshed mentions."""
    wanted = sorted(set(name_ids))
    searches = [
        _search(principal, _edges(part, excluded), _by_name(len(part))) for part in _parts(wanted, NAMES_MAX)
    ]
    counts: dict[NameId, NameCount] = {}
    for page in await _search_all(gate, searches):
        for bucket in page.aggregations["names"]["buckets"]:
            spellings = bucket["spellings"]["buckets"]
            spelling = spellings[0]["key"] if spellings else ""
            counts[NameId(bucket["key"])] = NameCount(mentions=bucket["doc_count"], spelling=spelling)
    return counts


async def count_documents(
    gate: Gate, principal: Principal, groups: Mapping[str, Sequence[NameId]], excluded: Sequence[Query] = ()
) -> dict[str, int]:
    """By group: documents that mention any of its names, each counted once.

    Edges, less those of documents that have several of them. Of these the engine tells at most `REPEATED_MAX` at
    once; where there are more, they are asked for by the first digit of the document's id, and so on.
    """
    counts = dict.fromkeys(groups, 0)
    todo = [(group, "") for group in sorted(groups)]
    while todo:
        searches = [_documents(principal, groups[group], prefix, excluded) for group, prefix in todo]
        again: list[tuple[str, str]] = []
        for (group, prefix), page in zip(todo, await _search_all(gate, searches), strict=True):
            repeated = page.aggregations["documents"]["buckets"]
            if len(repeated) == REPEATED_MAX:
                again += [(group, prefix + digit) for digit in _DIGITS]
            else:
                counts[group] += page.total - sum(bucket["doc_count"] - 1 for bucket in repeated)
        todo = again
    return counts


async def _search_all(gate: Gate, searches: Sequence[GatedSearch]) -> list[SearchPage]:
    pages: list[SearchPage] = []
    for part in _parts(searches, SEARCHES_MAX):
        pages += await gate.search_many(part)
    return pages


def _documents(
    principal: Principal, name_ids: Sequence[NameId], prefix: str, excluded: Sequence[Query]
) -> GatedSearch:
    query = _edges(name_ids, excluded)
    if prefix:
        query["bool"]["filter"].append({"prefix": {"doc_id": prefix}})
    repeated = {"terms": {"field": "doc_id", "size": REPEATED_MAX, "min_doc_count": 2}}
    return _search(principal, query, {"documents": repeated})


def _edges(name_ids: Sequence[NameId], excluded: Sequence[Query]) -> Query:
    return {"bool": {"filter": [{"terms": {"name_id": list(name_ids)}}], "must_not": list(excluded)}}


def _by_name(names: int) -> dict[str, Any]:
    ranked = [{"_count": "desc"}, {"_key": "asc"}]
    spellings = {"terms": {"field": "surface", "size": 1, "order": ranked}}
    return {"names": {"terms": {"field": "name_id", "size": names}, "aggs": {"spellings": spellings}}}


def _search(principal: Principal, query: Query, aggregations: dict[str, Any]) -> GatedSearch:
    body = {"query": query, "size": 0, "track_total_hits": True, "aggs": aggregations}
    return GatedSearch(principal=principal, index=Index.MENTIONS, body=body)


def _parts(items: Sequence[Any], size: int) -> Iterator[Any]:
    return (items[start : start + size] for start in range(0, len(items), size))
