"""Entities found and read, what curators did about them, and what may be one. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from indexers.domain.entities.names import name_key
from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, GatedSearch, SearchHit
from indexers.opensearch.rows import EntityRow, Index
from search_api.entities.models import (
    CommandState,
    EntitiesAnswer,
    EntityAnswer,
    EntityLine,
    HistoryAnswer,
    HistoryEntry,
    NameAnswer,
    ProposalAnswer,
    ProposalsAnswer,
)
from search_api.entities.rows import (
    all_names,
    canonical_rows,
    entity_of,
    entity_row,
    line_of,
    shown_names,
)
from search_api.paging import RowList, SortKey, read_page

_ALIASES_SHOWN: Final = 100
_HISTORY_SHOWN: Final = 100
#: Names looked at for the words of a query: several may be of one entity.
_NAMES_LOOKED_AT: Final = 200
#: Names are normalised by the kind of their label: one label of each kind.
_KINDS: Final = ("concept", "person", "organization", "code")
#: A name that is just the words comes before all that only hold them.
_EXACT_BOOST: Final = 1_000.0
_BY_COUNT: Final = (SortKey(field="mention_count", kind="whole"), SortKey(field="name_id"))
_BY_LIKENESS: Final = (
    SortKey(field="similarity", kind="fraction"),
    SortKey(field="entity_id"),
    SortKey(field="other_id"),
    SortKey(field="key"),
    SortKey(field="other_key"),
)


class Entities:
    """Raises ProblemError: 404 alike for what isn't there and what the principal may not see."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def get(self, principal: Principal, entity_id: str) -> EntityAnswer:
        """Blocked ones too: that is how one is looked at before it is unblocked."""
        row = await entity_of(self._gate, principal, entity_id)
        names = await shown_names(self._gate, principal, row.entity_id, _ALIASES_SHOWN + 1)
        others = [name for name in names if name.name_id != row.entity_id]
        return EntityAnswer(
            **line_of(row).model_dump(exclude={"matched"}),
            aliases=[_name(name) for name in others[:_ALIASES_SHOWN]],
        )

    async def find(
        self,
        principal: Principal,
        *,
        words: str | None,
        label: str | None,
        namespace: str | None,
        blocked: bool,
        size: int,
        cursor: str | None,
    ) -> EntitiesAnswer:
        """Without words: those with most mentions first. With words: the best first, one page."""
        terms = [{"term": {"blocked": blocked}}, *_only(label=label, namespace=namespace)]
        if words is not None:
            found = await self._named(principal, words, label, terms)
            lines = [line for line in found if line.blocked is blocked]
            return EntitiesAnswer(entities=lines[:size], next_cursor=None)
        rows = RowList(
            name=("entities", label, namespace, blocked),
            index=Index.ENTITIES,
            query={"bool": {"filter": [*terms, {"term": {"canonical": True}}]}},
            sort=_BY_COUNT,
        )
        lines, following = await read_page(self._gate, principal, rows, _lines, cursor=cursor, size=size)
        return EntitiesAnswer(entities=lines, next_cursor=following)

    async def history(self, principal: Principal, entity_id: str) -> HistoryAnswer:
        """What curators said about any of the entity's names."""
        row = await entity_of(self._gate, principal, entity_id)
        keys = [name.key for name in await all_names(self._gate, principal, row)]
        body = {
            "query": {
                "bool": {
                    "filter": [*_only(label=row.label, namespace=row.namespace), {"terms": {"keys": keys}}]
                }
            },
            "size": _HISTORY_SHOWN,
            "sort": [{"version": "desc"}, {"event_id": "desc"}],
            "track_total_hits": False,
        }
        search = GatedSearch(principal=principal, index=Index.CURATION, body=body)
        [page] = await self._gate.search_many([search])
        return HistoryAnswer(history=[_entry(hit.source) for hit in page.hits])

    async def command(self, principal: Principal, event_id: str) -> CommandState:
        body = {"query": {"term": {"event_id": event_id}}, "size": 1, "track_total_hits": False}
        search = GatedSearch(principal=principal, index=Index.CURATION, body=body)
        [page] = await self._gate.search_many([search])
        return CommandState(event_id=event_id, state="applied" if page.hits else "accepted")

    async def proposals(
        self,
        principal: Principal,
        *,
        label: str | None,
        namespace: str | None,
        size: int,
        cursor: str | None,
    ) -> ProposalsAnswer:
        """The most alike first; without those of blocked entities, and of names that are one by now."""
        rows = RowList(
            name=("proposals", label, namespace),
            index=Index.PROPOSALS,
            query={"bool": {"filter": _only(label=label, namespace=namespace)}},
            sort=_BY_LIKENESS,
        )

        async def show(hits: Sequence[SearchHit]) -> list[ProposalAnswer | None]:
            ids = [hit.source[side] for hit in hits for side in ("entity_id", "other_id")]
            entities = await canonical_rows(self._gate, principal, ids)
            return [_proposal(hit.row_id, hit.source, entities) for hit in hits]

        shown, following = await read_page(self._gate, principal, rows, show, cursor=cursor, size=size)
        return ProposalsAnswer(proposals=shown, next_cursor=following)

    async def _named(
        self, principal: Principal, words: str, label: str | None, terms: list[dict[str, Any]]
    ) -> list[EntityLine]:
        kinds = _KINDS if label is None else (label,)
        keys = sorted({key for kind in kinds if (key := name_key(words, kind))})
        match = {"multi_match": {"query": words, "fields": ["name", "name.code^2"], "type": "most_fields"}}
        exact = {"terms": {"key": keys, "boost": _EXACT_BOOST}}
        body = {
            "query": {"bool": {"should": [match, exact], "minimum_should_match": 1, "filter": terms}},
            "size": _NAMES_LOOKED_AT,
            "sort": [{"_score": "desc"}, {"mentions": "desc"}, {"name_id": "asc"}],
            "_source": {"excludes": ["grams"]},
            "track_total_hits": False,
        }
        search = GatedSearch(principal=principal, index=Index.ENTITIES, body=body)
        [page] = await self._gate.search_many([search])
        found = {row.name_id: row for row in (entity_row(hit.source) for hit in page.hits)}
        entities = await canonical_rows(self._gate, principal, found)
        best: dict[str, EntityLine] = {}
        for name_id, row in found.items():
            if name_id in entities:
                line = line_of(entities[name_id], matched=row.name)
                best.setdefault(line.entity_id, line)
        return list(best.values())


async def _lines(hits: Sequence[SearchHit]) -> list[EntityLine | None]:
    return [line_of(entity_row(hit.source)) for hit in hits]


def _only(**values: str | None) -> list[dict[str, Any]]:
    return [{"term": {name: value}} for name, value in values.items() if value is not None]


def _name(row: EntityRow) -> NameAnswer:
    return NameAnswer(name_id=row.name_id, name=row.name, mentions=row.mentions)


def _entry(source: Mapping[str, Any]) -> HistoryEntry:
    fields = ("event_id", "kind", "name", "undoes", "by", "at", "reason")
    return HistoryEntry(names=source["keys"], **{name: source[name] for name in fields})


def _proposal(
    row_id: str, source: Mapping[str, Any], entities: Mapping[str, EntityRow]
) -> ProposalAnswer | None:
    entity, other = entities.get(source["entity_id"]), entities.get(source["other_id"])
    if entity is None or other is None or entity.blocked or other.blocked:
        return None
    if entity.entity_id == other.entity_id:
        return None
    return ProposalAnswer(
        proposal_id=row_id,
        label=source["label"],
        namespace=source["namespace"],
        entity=line_of(entity),
        other=line_of(other),
        similarity=source["similarity"],
        reason=source["reason"],
    )
