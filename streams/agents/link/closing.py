"""All names of every entity that a batch touches: what it was made of, and what it is made of now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from indexers.domain.entities.clusters import entity_keys
from indexers.domain.identity import NameId
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import Query
from streams.agents.link.work import LabelWork, stored_name

#: Values of one terms query, below the engine's limit of 65,536.
TERMS_MAX = 20_000


@dataclass(slots=True, kw_only=True)
class Closure:
    """`members`: names, present and gone, of the entities that may change; each entity is complete."""

    work: LabelWork
    members: set[str] = field(default_factory=set)
    #: Canonical by likeness → its entity's key; those that no merge touches are left out.
    entities: dict[str, str] = field(default_factory=dict)
    _seen: set[NameId] = field(default_factory=set)

    def entity_of(self, root: str) -> str:
        return self.entities.get(root, root)

    def root_of(self, key: str, by_id: dict[str, str]) -> str:
        """The canonical name by likeness of a name that exists."""
        work = self.work
        if key in work.likeness:
            return work.likeness[key]
        stored = work.stored.get(key)
        root = key if stored is None else by_id.get(stored.row.likeness_id, key)
        return root if work.exists(root) else key

    def roots(self) -> dict[str, str]:
        """Of each name that exists."""
        by_id = self.work.by_id()
        return {key: self.root_of(key, by_id) for key in self.work.names}

    def unknown_ids(self) -> set[str]:
        """Canonical names that rows point to and that aren't read yet."""
        by_id = self.work.by_id()
        pointed = {
            one.row.likeness_id for key, one in self.work.stored.items() if key not in self.work.likeness
        }
        return pointed - set(by_id)

    def next_ids(self) -> set[NameId]:
        """Entities and canonical names whose other names aren't read yet."""
        work, roots = self.work, self.roots()
        self.entities = entity_keys(roots, work.curation.merges)
        near: set[NameId] = set()
        entities: set[str] = set()
        for key in self.members:
            if key in work.stored:
                near |= {NameId(work.stored[key].row.entity_id), NameId(work.stored[key].row.likeness_id)}
            if key in roots:
                entities.add(self.entity_of(roots[key]))
        near |= {work.name_id(root) for root in roots.values() if self.entity_of(root) in entities}
        fresh = near - self._seen
        self._seen |= fresh
        return fresh


async def close_entities(gate: Gate, works: Sequence[LabelWork]) -> list[Closure]:
    """In a few round trips for all of them: one where nothing but counts has changed."""
    closures = [Closure(work=work, members=work.asked | set(work.likeness)) for work in works]
    todo = closures
    while todo:
        await _learn_roots(gate, todo)
        asked = [(closure, ids) for closure in todo if (ids := closure.next_ids())]
        parts = [(closure, wanted) for closure, ids in asked for wanted in _names_of(closure.work, ids)]
        answers = await find_all(gate, [wanted for _, wanted in parts])
        for (closure, _), rows in zip(parts, answers, strict=True):
            found = [stored_name(row) for row in rows]
            closure.work.learn(found)
            closure.members |= {one.row.key for one in found}
        todo = [closure for closure, _ in asked]
    return closures


async def read_names(gate: Gate, asked: Sequence[tuple[LabelWork, set[str]]]) -> None:
    """Rows of these ids as last written (realtime), learned by their works."""
    refs = [
        (work, RowRef(principal=work.principal, row_id=row_id))
        for work, ids in asked
        for row_id in sorted(ids)
    ]
    rows = await gate.get_many(Index.ENTITIES, [ref for _, ref in refs]) if refs else []
    for (work, _), row in zip(refs, rows, strict=True):
        if row is not None:
            work.learn([stored_name(row)])


def in_label(work: LabelWork, query: Query) -> Query:
    place = work.place
    terms: list[Query] = [
        {"term": {"namespace": place.namespace.owner}},
        {"term": {"label": place.label}},
        query,
    ]
    return {"bool": {"filter": terms}}


async def _learn_roots(gate: Gate, closures: Sequence[Closure]) -> None:
    """Twice where a crash left a row that points to a name which itself joined another."""
    asked: set[tuple[int, str]] = set()
    while True:
        unknown = [
            (closure.work, {i for i in closure.unknown_ids() if (id(closure), i) not in asked})
            for closure in closures
        ]
        if not any(ids for _, ids in unknown):
            return
        asked |= {(id(closure), i) for closure, (_, ids) in zip(closures, unknown, strict=True) for i in ids}
        await read_names(gate, unknown)


def _names_of(work: LabelWork, ids: set[NameId]) -> Iterator[Wanted]:
    named = sorted(ids)
    for start in range(0, len(named), TERMS_MAX):
        part = named[start : start + TERMS_MAX]
        either: list[Query] = [{"terms": {"entity_id": part}}, {"terms": {"likeness_id": part}}]
        query = in_label(work, {"bool": {"should": either, "minimum_should_match": 1}})
        yield Wanted(principal=work.principal, index=Index.ENTITIES, query=query)
