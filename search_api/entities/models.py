"""Answers and bodies of the entity routes; OpenAPI is made from them."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from indexers.domain.entities.labels import (
    DEFAULT_THRESHOLD,
    DESCRIPTION_MAX_CHARS,
    LABELS_MAX,
    PATTERN_MAX_CHARS,
    PATTERNS_MAX,
    THRESHOLD_MIN,
)
from search_api.models import Answer, DocumentName
from search_api.requests import Request, clean_text

NAME_MAX_CHARS = 200
REASON_MAX_CHARS = 500


class NameAnswer(Answer):
    """One of an entity's names."""

    name_id: str
    name: str
    mentions: int = Field(description="Documents that mention this name.")


class EntityAnswer(Answer):
    entity_id: str = Field(description="Id of the canonical name; ids of other names lead here too.")
    name: str
    label: str
    namespace: str = Field(description="`shared`, `team:<team>` or `agent:<agent>`.")
    mention_count: int = Field(description="Documents that mention any of the entity's names.")
    blocked: bool = Field(
        description="A curator said that this name is noise; it is listed only when asked for."
    )
    aliases: list[NameAnswer] = Field(
        description="The other names, those with most mentions first, at most 100."
    )


class EntityLine(Answer):
    entity_id: str
    name: str
    label: str
    namespace: str
    mention_count: int
    blocked: bool
    matched: str | None = Field(
        None, description="The name that the words of `q` found, where it isn't `name`."
    )


class EntitiesAnswer(Answer):
    entities: list[EntityLine]
    next_cursor: str | None


class PlaceAnswer(Answer):
    start: int = Field(description="Offset of the first code point in the document's text.")
    end: int
    surface: str = Field(description="As written there.")
    weight: float = Field(description="Confidence, 0 to 1.")
    sentence: str


class MentionAnswer(Answer):
    """Where a document says a name of the entity; `places` holds the first 20 of `count`."""

    document: DocumentName
    name_id: str
    surface: str
    weight: float
    sentence: str
    start: int
    end: int
    count: int
    source: str = Field(description="`model` or `pattern`.")
    places: list[PlaceAnswer]


class MentionsAnswer(Answer):
    mentions: list[MentionAnswer]
    next_cursor: str | None


class DocumentMentionAnswer(Answer):
    entity: EntityLine
    surface: str
    weight: float
    sentence: str
    start: int
    end: int
    count: int
    source: str


class DocumentMentionsAnswer(Answer):
    mentions: list[DocumentMentionAnswer]
    next_cursor: str | None


class RelationEnd(Answer):
    entity_id: str | None = Field(description="Null where no visible document mentions the name.")
    name: str
    label: str


class RelationAnswer(Answer):
    subject: RelationEnd
    relation_type: str
    object: RelationEnd
    quote: str
    start: int
    end: int
    document: DocumentName


class RelationsAnswer(Answer):
    relations: list[RelationAnswer]
    next_cursor: str | None


class CommandAnswer(Answer):
    """A curator's command was taken: it stands in the log of the pipeline and will be carried out in order."""

    event_id: str


class CommandState(Answer):
    event_id: str
    state: Literal["accepted", "applied"] = Field(
        description="`applied`: it stands in the vault's journal and the names follow at once. `accepted`: not yet, "
        "or never heard of."
    )


class HistoryEntry(Answer):
    event_id: str
    kind: str
    names: list[str] = Field(description="Normalised names that it speaks of.")
    name: str | None
    undoes: str | None
    by: str
    at: str
    reason: str | None


class HistoryAnswer(Answer):
    history: list[HistoryEntry] = Field(description="Newest first, at most 100.")


class ProposalAnswer(Answer):
    proposal_id: str
    label: str
    namespace: str
    entity: EntityLine
    other: EntityLine
    similarity: float
    reason: str = Field(description="`similar` or `conflicting_tokens`.")


class ProposalsAnswer(Answer):
    proposals: list[ProposalAnswer]
    next_cursor: str | None


class Body(Request):
    model_config = ConfigDict(str_strip_whitespace=True)


Reason = Annotated[
    Annotated[str, Field(max_length=REASON_MAX_CHARS), AfterValidator(clean_text)] | None,
    Field(description="Why, for the audit."),
]


class DecisionBody(Body):
    reason: Reason = None


class MergeBody(Body):
    other_id: str = Field(description="The entity to join with; of the same label and namespace.")
    reason: Reason = None


class UnmergeBody(Body):
    """Exactly one of the two: the merge that is taken back, or the name that leaves the entity."""

    merge_event_id: Annotated[str, Field(max_length=128), AfterValidator(clean_text)] | None = Field(
        None, description="`event_id` of the merge or acceptance."
    )
    name_id: str | None = Field(None, description="One of the entity's aliases.")
    reason: Reason = None


def _shown_name(value: str) -> str:
    name = " ".join(clean_text(value).split())
    # A letter, digit, sign or symbol: marks of no width alone could neither be read nor pointed at.
    if not any(unicodedata.category(char)[0] in "LNPS" for char in name):
        msg = "give a name that can be seen"
        raise ValueError(msg)
    return name


class RenameBody(Body):
    name: Annotated[str, Field(max_length=NAME_MAX_CHARS), AfterValidator(_shown_name)] = Field(
        description="How people shall read it."
    )
    reason: Reason = None


class LabelBody(Body):
    """A kind of thing that the model looks for."""

    name: str = Field(max_length=64, description="Letters, digits, `_`, `.` and `-`.")
    prompt: str = Field(
        "", max_length=100, description="What the model reads, in a few plain words; else the name."
    )
    threshold: float = Field(
        DEFAULT_THRESHOLD, ge=THRESHOLD_MIN, le=1, description="Least confidence of a mention."
    )
    description: str = Field("", max_length=DESCRIPTION_MAX_CHARS, description="For people.")


class PatternBody(Request):
    """What the regular expression finds is named so, whatever the model says."""

    label: str = Field(max_length=64)
    pattern: str = Field(min_length=1, max_length=PATTERN_MAX_CHARS)


class LabelsBody(Body):
    """What is looked for. `version`: of the labels that this is based on; another one by now is 409."""

    labels: list[LabelBody] = Field(max_length=LABELS_MAX)
    patterns: list[PatternBody] = Field([], max_length=PATTERNS_MAX)
    version: int | None = None


class ProgressAnswer(Answer):
    done: int = Field(description="Documents extracted as they would be now.")
    total: int


class LabelsAnswer(Answer):
    namespace: str
    labels: list[dict[str, Any]]
    patterns: list[dict[str, Any]]
    retired: list[str] = Field(description="Labels that stood here before.")
    version: int
    updated_by: str | None
    updated_at: str | None
    problem: str | None = Field(
        description="Why what is stored can't be used, else null. Nothing is extracted until it is mended."
    )
    progress: ProgressAnswer
