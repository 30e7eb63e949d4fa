"""What is told of an extraction: one event a label, and the row that remembers it. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from indexers.domain.entities.names import name_key
from indexers.domain.identity import Principal
from indexers.extraction import Extracted, FoundMention
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import ExtractionRow, Index, owner_fields
from streams.agents.extract.subjects import Subject
from streams.event_fields import new_event_fields
from streams.events import ExtractedMention, MentionsExtracted, encode
from streams.producer import OutgoingRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One document version as it is told of. `kept`: mentions in the events; `left_out`: those that had no room."""

    events: tuple[OutgoingRecord, ...]
    kept: tuple[FoundMention, ...]
    left_out: int


def tell(subject: Subject, extracted: Extracted, names: Sequence[str], *, topic: str, max_bytes: int) -> Told:
    """One event for each of `names` (labels), empty lists included: what isn't told is gone from the document."""
    by_label: defaultdict[str, list[FoundMention]] = defaultdict(list)
    for mention in extracted.mentions:
        by_label[mention.label].append(mention)
    events: list[OutgoingRecord] = []
    kept: list[FoundMention] = []
    for label in names:
        record, fitting = _fitting(subject, label, by_label.get(label, []), topic=topic, max_bytes=max_bytes)
        events.append(record)
        kept += fitting
    found = sum(len(by_label[label]) for label in names if label in by_label)
    return Told(events=tuple(events), kept=tuple(kept), left_out=found - len(kept))


def tell_end(
    subject: Subject, names: Iterable[str], *, topic: str, version: int | None = None
) -> list[OutgoingRecord]:
    """The document is gone: of every label. `version`: of its deletion, where that isn't the subject's."""
    return [_record(subject, label, [], topic=topic, kind="deleted", version=version) for label in names]


def row_write(subject: Subject, told: Told, *, fingerprint: str, rejected: int) -> RowWrite:
    names = {(m.label, key) for m in told.kept if (key := name_key(m.surface, m.label))}
    row = ExtractionRow(
        **owner_fields(subject.namespace),
        doc_id=subject.doc_id,
        namespace=subject.owner.owner,
        version=subject.version,
        fingerprint=fingerprint,
        mentions=len(names),
        rejected=rejected,
    )
    return RowWrite(
        principal=subject.namespace.principal,
        index=Index.EXTRACTIONS,
        row_id=subject.doc_id,
        action="index",
        row=row,
        version=subject.version,
    )


def row_removal(subject: Subject) -> RowWrite:
    """Never a row of a newer version: that is another event's affair."""
    return RowWrite(
        principal=Principal.pipeline(subject.namespace.tenant_id),
        index=Index.EXTRACTIONS,
        row_id=subject.doc_id,
        action="delete",
        version=subject.version,
    )


def _fitting(
    subject: Subject, label: str, mentions: list[FoundMention], *, topic: str, max_bytes: int
) -> tuple[OutgoingRecord, list[FoundMention]]:
    """The event within the broker's limit: every name once before any twice, the surest first."""
    record = _record(subject, label, mentions, topic=topic)
    ranked: list[FoundMention] | None = None
    while len(record.value or b"") > max_bytes and mentions:
        ranked = _ranked(mentions) if ranked is None else ranked
        del ranked[min(len(ranked) - 1, len(ranked) * max_bytes // len(record.value or b"") * 9 // 10) :]
        mentions = sorted(ranked, key=lambda mention: mention.start)
        record = _record(subject, label, mentions, topic=topic)
    return record, mentions


def _ranked(mentions: Sequence[FoundMention]) -> list[FoundMention]:
    seen: Counter[str] = Counter()
    placed: list[tuple[int, float, int, FoundMention]] = []
    for mention in sorted(mentions, key=lambda m: (-m.weight, m.start)):
        placed.append((seen[mention.surface], -mention.weight, mention.start, mention))
        seen[mention.surface] += 1
    return [mention for *_, mention in sorted(placed, key=lambda place: place[:3])]


def _record(
    subject: Subject,
    label: str,
    mentions: Sequence[FoundMention],
    *,
    topic: str,
    kind: str = "upserted",
    version: int | None = None,
) -> OutgoingRecord:
    event = MentionsExtracted(
        **new_event_fields(subject.namespace),
        version=subject.version if version is None else version,
        path=subject.document.path,
        kind=kind,
        doc_id=subject.doc_id,
        label=label,
        changed_at=subject.changed_at,
        erased=kind == "deleted" and subject.erased,
        mentions=[
            ExtractedMention(
                surface=mention.surface,
                start=mention.start,
                end=mention.end,
                weight=mention.weight,
                sentence=mention.sentence,
                source=mention.source,
            )
            for mention in mentions
        ],
        # Nobody waits for a label that the document never mentioned.
        tracks=list(subject.tracks) if mentions or kind == "deleted" else [],
    )
    return OutgoingRecord(topic=topic, key=subject.owner.record_key(label), value=encode(event))
