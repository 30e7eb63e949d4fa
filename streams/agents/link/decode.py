"""Records of the mentions topic → the newest word on each (document, label), and curators' commands. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from indexers.domain.entities.curation import KINDS, CurationOp
from indexers.domain.identity import DocumentId, EntityNamespace, TenantId, check_label
from indexers.errors import PoisonRecord
from streams.batch import Poisoned, Record
from streams.events import CurationCommand, ExtractedMention, MentionsExtracted, decode, in_utc

#: The store finds no longer value, and ids take at most 512 bytes.
KEY_MAX_CHARS = 1_000
EVENT_ID_MAX_CHARS = 128
SOURCES = ("model", "pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One partition of the work: names of one label of one namespace. It has one writer, the partition's worker."""

    namespace: EntityNamespace
    label: str

    @property
    def tenant_id(self) -> TenantId:
        return self.namespace.tenant_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a record says of the mentions of one label in one document."""

    record: Record
    event: MentionsExtracted
    place: Place

    @property
    def doc_id(self) -> DocumentId:
        return DocumentId(self.event.doc_id)

    @property
    def is_deletion(self) -> bool:
        return self.event.kind == "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a curator says of names."""

    record: Record
    event: CurationCommand
    place: Place
    op: CurationOp


@dataclass(slots=True, kw_only=True)
class Decoded:
    words: list[Word]
    commands: list[Command]
    poisoned: list[Poisoned]


def decode_mentions(records: Sequence[Record]) -> Decoded:
    decoded = Decoded(words=[], commands=[], poisoned=[])
    for record in records:
        try:
            _decode_one(record, decoded)
        except PoisonRecord as error:
            decoded.poisoned.append(Poisoned(record=record, error=error))
    return decoded


def newest_of_each(words: Sequence[Word]) -> list[Word]:
    """In the order of the first records. Of one version the last one told: a text may be extracted again."""
    newest: dict[tuple[DocumentId, str], Word] = {}
    for word in words:
        key = (word.doc_id, word.event.label)
        present = newest.get(key)
        if present is None or word.event.version >= present.event.version:
            newest[key] = word
    return list(newest.values())


def op_of(event: CurationCommand) -> CurationOp:
    """ValueError where the command contradicts itself."""
    return CurationOp(
        event_id=event.event_id,
        version=event.version,
        kind=event.kind,
        keys=tuple(event.keys),
        name=event.name,
        undoes=event.undoes,
    )


def decode_command(value: bytes | None) -> CurationCommand:
    """Checked; raises PoisonRecord."""
    event = decode(value, CurationCommand)
    try:
        op_of(event)
        check_label(event.label)
        check_label(event.by)
        in_utc(event.occurred_at)
        _ = EntityNamespace.of(event.namespace)
    except ValueError as exc:
        raise PoisonRecord("invalid_fields", str(exc)) from exc
    if not 0 < len(event.event_id) <= EVENT_ID_MAX_CHARS:
        raise PoisonRecord("invalid_fields", "the event has no id, or one that is no id")
    if max(map(len, (*event.keys, event.name or "", event.undoes or ""))) > KEY_MAX_CHARS:
        raise PoisonRecord("invalid_fields", f"a name has at most {KEY_MAX_CHARS} characters")
    return event


def _decode_one(record: Record, decoded: Decoded) -> None:
    kind = _kind_of(record.value)
    if kind in KINDS:
        command = decode_command(record.value)
        place = _place(record, EntityNamespace.of(command.namespace), command.label)
        decoded.commands.append(Command(record=record, event=command, place=place, op=op_of(command)))
    else:
        event = decode(record.value, MentionsExtracted)
        _check(event)
        place = _place(record, EntityNamespace.of(event.namespace), event.label)
        decoded.words.append(Word(record=record, event=event, place=place))


def _kind_of(value: bytes | None) -> str | None:
    """None: let the strict decoder say what is wrong."""
    try:
        return msgspec.json.decode(value or b"", type=_Kind).kind
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _place(record: Record, namespace: EntityNamespace, label: str) -> Place:
    """On another partition another worker would write the same names."""
    if record.key != namespace.record_key(label):
        raise PoisonRecord("invalid_fields", "the record's key is not that of tenant, namespace and label")
    return Place(namespace=namespace, label=label)


def _check(event: MentionsExtracted) -> None:
    if event.kind not in ("upserted", "deleted"):
        raise PoisonRecord(
            "invalid_fields", f"kind {event.kind!r} is neither upserted, deleted nor a curator's"
        )
    if event.doc_id != event.document.doc_id:
        raise PoisonRecord("invalid_fields", "doc_id is not the id of tenant, agent, scope and path")
    if event.kind == "deleted" and event.mentions:
        raise PoisonRecord("invalid_fields", "a deleted document mentions nothing")
    try:
        check_label(event.label)
    except ValueError as exc:
        raise PoisonRecord("invalid_fields", f"label: {exc}") from exc
    for mention in event.mentions:
        _check_mention(mention)


def _check_mention(mention: ExtractedMention) -> None:
    if mention.start < 0 or mention.end - mention.start != len(mention.surface) or not mention.surface:
        reason = (
            f"a mention of {len(mention.surface)} characters can't stand at {mention.start}–{mention.end}"
        )
        raise PoisonRecord("invalid_fields", reason)
    if not (math.isfinite(mention.weight) and 0 <= mention.weight <= 1):
        raise PoisonRecord("invalid_fields", f"weight {mention.weight} is not between 0 and 1")
    if mention.source not in SOURCES:
        raise PoisonRecord("invalid_fields", f"source {mention.source!r} is none of {', '.join(SOURCES)}")


class _Kind(msgspec.Struct):
    kind: str
