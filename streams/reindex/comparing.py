"""How alike two generations answer: the vector part alone, since words find the same in both."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from indexers.domain.identity import Principal
from indexers.embedders.factory import load_embedder
from indexers.errors import HoplineError
from indexers.opensearch.gate import Gate, GatedSearch, RowRef
from indexers.opensearch.rows import Index
from indexers.opensearch.templates import VECTOR_FIELD
from indexers.ports import Embedder
from indexers.taken_embedder import taken

if TYPE_CHECKING:
    from streams.reindex.steps import Reindex

DEPTH: Final = 10
#: Chunks of one search, of which the best of each document counts.
_CHUNKS: Final = 50
_SEARCHES: Final = 16


@dataclass(frozen=True, slots=True)
class Side:
    """A generation and the model for its queries."""

    view: Gate
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class Compared:
    """Ids of documents, best first, that each side finds for a query."""

    query: str
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def overlap(self) -> float:
        """Share of the longer list that both have; two empty lists are alike."""
        longest = max(len(self.old), len(self.new))
        return len(set(self.old) & set(self.new)) / longest if longest else 1.0

    @property
    def rank_correlation(self) -> float | None:
        """Kendall's tau over what both have; None where that is less than two documents."""
        places = {doc: place for place, doc in enumerate(self.new)}
        common = [places[doc] for doc in self.old if doc in places]
        if len(common) < 2:
            return None
        signs = [1 if first < second else -1 for first, second in combinations(common, 2)]
        return sum(signs) / len(signs)


async def sampled_queries(gate: Gate, principal: Principal, count: int, *, seed: int = 0) -> list[str]:
    """Titles of documents and headings of chunks, half each, drawn at random; the same for the same index."""
    titles = await _sample(gate, principal, Index.DOCUMENTS, "title", (count + 1) // 2, seed)
    headings = await _sample(gate, principal, Index.CHUNKS, "heading_path", count, seed)
    return list(dict.fromkeys([*titles, *headings]))[:count]


async def compare(principal: Principal, queries: Sequence[str], old: Side, new: Side) -> list[Compared]:
    """Over all that the tenant has."""
    found = [await _answers(principal, queries, side) for side in (old, new)]
    return [Compared(query, *lists) for query, *lists in zip(queries, *found, strict=True)]


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


async def paths_of(gate: Gate, principal: Principal, doc_ids: Sequence[str]) -> dict[str, str]:
    refs = [RowRef(principal=principal, row_id=doc_id) for doc_id in dict.fromkeys(doc_ids)]
    rows = await gate.get_many(Index.DOCUMENTS, refs, fields=("path",)) if refs else []
    return {row.row_id: row.source["path"] for row in rows if row is not None}


async def _answers(principal: Principal, queries: Sequence[str], side: Side) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for start in range(0, len(queries), _SEARCHES):
        part = queries[start : start + _SEARCHES]
        vectors = [await asyncio.to_thread(side.embedder.embed_query, query) for query in part]
        searches = [
            GatedSearch(principal=principal, index=Index.CHUNKS, body=_body(vector.tolist()))
            for vector in vectors
        ]
        for page in await side.view.search_many(searches):
            ids = dict.fromkeys(hit.source["doc_id"] for hit in page.hits)
            found.append(tuple(ids)[:DEPTH])
    return found


def _body(vector: Sequence[float]) -> Mapping[str, Any]:
    clause = {VECTOR_FIELD: {"vector": vector, "k": _CHUNKS}}
    return {"query": {"knn": clause}, "size": _CHUNKS, "_source": ["doc_id"]}


async def _sample(
    gate: Gate, principal: Principal, index: Index, field: str, count: int, seed: int
) -> list[str]:
    """A reservoir over all rows: memory is that of the sample."""
    rnd, seen = random.Random(seed), 0  # noqa: S311 - a sample, no secret
    kept: list[str] = []
    async with aclosing(gate.scan(principal, index, {"match_all": {}}, fields=(field,))) as rows:
        async for row in rows:
            text = _text(row.source.get(field))
            if not text:
                continue
            seen += 1
            if len(kept) < count:
                kept.append(text)
            elif (place := rnd.randrange(seen)) < count:
                kept[place] = text
    return kept


def _text(value: Any) -> str:
    last = value[-1] if isinstance(value, list) and value else value
    return last.strip() if isinstance(last, str) else ""


@asynccontextmanager
async def open_sides(work: Reindex) -> AsyncIterator[tuple[Side, Side]]:
    """The old generation and the new one, each with its model loaded. HoplineError where there aren't two."""
    known = await work.gate.generations()
    if known.old is None or known.fed is None or not known.are_two:
        raise HoplineError("there is one generation only: `hopline reindex --to MODEL` makes a second")
    sides = []
    for one in (known.old, known.fed):
        settings = taken(work.config.embedder, known, one)
        sides.append(Side(work.gate.of_chunks(one.number), await asyncio.to_thread(load_embedder, settings)))
        await sides[-1].view.refresh(Index.CHUNKS)
    yield sides[0], sides[1]


async def compared_sides(
    work: Reindex, *, count: int, gold: Mapping[str, Mapping[str, float]] | None
) -> dict[str, Any]:
    """Figures of both. `gold`: query → path → grade; without it, `count` titles and headings of each tenant."""
    every: list[Compared] = []
    recalls: dict[str, list[float | None]] = {"old": [], "new": []}
    async with open_sides(work) as (old, new):
        for principal in await work.tenants():
            queries = list(gold) if gold else await sampled_queries(old.view, principal, count)
            part = await compare(principal, queries, old, new)
            ids = [doc for one in part for doc in (*one.old, *one.new)]
            paths = await paths_of(work.gate, principal, ids) if gold else {}
            if gold and not set(paths.values()) & {path for grades in gold.values() for path in grades}:
                continue  # another vault than the one that was judged
            every += part
            for name, values in recalls.items() if gold else ():
                values += [_recall(getattr(one, name), paths, (gold or {})[one.query]) for one in part]
    answer: dict[str, Any] = {
        "queries": len(every),
        f"overlap@{DEPTH}": mean([one.overlap for one in every]),
        "rank_correlation": mean([one.rank_correlation for one in every]),
    }
    if gold:
        answer |= {f"recall@{DEPTH}_{name}": mean(values) for name, values in recalls.items()}
    return answer


def _recall(found: Sequence[str], paths: Mapping[str, str], grades: Mapping[str, float]) -> float:
    right = {path for path, grade in grades.items() if grade > 0}
    return len(right & {paths.get(doc, "") for doc in found}) / len(right)
