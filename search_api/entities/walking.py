"""Edges of the graph: from an entity to documents and other entities, from a document to entities. Reads only.

An edge is shown while its document's present version says it, and while neither end is blocked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, SearchHit
from indexers.opensearch.rows import EntityRow, Index
from search_api.entities.models import (
    DocumentMentionAnswer,
    DocumentMentionsAnswer,
    MentionAnswer,
    MentionsAnswer,
    PlaceAnswer,
    RelationAnswer,
    RelationEnd,
    RelationsAnswer,
)
from search_api.entities.rows import all_names, canonical_rows, entity_of, line_of
from search_api.paging import RowList, SortKey, read_page
from search_api.problems import no_such
from search_api.stored import document_name, is_id, living_documents

_BY_WEIGHT: Final = (
    SortKey(field="weight", kind="fraction"),
    SortKey(field="doc_id"),
    SortKey(field="name_id"),
)
_BY_TYPE: Final = tuple(
    SortKey(field=name) for name in ("relation_type", "doc_id", "subject_id", "object_id")
)
_SHOWN: Final = ("surface", "weight", "sentence", "start", "end", "count", "source")


class Walks:
    """Raises ProblemError: 404 alike for what isn't there and what the principal may not see."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def mentions(
        self, principal: Principal, entity_id: str, *, size: int, cursor: str | None
    ) -> MentionsAnswer:
        """The most certain first. Of a blocked entity too: that is how one is looked at before it is unblocked."""
        row = await entity_of(self._gate, principal, entity_id)
        names = [name.name_id for name in await all_names(self._gate, principal, row)]
        rows = RowList(
            name=("mentions", row.entity_id),
            index=Index.MENTIONS,
            query={"bool": {"filter": [{"terms": {"name_id": names}}]}},
            sort=_BY_WEIGHT,
        )

        async def show(hits: Sequence[SearchHit]) -> list[MentionAnswer | None]:
            documents = await living_documents(self._gate, principal, [h.source["doc_id"] for h in hits])
            return [_mention(hit.source, documents) for hit in hits]

        shown, following = await read_page(self._gate, principal, rows, show, cursor=cursor, size=size)
        return MentionsAnswer(mentions=shown, next_cursor=following)

    async def mentioned_in(
        self, principal: Principal, doc_id: str, *, size: int, cursor: str | None
    ) -> DocumentMentionsAnswer:
        """What one document mentions, the most certain first. Two names of one entity are two edges."""
        documents = await living_documents(self._gate, principal, [doc_id]) if is_id(doc_id) else {}
        if doc_id not in documents:
            raise no_such("document")
        present = [{"term": {"doc_id": doc_id}}, {"term": {"version": documents[doc_id]["version"]}}]
        rows = RowList(
            name=("mentioned", doc_id),
            index=Index.MENTIONS,
            query={"bool": {"filter": present}},
            sort=_BY_WEIGHT,
        )

        async def show(hits: Sequence[SearchHit]) -> list[DocumentMentionAnswer | None]:
            ids = [hit.source["name_id"] for hit in hits]
            entities = await canonical_rows(self._gate, principal, ids)
            return [_mentioned(hit.source, entities.get(hit.source["name_id"])) for hit in hits]

        shown, following = await read_page(self._gate, principal, rows, show, cursor=cursor, size=size)
        return DocumentMentionsAnswer(mentions=shown, next_cursor=following)

    async def relations(
        self, principal: Principal, entity_id: str, *, size: int, cursor: str | None
    ) -> RelationsAnswer:
        """Relations with the entity on either side, by type."""
        row = await entity_of(self._gate, principal, entity_id)
        names = [name.name_id for name in await all_names(self._gate, principal, row)]
        either = [{"terms": {"subject_id": names}}, {"terms": {"object_id": names}}]
        rows = RowList(
            name=("relations", row.entity_id),
            index=Index.RELATIONS,
            query={"bool": {"filter": [{"bool": {"should": either, "minimum_should_match": 1}}]}},
            sort=_BY_TYPE,
        )

        async def show(hits: Sequence[SearchHit]) -> list[RelationAnswer | None]:
            documents = await living_documents(self._gate, principal, [h.source["doc_id"] for h in hits])
            ends = [hit.source[side] for hit in hits for side in ("subject_id", "object_id")]
            entities = await canonical_rows(self._gate, principal, ends)
            return [_relation(hit.source, documents, entities, row.entity_id) for hit in hits]

        shown, following = await read_page(self._gate, principal, rows, show, cursor=cursor, size=size)
        return RelationsAnswer(relations=shown, next_cursor=following)


def _saying(
    source: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The document, if its present version is the one that the edge is of."""
    document = documents.get(source["doc_id"])
    return document if document is not None and document["version"] == source["version"] else None


def _mention(source: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> MentionAnswer | None:
    document = _saying(source, documents)
    if document is None:
        return None
    return MentionAnswer(
        document=document_name(document),
        name_id=source["name_id"],
        places=[PlaceAnswer(**place) for place in source["occurrences"]],
        **{name: source[name] for name in _SHOWN},
    )


def _mentioned(source: Mapping[str, Any], entity: EntityRow | None) -> DocumentMentionAnswer | None:
    if entity is None or entity.blocked:
        return None
    return DocumentMentionAnswer(entity=line_of(entity), **{name: source[name] for name in _SHOWN})


def _relation(
    source: Mapping[str, Any],
    documents: Mapping[str, Mapping[str, Any]],
    entities: Mapping[str, EntityRow],
    asked: str,
) -> RelationAnswer | None:
    """None also where the other end is blocked: a walk must not pass it."""
    document = _saying(source, documents)
    ends = {side: entities.get(source[f"{side}_id"]) for side in ("subject", "object")}
    if document is None or any(e is not None and e.blocked and e.entity_id != asked for e in ends.values()):
        return None

    def end(side: str) -> RelationEnd:
        entity = ends[side]
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
