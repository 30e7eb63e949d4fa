"""Answers of the memory and event routes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from search_api.models import Answer

EventKind = Literal["write", "update", "supersede", "forget", "erase"]
Stage = Literal["accepted", "ingested", "embedded", "extracted", "linked"]
State = Literal["accepted", "ingested", "searchable", "extracted", "linked", "failed", "overtaken"]
Milestone = Literal["ingested", "searchable", "linked"]


class StageTold(Answer):
    stage: Stage
    at: str


class FailureAnswer(Answer):
    reason: str = Field(description="Class of the error, as in dead letters.")


class EventAnswer(Answer):
    event_id: str
    doc_id: str
    path: str
    kind: EventKind
    version: int
    state: State = Field(
        description="searchable: words and vectors find it; overtaken: a newer word on the document came first, such "
        "as a person's edit; failed: it is in dead letters."
    )
    stages: list[StageTold] = Field(
        description="In this order: accepted, ingested, embedded, extracted, linked."
    )
    failure: FailureAnswer | None = None


class MemoryAnswer(Answer):
    """The write is in the log: it will be carried out, whatever ends meanwhile."""

    doc_id: str
    event_id: str
    path: str = Field(description="Of the file, below the vault.")
    version: int
    replayed: bool = Field(description="The idempotency key was known: this is the first write's answer.")
    event: EventAnswer


class MemoriesAnswer(Answer):
    memories: list[MemoryAnswer] = Field(description="In the order of the request.")
