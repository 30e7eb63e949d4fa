"""The edges around what a search found: one multi-search a hop, everything through the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from indexers.domain.identity import EntityNamespace, Principal
from indexers.opensearch.gate import Gate, GatedSearch, SearchPage
from indexers.opensearch.rows import Index
from search_api.graph import queries
from search_api.graph.chains import best_few
from search_api.graph.columns import (
    ColumnsHit,
    DocumentColumns,
    DocumentColumnsHit,
    LinkColumns,
    LinkColumnsHit,
    MentionColumns,
    MentionColumnsHit,
    NameColumnsHit,
    RelationColumnsHit,
)
from search_api.graph.conversation import session_edges, turns_around
from search_api.graph.growth import Frontier, Growth
from search_api.graph.kinds import label_and_key
from search_api.graph.likeness import likeness_edges
from search_api.graph.model import GraphRules, SeedRow, Seeds, Subgraph

#: A search, and who takes its answer.
_Asked = tuple[GatedSearch, Callable[[SearchPage], None]]


class GraphReader:
    """Raises what the gate raises. Every search carries the principal: no edge, name or count of others is seen."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def expand(self, principal: Principal, seeds: Seeds, rules: GraphRules) -> Subgraph:
        """At most `rules.depth` round trips, none for what no part that is on would use."""
        expansion = _Expansion(principal, seeds, rules)
        for hop in range(1, rules.depth + 1):
            if not await self._ask(expansion, expansion.searches(first=hop == 1, last=hop == rules.depth)):
                break
        let_go_later(expansion)
        return expansion.growth.subgraph()

    async def around(self, principal: Principal, seeds: Seeds, rules: GraphRules) -> Subgraph:
        """Every hop whole, also the last: one round trip more than `rules.depth`, none for what isn't there."""
        expansion = _Expansion(principal, seeds, rules)
        for hop in range(1, rules.depth + 1):
            if not await self._ask(expansion, expansion.searches(first=hop == 1, last=False)):
                break
        await self._ask(expansion, expansion.closing())
        return expansion.growth.subgraph()

    async def _ask(self, expansion: _Expansion, asked: Sequence[_Asked]) -> bool:
        """False: there was nothing to ask."""
        if not asked:
            return False
        pages = await self._gate.search_many([search for search, _ in asked])
        for (_, take), page in zip(asked, pages, strict=True):
            take(page)
        expansion.growth.asked()
        let_go_later(pages)
        return True


def let_go_later(held: object) -> None:
    """Giving back thousands of values takes milliseconds: not before the engine is waited for once more."""
    asyncio.get_running_loop().call_soon(id, held)


