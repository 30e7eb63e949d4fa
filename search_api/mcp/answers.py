"""What the tools answer: the parts of the service's answers that a model needs. The schemas are made from them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from search_api.graph_answers import DocumentLine, RelatedReason
from search_api.models import DocumentName


class ToolAnswer(BaseModel):
    """Fields of the service's answers that a tool doesn't pass on are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FoundDocument(ToolAnswer):
    doc_id: str = Field(description="For read_file, related, backlinks, forget.")
    title: str
    path: str
    doc_type: str
    scope: str
    score: float
    excerpt: str | None = Field(description="The paragraph with what was found; null: read the file.")
    why: str = Field(description="What speaks for it.")
    updated_at: str | None
    invalid: str | None = Field(description="superseded, expired or not_yet_valid; null: valid now.")


class Found(ToolAnswer):
    documents: list[FoundDocument] = Field(description="Best first.")
    words_found: bool | None = Field(
        description="False: no document holds a word of the query, these are only the nearest in meaning."
    )
    next_cursor: str | None = Field(description="For the following page; null at the end.")


class ContextDocument(DocumentName):
    number: int = Field(description="As it stands in the text.")


class AssembledContext(ToolAnswer):
    text: str
    tokens: int
    documents: list[ContextDocument]
    left_out: int = Field(description="Documents that were found, for which was no room.")


class FilePage(ToolAnswer):
    doc_id: str
    path: str
    text: str
    start: int
    end: int
    total_chars: int
    next_start: int | None = Field(description="`start` of the following page; null at the end.")


class Change(ToolAnswer):
    doc_id: str
    event_id: str
    path: str
    state: str = Field(
        description="accepted (safe, not searchable yet), ingested (found by words), searchable, extracted, linked; "
        "failed, overtaken."
    )
    reason: str | None = Field(None, description="Why it failed.")


class Relative(ToolAnswer):
    document: DocumentLine
    score: float
    reasons: list[RelatedReason]


class RelatedDocuments(ToolAnswer):
    related: list[Relative] = Field(description="The closest first.")


class Backlink(ToolAnswer):
    document: DocumentName = Field(description="The one that links here.")
    link_type: str
    contexts: list[str] = Field(description="The text around each link.")


class Backlinks(ToolAnswer):
    links: list[Backlink]
    next_cursor: str | None


class EntityName(ToolAnswer):
    entity_id: str
    name: str
    label: str
    mention_count: int = Field(description="Documents that mention it.")


class EntityMention(ToolAnswer):
    document: DocumentName
    sentence: str
    weight: float = Field(description="Confidence, 0..1.")


class EntityRelation(ToolAnswer):
    subject: str
    relation: str
    object: str
    quote: str
    document: DocumentName


class EntityCard(ToolAnswer):
    entity: EntityName
    aliases: list[str]
    mentions: list[EntityMention] = Field(description="The most certain first.")
    relations: list[EntityRelation]
    others: list[EntityName] = Field(description="Others that the name may mean.")


def found_document(hit: dict[str, Any]) -> FoundDocument:
    excerpt = hit["excerpt"]
    return FoundDocument(
        **{name: hit[name] for name in ("doc_id", "title", "path", "doc_type", "scope", "updated_at")},
        score=round(hit["score"], 4),
        excerpt=None if excerpt is None else excerpt["text"],
        why="; ".join(dict.fromkeys(text for reason in hit["reasons"] if (text := _why(reason)))),
        invalid=hit.get("invalid"),
    )


def _why(reason: dict[str, Any]) -> str:
    match reason["part"]:
        case "keyword":
            return f"words: {', '.join(reason['matched_terms'])}" if reason["matched_terms"] else "words"
        case "vector":
            return "near in meaning"
        case "exact":
            return "named exactly"
        case "names":
            return f"names: {', '.join(one['name'] for one in reason['names'])}"
        case _:
            # Told of what the graph alone has brought.
            steps = [
                f"{step['from']['title']} –{step['kind']}– {step['to']['title']}" for step in reason["path"]
            ]
            return " → ".join(steps)


def change(written: dict[str, Any]) -> Change:
    event = written["event"]
    failure = event.get("failure")
    return Change(
        **{name: written[name] for name in ("doc_id", "event_id", "path")},
        state=event["state"],
        reason=None if failure is None else failure["reason"],
    )


def backlink(link: dict[str, Any]) -> Backlink:
    return Backlink(
        document=DocumentName(**link["from"]),
        link_type=link["link_type"],
        contexts=[" ".join(place["context"].split()) for place in link["occurrences"]],
    )


def relation(said: dict[str, Any]) -> EntityRelation:
    return EntityRelation(
        subject=said["subject"]["name"],
        relation=said["relation_type"],
        object=said["object"]["name"],
        quote=said["quote"],
        document=DocumentName(**said["document"]),
    )
