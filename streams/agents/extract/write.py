"""Rows that remember what was extracted, none left of what no longer stands. Repeating any of it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from indexers.domain.entities.labels import NamespaceLabels
from indexers.errors import PoisonRecord
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index
from streams.agents.documents import states_of
from streams.agents.extract.announce import Told, row_removal, row_write
from streams.agents.extract.subjects import Subject
from streams.batch import Poisoned


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """A document version with all that is told of it. `rejected`: mentions left out, by reason."""

    subject: Subject
    labels: NamespaceLabels
    fingerprint: str
    told: Told
    rejected: Mapping[str, int]
    #: Words that the model could not be shown (one of them alone is more than it takes).
    skipped_words: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A document that was deleted while it was extracted. `version`: of its deletion as far as it is known."""

    extraction: Extraction
    version: int


async def undone(gate: Gate, subjects: Sequence[tuple[Subject, str]]) -> list[Subject]:
    """Of upserts with their fingerprints: those whose row doesn't say that their events are with the broker."""
    refs = [RowRef(principal=s.namespace.principal, row_id=s.doc_id) for s, _ in subjects]
    fields = ("version", "fingerprint")
    rows = await gate.get_many(Index.EXTRACTIONS, refs, fields=fields) if refs else []
    return [
        subject
        for (subject, fingerprint), row in zip(subjects, rows, strict=True)
        if subject.whole
        or row is None
        or (row.source["version"], row.source["fingerprint"]) != (subject.version, fingerprint)
    ]


async def store_rows(
    gate: Gate, extractions: Sequence[Extraction], deletions: Sequence[Subject]
) -> list[Poisoned]:
    """Newer rows stay. Returns the records of documents whose row the store refuses."""
    writes = [
        row_write(e.subject, e.told, fingerprint=e.fingerprint, rejected=sum(e.rejected.values()))
        for e in extractions
    ]
    removals = [row_removal(subject) for subject in deletions]
    results = await gate.write([*writes, *removals]) if writes or removals else []
    return [
        Poisoned(
            record=extraction.subject.record,
            error=PoisonRecord("rejected_by_store", f"{extraction.subject.document.path}: {result.reason}"),
        )
        for extraction, result in zip(extractions, results, strict=False)
        if result.status == "rejected"
    ]


async def remove_overtaken(gate: Gate, extractions: Sequence[Extraction]) -> list[Gone]:
    """Own rows away again where the document changed or went meanwhile; those that went."""
    refs = [RowRef(principal=e.subject.namespace.principal, row_id=e.subject.doc_id) for e in extractions]
    states = await states_of(gate, refs)
    removals = []
    gone: list[Gone] = []
    for extraction in extractions:
        subject = extraction.subject
        state = states.get(subject.doc_id)
        if state is not None and not state.deleted and state.version <= subject.version:
            continue
        removals.append(row_removal(subject))
        if state is None:
            gone.append(Gone(extraction=extraction, version=subject.version))
        elif state.deleted:
            gone.append(Gone(extraction=extraction, version=state.version))
    if removals:
        await gate.write(removals)
    return gone
