"""The fan-out: all legs, and what the query names, in one wait.

While the model makes the query's vector the engine has nothing to do, so what needs no vector is asked for meanwhile,
and the vectors' searches follow in a request of their own. Where the vector is known, or none is asked for, all go in
one `_msearch`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, GatedSearch, PreparedSearch, SearchPage
from indexers.opensearch.rows import Index
from search_api.models import Part
from search_api.requests import SearchFilters
from search_api.retrieval.candidates import Candidate, DocumentView, LegPart, SaidName
from search_api.retrieval.legs import (
    SEARCHES,
    Asked,
    Search,
    leg_candidates,
    leg_searches,
    named_rows,
    vector_searches,
)
from search_api.retrieval.naming import (
    Node,
    exact_candidate,
    is_exact,
    known_names,
    mention_candidates,
    named_titles,
)
from search_api.retrieval.queries import matching_ids_body, needs_documents, which_of_body

#: How the vector part got filtered: by nothing but scope, by the ids of all that pass, or afterwards.
FilterMode = Literal["none", "ids", "afterwards"]
Prepared = Mapping[Search, PreparedSearch]
Pages = Mapping[Search, SearchPage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """Documents that pass the filters, as far as rows of chunks and mentions need to know them."""

    mode: FilterMode
    doc_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """One candidate per row found; `allowed` as in `Ranking`."""

    candidates: list[Candidate]
    #: Rows of each list.
    found: Mapping[LegPart, int]
    #: Documents whose title or alias the query says, with their rows in `views`.
    named: Mapping[str, float] = field(default_factory=dict)
    views: Mapping[str, DocumentView] = field(default_factory=dict)
    #: Names of entities that the query says, and ids of their entities.
    names: Mapping[Node, SaidName] = field(default_factory=dict)
    entity_ids: tuple[str, ...] = ()
    allowed: frozenset[str] | None = None
    round_trips: int = 1

    def hits(self, part: str) -> int:
        return sum(count for (_, of), count in self.found.items() if of == part)


class Recall:
    def __init__(self, gate: Gate, *, filter_ids_max: int) -> None:
        self._gate = gate
        self._filter_ids_max = filter_ids_max

    async def passing(self, principal: Principal, parts: Sequence[Part], filters: SearchFilters) -> Passing:
        """Rows of chunks don't know tags and paths: few documents that pass are named inside the k-NN clause."""
        if not ({"vector", "names"} & set(parts)) or not needs_documents(filters):
            return Passing(mode="none")
        body = matching_ids_body(filters, size=self._filter_ids_max)
        [page] = await self._gate.search_many([_on_documents(principal, body)])
        if page.total > self._filter_ids_max:
            return Passing(mode="afterwards")
        return Passing(mode="ids", doc_ids=tuple(hit.row_id for hit in page.hits))

    def prepare(self, principal: Principal, asked: Asked, passing: Passing) -> Prepared:
        """The searches that need no vector: made while it is."""
        searches = leg_searches(principal, asked, passing.doc_ids)
        return {name: self._gate.prepare(search) for name, search in searches.items()}

    @asynccontextmanager
    async def ahead(self, prepared: Prepared) -> AsyncIterator[asyncio.Task[Pages]]:
        """These are asked for from here on. A search that ends early takes the request along."""
        asking = asyncio.create_task(self._pages(prepared))
        try:
            yield asking
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait([asking])
            if not asking.cancelled():
                # What it failed of says nothing more to a search that has failed of something else.
                asking.exception()

    async def recall(
        self,
        principal: Principal,
        asked: Asked,
        passing: Passing,
        words: Prepared | asyncio.Task[Pages],
        vector: Sequence[float] | None,
    ) -> Recalled:
        """`words`: what needs no vector, asked for already (`ahead`) or to be asked for with the rest."""
        searches: dict[Search, GatedSearch | PreparedSearch] = {}
        if vector is not None:
            searches |= vector_searches(principal, asked, vector, passing.doc_ids)
        if isinstance(words, asyncio.Task):
            if words.done():
                # Where they failed, the caller hears of it before anything else is asked for.
                words.result()
            near = await self._pages(searches)
            pages: Pages = {**await words, **near}
        else:
            pages = await self._pages({**words, **searches})
        return await self._read(principal, asked, passing, pages)

    async def _pages(self, searches: Mapping[Search, GatedSearch | PreparedSearch]) -> Pages:
        names = [name for name in SEARCHES if name in searches]
        answers = await self._gate.search_many([searches[name] for name in names]) if names else []
        return dict(zip(names, answers, strict=True))

    async def _read(self, principal: Principal, asked: Asked, passing: Passing, pages: Pages) -> Recalled:
        views = named_rows(pages)
        candidates, found = leg_candidates(pages, views)
        total = pages["count"].total if "count" in pages else 0
        rows = [hit.source for hit in pages["names"].hits] if "names" in pages else []
        names = known_names(rows, total)
        if "mentions" in pages:
            mentions = [hit.source for hit in pages["mentions"].hits]
            said = mention_candidates(mentions, names, views)
            candidates += said
            found["entities", "names"] = len(said)
        looked_up = [hit.source for hit in pages["named"].hits] if "named" in pages else []
        candidates += [exact_candidate(document) for document in looked_up if is_exact(document, asked.route)]
        allowed, trips = None, 1
        if passing.mode == "afterwards":
            ids = list({c.doc_id for c in candidates})
            allowed, trips = await self._allowed(principal, ids, asked.filters), 2
        return Recalled(
            candidates=candidates,
            found=found,
            named=named_titles(looked_up, asked.names.said) if asked.names.title_keys else {},
            views=views,
            names=names,
            entity_ids=tuple(sorted({row.entity_id for row in rows if not row.blocked})),
            allowed=allowed,
            round_trips=trips,
        )

    async def _allowed(
        self, principal: Principal, doc_ids: list[str], filters: SearchFilters
    ) -> frozenset[str]:
        if not doc_ids:
            return frozenset()
        [page] = await self._gate.search_many([_on_documents(principal, which_of_body(doc_ids, filters))])
        return frozenset(hit.row_id for hit in page.hits)


def _on_documents(principal: Principal, body: dict[str, Any]) -> GatedSearch:
    return GatedSearch(principal=principal, index=Index.DOCUMENTS, body=body)
