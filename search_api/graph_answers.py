"""Answers of `/related` and `/graph` of a document; OpenAPI is made from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from search_api.models import Answer, DocumentName


class DocumentLine(DocumentName):
    abstract: str
    doc_type: str
    scope: str


class RelatedReason(Answer):
    kind: str = Field(
        description="wikilink, embed, reference, unlinked_mention, mention (both say a name), session, tags, "
        "category, terms."
    )
    text: str = Field(description="What makes it so: the sentence that says it, or what both have.")
    score: float


class RelatedDocument(Answer):
    document: DocumentLine
    score: float = Field(
        description="Sum of the best link, the best likeness, the best turn and what both name, each 0..1."
    )
    reasons: list[RelatedReason] = Field(description="The strongest first.")


class RelatedAnswer(Answer):
    related: list[RelatedDocument] = Field(description="The highest score first, ties by id.")


class GraphNode(Answer):
    id: str = Field(description="Id of the document or of the entity.")
    kind: Literal["document", "entity"]
    title: str = Field(description="Title of the document, or the entity's name.")
    hop: int = Field(description="Edges from the document that was asked for: 0 is itself.")
    path: str | None = None
    doc_type: str | None = None
    label: str | None = Field(None, description="Of an entity.")


class GraphEdge(Answer):
    source: str = Field(description="`id` of the node that says it; of a relation: the subject.")
    target: str
    kind: str = Field(
        description="wikilink, embed, reference, unlinked_mention, mention, relation, session, tags, category, "
        "terms."
    )
    weight: float = Field(description="0..1.")


class GraphAnswer(Answer):
    nodes: list[GraphNode] = Field(description="The nearest first.")
    edges: list[GraphEdge]
    capped: bool = Field(description="Caps left some nodes or edges out.")
