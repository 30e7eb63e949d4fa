"""Entities, where they are mentioned, what is said of them, and what may be one. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, GatedSearch
from indexers.opensearch.rows import EntityRow, Index
from search_api.cursor import fingerprint
from search_api.entities.models import (
    CommandState,
    DocumentMentionAnswer,
    DocumentMentionsAnswer,
    EntitiesAnswer,
    EntityAnswer,
    HistoryAnswer,
    HistoryEntry,
    MentionAnswer,
    MentionsAnswer,
    NameAnswer,
    PlaceAnswer,
    ProposalAnswer,
    ProposalsAnswer,
    RelationAnswer,
    RelationEnd,
    RelationsAnswer,
)
from search_api.entities.rows import (
    canonical_rows,
    document_name,
    entity_of,
    entity_row,
    is_id,
    line_of,
    list_page,
    living_documents,
    names_of,
    no_such,
)

_ALIASES_SHOWN: Final = 100
_HISTORY_SHOWN: Final = 100
#: Names looked at for the words of a query: several may be of one entity.
_NAMES_LOOKED_AT: Final = 200
_BY_WEIGHT: Final = ({"weight": "desc"}, {"doc_id": "asc"}, {"name_id": "asc"})


class Entities:
    """Raises ProblemError: 404 alike for what isn't there and what the principal may not see."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def get(self, principal: Principal, entity_id: str) -> EntityAnswer:
        row = await entity_of(self._gate, principal, entity_id)
        names = await names_of(self._gate, principal, row.entity_id)
        others = [name for name in names if name.name_id != row.entity_id]
        line = line_of(row)
        return EntityAnswer(
            **line.model_dump(exclude={"matched"}),
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
        terms: list[dict[str, Any]] = [{"term": {"blocked": blocked}}]
        if label is not None:
            terms.append({"term": {"label": label}})
        if namespace is not None:
            terms.append({"term": {"namespace": namespace}})
        if words is not None:
            return await self._named(principal, words, terms, size)
        query = {"bool": {"filter": [*terms, {"term": {"canonical": True}}]}}
        list_name = fingerprint(
            "entities", principal.tenant_id, principal.agent_id, label, namespace, blocked
        )
        sort = ({"mention_count": "desc"}, {"name_id": "asc"})
        hits, following = await list_page(
            self._gate, principal, Index.ENTITIES, query, sort,
            list_name=list_name, cursor=cursor, size=size,
        )  # fmt: skip
        return EntitiesAnswer(
            entities=[line_of(entity_row(hit.source)) for hit in hits], next_cursor=following
        )

    async def mentions(
        self, principal: Principal, entity_id: str, *, size: int, cursor: str | None
    ) -> MentionsAnswer:
        """The strongest first. Edges of a version that its document has left behind are passed over."""
        row = await entity_of(self._gate, principal, entity_id)
        names = await names_of(self._gate, principal, row.entity_id)
        query = {"bool": {"filter": [{"terms": {"name_id": [name.name_id for name in names]}}]}}
        list_name = fingerprint("mentions", principal.tenant_id, principal.agent_id, row.entity_id)
        hits, following = await list_page(
            self._gate, principal, Index.MENTIONS, query, _BY_WEIGHT,
            list_name=list_name, cursor=cursor, size=size,
        )  # fmt: skip
        documents = await living_documents(self._gate, principal, [h.source["doc_id"] for h in hits])
        shown = [
            _mention(h.source, documents[h.source["doc_id"]]) for h in hits if _stands(h.source, documents)
        ]
        return MentionsAnswer(mentions=shown, next_cursor=following)

    async def mentioned_in(
        self, principal: Principal, doc_id: str, *, size: int, cursor: str | None
    ) -> DocumentMentionsAnswer:
        """What one document mentions, the strongest first; blocked entities are left out."""
        documents = await living_documents(self._gate, principal, [doc_id]) if is_id(doc_id) else {}
        if doc_id not in documents:
            raise no_such("document")
        version = documents[doc_id]["version"]
        query = {"bool": {"filter": [{"term": {"doc_id": doc_id}}, {"term": {"version": version}}]}}
        list_name = fingerprint("mentioned", principal.tenant_id, principal.agent_id, doc_id)
        hits, following = await list_page(
            self._gate, principal, Index.MENTIONS, query, _BY_WEIGHT,
            list_name=list_name, cursor=cursor, size=size,
        )  # fmt: skip
        entities = await canonical_rows(self._gate, principal, [hit.source["name_id"] for hit in hits])
        shown = [
            _mentioned(hit.source, entity)
            for hit in hits
            if (entity := entities.get(hit.source["name_id"])) is not None and not entity.blocked
        ]
        return DocumentMentionsAnswer(mentions=shown, next_cursor=following)

    async def relations(
        self, principal: Principal, entity_id: str, *, size: int, cursor: str | None
    ) -> RelationsAnswer:
        """Relations with the entity on either side, by type."""
        row = await entity_of(self._gate, principal, entity_id)
        ids = [name.name_id for name in await names_of(self._gate, principal, row.entity_id)]
        either = [{"terms": {"subject_id": ids}}, {"terms": {"object_id": ids}}]
        query = {"bool": {"filter": [{"bool": {"should": either, "minimum_should_match": 1}}]}}
        sort = ({"relation_type": "asc"}, {"doc_id": "asc"}, {"subject_id": "asc"}, {"object_id": "asc"})
        list_name = fingerprint("relations", principal.tenant_id, principal.agent_id, row.entity_id)
        hits, following = await list_page(
            self._gate, principal, Index.RELATIONS, query, sort,
            list_name=list_name, cursor=cursor, size=size,
        )  # fmt: skip
        documents = await living_documents(self._gate, principal, [h.source["doc_id"] for h in hits])
        sources = [hit.source for hit in hits if _stands(hit.source, documents)]
        ends = [source[side] for source in sources for side in ("subject_id", "object_id")]
        entities = await canonical_rows(self._gate, principal, ends)
        return RelationsAnswer(
            relations=[_relation(source, documents[source["doc_id"]], entities) for source in sources],
            next_cursor=following,
        )

    async def history(self, principal: Principal, entity_id: str) -> HistoryAnswer:
        """What curators said about any of the entity's names."""
        row = await entity_of(self._gate, principal, entity_id)
        keys = [name.key for name in await names_of(self._gate, principal, row.entity_id)]
        terms = [
            {"term": {"namespace": row.namespace}},
            {"term": {"label": row.label}},
            {"terms": {"keys": keys}},
        ]
        body = {
            "query": {"bool": {"filter": terms}},
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
        """The most alike first."""
        terms = [
            {"term": {name: value}} for name, value in (("label", label), ("namespace", namespace)) if value
        ]
        query = {"bool": {"filter": terms}} if terms else {"match_all": {}}
        list_name = fingerprint("proposals", principal.tenant_id, principal.agent_id, label, namespace)
        sort = ({"similarity": "desc"}, {"entity_id": "asc"}, {"other_id": "asc"})
        hits, following = await list_page(
            self._gate, principal, Index.PROPOSALS, query, sort,
            list_name=list_name, cursor=cursor, size=size,
        )  # fmt: skip
        ids = [hit.source[side] for hit in hits for side in ("entity_id", "other_id")]
        entities = await canonical_rows(self._gate, principal, ids)
        return ProposalsAnswer(
            proposals=[
                _proposal(hit.row_id, hit.source, entities)
                for hit in hits
                if {hit.source["entity_id"], hit.source["other_id"]} <= set(entities)
            ],
            next_cursor=following,
        )

    async def _named(
        self, principal: Principal, words: str, terms: list[dict[str, Any]], size: int
    ) -> EntitiesAnswer:
        match = {"multi_match": {"query": words, "fields": ["name", "name.code^2"], "type": "most_fields"}}
        body = {
            "query": {"bool": {"must": [match], "filter": terms}},
            "size": _NAMES_LOOKED_AT,
            "sort": [{"_score": "desc"}, {"mentions": "desc"}, {"name_id": "asc"}],
            "track_total_hits": False,
        }
        search = GatedSearch(principal=principal, index=Index.ENTITIES, body=body)
        [page] = await self._gate.search_many([search])
        best: dict[str, EntityRow] = {}
        for hit in page.hits:
            row = entity_row(hit.source)
            best.setdefault(row.entity_id, row)
        chosen = list(best.values())[:size]
        entities = await canonical_rows(self._gate, principal, [row.name_id for row in chosen])
        return EntitiesAnswer(
            entities=[
                line_of(entities[row.name_id], matched=row.name) for row in chosen if row.name_id in entities
            ],
            next_cursor=None,
        )


def _name(row: EntityRow) -> NameAnswer:
    return NameAnswer(name_id=row.name_id, name=row.name, mentions=row.mentions)


def _stands(source: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> bool:
    document = documents.get(source["doc_id"])
    return document is not None and document["version"] == source["version"]


def _mention(source: Mapping[str, Any], document: Mapping[str, Any]) -> MentionAnswer:
    fields = {name: source[name] for name in _SHOWN}
    places = [PlaceAnswer(**place) for place in source["occurrences"]]
    return MentionAnswer(document=document_name(document), name_id=source["name_id"], places=places, **fields)


def _mentioned(source: Mapping[str, Any], entity: EntityRow) -> DocumentMentionAnswer:
    return DocumentMentionAnswer(entity=line_of(entity), **{name: source[name] for name in _SHOWN})


_SHOWN: Final = ("surface", "weight", "sentence", "start", "end", "count", "source")


def _relation(
    source: Mapping[str, Any], document: Mapping[str, Any], entities: Mapping[str, EntityRow]
) -> RelationAnswer:
    def end(side: str) -> RelationEnd:
        entity = entities.get(source[f"{side}_id"])
        return RelationEnd(
            entity_id=None if entity is None else entity.entity_id,
            name=source[side],
            label=source[f"{side}_label"],
        )

    return RelationAnswer(
        subject=end("subject"),
        relation_type=source["relation_type"],
        object=end("object"),
        quote=source["quote"],
        start=source["start"],
        end=source["end"],
        document=document_name(document),
    )


def _entry(source: Mapping[str, Any]) -> HistoryEntry:
    fields = ("event_id", "kind", "name", "undoes", "by", "at", "reason")
    return HistoryEntry(names=source["keys"], **{name: source[name] for name in fields})


def _proposal(row_id: str, source: Mapping[str, Any], entities: Mapping[str, EntityRow]) -> ProposalAnswer:
    return ProposalAnswer(
        proposal_id=row_id,
        label=source["label"],
        namespace=source["namespace"],
        entity=line_of(entities[source["entity_id"]]),
        other=line_of(entities[source["other_id"]]),
        similarity=source["similarity"],
        reason=source["reason"],
    )