class _Expansion:
    """Which searches a hop makes, and where their answers go."""

    def __init__(self, principal: Principal, seeds: Seeds, rules: GraphRules) -> None:
        self._principal = principal
        self._seeds = seeds
        self._rules = rules
        self.growth = Growth(seeds, rules)
        self._walks_links = rules.is_on("walk") or rules.is_on("pagerank") or rules.is_on("hop")
        self._walks_names = rules.is_on("entities") or rules.is_on("pagerank")
        self._turned: set[str] = set()
        self._likened: set[str] = set()

    def searches(self, *, first: bool, last: bool) -> list[_Asked]:
        frontier = self.growth.next_frontier()
        asked: list[_Asked] = []
        if self._walks_links and frontier.documents:
            asked += self._links(frontier)
        if self._walks_names:
            asked += self._names(frontier, first=first, last=last)
        asked += self._of_rows()
        missing = self._without_row() if first and not last else []
        if missing:
            asked.append(self._rows(missing))
        return asked

    def closing(self) -> list[_Asked]:
        """What the last hop found and didn't read: rows of names (without one a name is none), likenesses, turns."""
        names = self.growth.waiting_names()
        asked = [self._name_rows(Frontier(documents=(), names=names), ())] if names else []
        return asked + self._of_rows()

    def _links(self, frontier: Frontier) -> list[_Asked]:
        def take(rows: Sequence[LinkColumns]) -> None:
            self.growth.take_links(rows, frontier)

        documents = frontier.documents
        of = queries.links_from_body(documents, self._rules)
        to = queries.links_to_body(documents, self._rules)
        # Of one document alone any part of the links to it is fair.
        several = len(documents) > 1
        return [
            self._search(Index.LINKS, of, LinkColumnsHit, take, cap="links_page"),
            self._search(Index.LINKS, to, LinkColumnsHit, take, cap="links_page", whole=several),
        ]

    def _names(self, frontier: Frontier, *, first: bool, last: bool) -> list[_Asked]:
        """In the last hop no names are looked for in documents: nothing would be read of them."""
        asked: list[_Asked] = []
        documents = () if last else frontier.documents
        if documents:
            asked.append(self._mentions_in(documents))
        entity_ids = self._seeds.entity_ids if first else ()
        if frontier.keys or entity_ids:
            asked.append(self._name_rows(frontier, entity_ids))
        if frontier.keys:
            asked.append(self._mentions_of(frontier))
        name_ids = self._name_ids(frontier, first=first)
        if documents or name_ids:
            asked.append(self._relations(documents, name_ids))
        if first and asked:
            asked.append(self._count())
        return asked

    def _mentions_in(self, documents: Sequence[str]) -> _Asked:
        body = queries.mentions_in_body(documents, self._rules)
        take = self.growth.take_mentions_in
        return self._search(Index.MENTIONS, body, MentionColumnsHit, take, cap="mentions_page")

    def _mentions_of(self, frontier: Frontier) -> _Asked:
        def take(rows: Sequence[MentionColumns]) -> None:
            self.growth.take_mentions_of(rows, frontier)

        body = queries.mentions_of_body(frontier.keys, self._rules)
        return self._search(Index.MENTIONS, body, MentionColumnsHit, take, cap="mentions_page", whole=True)

    def _name_rows(self, frontier: Frontier, entity_ids: Sequence[str]) -> _Asked:
        body = queries.names_body(frontier.keys, entity_ids, self._rules)
        return self._search(
            Index.ENTITIES, body, NameColumnsHit, self.growth.take_names, cap="name_rows_page"
        )

    def _relations(self, documents: Sequence[str], name_ids: Sequence[str]) -> _Asked:
        body = queries.relations_body(documents, name_ids, self._rules)
        take = self.growth.take_relations
        return self._search(Index.RELATIONS, body, RelationColumnsHit, take, cap="relations_page")

    def _count(self) -> _Asked:
        def take(page: SearchPage) -> None:
            self.growth.take_documents(page.total)

        body = queries.count_body()
        return GatedSearch(principal=self._principal, index=Index.DOCUMENTS, body=body), take

    def _rows(self, doc_ids: Sequence[str]) -> _Asked:
        return self._search(
            Index.DOCUMENTS, queries.rows_body(doc_ids), DocumentColumnsHit, self.growth.take_rows
        )

    def _of_rows(self) -> list[_Asked]:
        """Turns and likenesses of the seeds whose rows are at hand and that weren't asked for yet."""
        asked: list[_Asked] = []
        turned = {d: self.growth.rows[d] for d in self._session_seeds() if d in self.growth.rows}
        if new := {doc_id: row for doc_id, row in turned.items() if doc_id not in self._turned}:
            self._turned |= set(new)
            span = self._rules.session_span
            turns = sorted({turn for row in new.values() for turn in turns_around(row, span)})
            if turns:
                asked.append(self._turns(turned, turns))
        for doc_id in self._neighbour_seeds():
            row = self.growth.rows.get(doc_id)
            if row is None or doc_id in self._likened:
                continue
            self._likened.add(doc_id)
            if (body := queries.alike_body(doc_id, row, self._rules)) is not None:
                asked.append(self._alike(doc_id, body))
        return asked

    def _turns(self, seeds: dict[str, SeedRow], turns: Sequence[str]) -> _Asked:
        def take(rows: Sequence[DocumentColumns]) -> None:
            self.growth.take_computed(session_edges(seeds, rows, span=self._rules.session_span))

        body = queries.turns_body(turns, sorted({row.agent_id for row in seeds.values()}))
        return self._search(Index.DOCUMENTS, body, DocumentColumnsHit, take, cap="turns_page")

    def _alike(self, doc_id: str, body: dict[str, Any]) -> _Asked:
        def take(page: SearchPage) -> None:
            self.growth.take_computed(likeness_edges(doc_id, page.hits, self._rules))

        return GatedSearch(
            principal=self._principal, index=Index.DOCUMENTS, body=body, hit=DocumentColumnsHit
        ), take

    def _without_row(self) -> list[str]:
        wanted = {*self._session_seeds(), *self._neighbour_seeds()}
        return sorted(wanted - self.growth.rows.keys())

    def _session_seeds(self) -> list[str]:
        on = self._rules.is_on("session") and self._rules.session_span > 0
        return [d for d, _ in best_few(self._seeds.documents, self._rules.session_seeds)] if on else []

    def _neighbour_seeds(self) -> list[str]:
        on = self._rules.is_on("neighbours")
        return [d for d, _ in best_few(self._seeds.documents, self._rules.neighbour_seeds)] if on else []

    def _name_ids(self, frontier: Frontier, *, first: bool) -> list[str]:
        """Of the names of the question no row was read yet: their ids follow from who asks."""
        if not first:
            return self.growth.name_ids(frontier.names)
        who = self._principal
        owners = ["shared", f"agent:{who.agent_id}", *(f"team:{team}" for team in who.teams)]
        spaces = [EntityNamespace(tenant_id=who.tenant_id, owner=owner) for owner in owners]
        named = [label_and_key(node) for node in frontier.names]
        return sorted(space.name_id(label, key) for space in spaces for label, key in named)

    def _search(
        self,
        index: Index,
        body: dict[str, Any],
        hit: type[ColumnsHit],
        take: Callable[[Sequence[Any]], None],
        *,
        cap: str = "",
        whole: bool = False,
    ) -> _Asked:
        """`take` gets the columns; a full page is counted under `cap`, `whole`: without its last node."""

        def take_page(page: SearchPage) -> None:
            if cap and len(page.hits) >= body["size"]:
                self.growth.truncated[cap] += 1
            hits = queries.whole_nodes(page.hits, body["size"] - 1) if whole else page.hits
            take([found.fields for found in hits])  # type: ignore[attr-defined]

        return GatedSearch(principal=self._principal, index=index, body=body, hit=hit), take_page
