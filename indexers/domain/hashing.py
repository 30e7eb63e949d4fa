"""Hashes, and the gate that lets an unchanged file pass without work. Pure."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Protocol


class Decision(StrEnum):
    """What to do with an event. Both skips are successes that change nothing."""

    INDEX = "index"
    SKIP_SAME = "skip_same"
    SKIP_OLDER = "skip_older"


class GateState(Protocol):
    """What is fully indexed of one document: the gate row, written last of all."""

    @property
    def content_hash(self) -> str: ...
    @property
    def versions(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def event_id(self) -> str: ...
    @property
    def deleted(self) -> bool: ...


def content_hash(raw: bytes) -> str:
    """SHA-256 of the file's raw bytes: a touched file keeps it, a changed line ending doesn't."""
    return written_hash(hashlib.sha256(raw).hexdigest())


def written_hash(sha256: str) -> str:
    """How a content hash is written in events and rows, of what was hashed piece by piece too (hex digits)."""
    return f"sha256:{sha256}"


def text_hash(text: str) -> str:
    """The same of a text; lone surrogates (never from a decoded file) don't raise."""
    return content_hash(text.encode("utf-8", "surrogatepass"))


def versions_fingerprint(parser: str, chunker: str, model_id: str, health: str) -> str:
    """Everything but the bytes that decides what is stored: another fingerprint means index again."""
    return f"{parser}|{chunker}|{model_id}|{health}"


def decide(
    *, event_version: int, event_id: str, content_hash: str | None, versions: str, row: GateState | None
) -> Decision:
    """Gate an upsert (`content_hash`) or a deletion (None) against what is indexed.

    Newer wins, ties by event id. The very event that the row names is done, unless parser, chunker, model or
    health rules are others now. A deletion of an unknown document is work too: its tombstone keeps a late update
    out. So is a newer deletion of a deleted one: its tombstone must keep out what came between the two.
    """
    if row is None:
        return Decision.INDEX
    if (event_version, event_id) < (row.version, row.event_id):
        return Decision.SKIP_OLDER
    if content_hash is None:
        done = row.deleted and (event_version, event_id) == (row.version, row.event_id)
        return Decision.SKIP_SAME if done else Decision.INDEX
    if not row.deleted and row.content_hash == content_hash and row.versions == versions:
        return Decision.SKIP_SAME
    return Decision.INDEX
