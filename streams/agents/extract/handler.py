"""The extract agent's batch: texts, mentions of the namespace's labels, events for link, the row that remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

import structlog

from indexers.control import StoredLabels, read_labels
from indexers.domain.identity import DocumentId, EntityNamespace
from indexers.errors import PoisonRecord
from indexers.extraction import Extracted
from indexers.model_calls import TextToExtract
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import EventRow
from streams.agents.documents import Word, current_words, decode_words, newest_of_each, read_text
from streams.agents.extract.announce import tell, tell_end
from streams.agents.extract.model import Model
from streams.agents.extract.requests import PAGE_DOCUMENTS, Asked, Turned, decode_requests, turn_page
from streams.agents.extract.subjects import Subject, newest_subjects, of_word
from streams.agents.extract.write import Extraction, remove_overtaken, store_rows, undone
from streams.agents.progress import Progress, of_tracks, stages
from streams.agents.vaults import Vaults
from streams.batch import Poisoned, Record
from streams.context import AgentContext
from streams.extract_requests import request_record
from streams.producer import OutgoingRecord

Labels = Mapping[EntityNamespace, StoredLabels]
_log = structlog.get_logger("hopline.streams.extract")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A batch after the model. `outdated`, `done`: documents that have changed since, that need nothing."""

    extractions: list[Extraction]
    deletions: list[Subject]
    turned: list[Turned]
    labels: Labels
    poisoned: list[Poisoned]
    outdated: int
    done: int
    #: Decoded words, and those of them that no later event has overtaken.
    words: list[Word] = field(default_factory=list)
    current: list[Word] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ExtractHandler:
    """`BatchHandler` of the extract agent. `files`: a thread for vault reads, apart from the model's."""

    gate: Gate
    vaults: Vaults
    model: Model
    context: AgentContext
    progress: Progress
    files: Executor
    document_max_bytes: int
    event_max_bytes: int

    async def prepare(self, records: Sequence[Record]) -> Prepared:
        requests = self.context.spec.topics.extract_requests
        words, poisoned = decode_words([r for r in records if r.topic != requests])
        asked, bad = decode_requests([r for r in records if r.topic == requests])
        newest = newest_of_each(words)
        current = await self.context.hold("opensearch", lambda: current_words(self.gate, newest))
        told_of = [of_word(word) for word in current]
        labels = await self._labels([*(s.owner for s in told_of), *(a.owner for a in asked)])
        turned = await self.context.hold("opensearch", lambda: self._turn(asked, labels))
        subjects = newest_subjects([*told_of, *(s for page in turned for s in page.subjects)])
        usable = [subject for subject in subjects if labels[subject.owner].problem is None]
        deletions = [subject for subject in usable if subject.is_deletion]
        upserts = [(s, self._fingerprint(s, labels)) for s in usable if not s.is_deletion]
        wanted = await self.context.hold("opensearch", lambda: undone(self.gate, upserts))
        texts, unreadable = await self._texts(wanted, labels)
        extractions, refused = await self._extract(wanted, texts, labels)
        unread = {subject.record.place for subject in wanted if subject.doc_id not in texts}
        return Prepared(
            extractions=extractions,
            deletions=deletions,
            turned=turned,
            labels=labels,
            poisoned=_once_each(
                [*poisoned, *bad, *_unusable([*told_of, *asked], labels), *unreadable, *refused]
            ),
            outdated=len(words) - len(current) + len(wanted) - len(texts) - len(unreadable),
            done=len(upserts) - len(wanted),
            words=words,
            current=[word for word in current if word.record.place not in unread],
        )

    async def commit(self, prepared: Prepared) -> None:
        extractions, deletions = prepared.extractions, prepared.deletions
        await self.context.send(self._events(prepared))
        # Before the row that says "done": a crash in between comes here again.
        await self.progress.tell(told_of(prepared))
        rejected = await self.context.hold(
            "opensearch", lambda: store_rows(self.gate, extractions, deletions)
        )
        await self._tell_gone(extractions)
        await self._ask_again(prepared)
        await self.context.park([*prepared.poisoned, *rejected])
        self._count(prepared)

    async def _labels(self, owners: Sequence[EntityNamespace]) -> Labels:
        return await self.context.hold("opensearch", lambda: read_labels(self.gate, owners))

    async def _turn(self, asked: Sequence[Asked], labels: Labels) -> list[Turned]:
        """All pages of a batch together are no larger than one."""
        usable = [one for one in asked if labels[one.owner].problem is None]
        most = max(1, PAGE_DOCUMENTS // max(1, len(usable)))
        model_id = self.model.extractor.model_id
        return [
            await turn_page(self.gate, one, labels[one.owner].labels.fingerprint(model_id), most=most)
            for one in usable
        ]

    async def _texts(
        self, subjects: Sequence[Subject], labels: Labels
    ) -> tuple[dict[DocumentId, TextToExtract], list[Poisoned]]:
        """Without those that have changed since: their next event is on the way."""
        texts: dict[DocumentId, TextToExtract] = {}
        poisoned: list[Poisoned] = []
        for subject in subjects:
            try:
                text = await self.context.hold("vault", lambda s=subject: self._text_of(s))  # type: ignore[misc]
            except PoisonRecord as error:
                if subject.is_asked_again and error.error_class == "unknown_vault":
                    # Of a vault that was forgotten: nobody wrote the document, so there is nothing to replay.
                    _log.warning(
                        "extraction.left_out",
                        tenant=subject.owner.tenant_id,
                        namespace=subject.owner.owner,
                        path=subject.document.path,
                        reason=error.reason,
                    )
                else:
                    poisoned.append(Poisoned(record=subject.record, error=error))
            else:
                if text is not None:
                    texts[subject.doc_id] = TextToExtract(text=text, labels=labels[subject.owner].labels)
        return texts, poisoned

    async def _text_of(self, subject: Subject) -> str | None:
        if subject.text is not None:
            return subject.text
        loop, cap = asyncio.get_running_loop(), self.document_max_bytes
        return await loop.run_in_executor(
            self.files, read_text, self.vaults, subject.document, subject.content_hash, cap
        )

    async def _extract(
        self, subjects: Sequence[Subject], texts: Mapping[DocumentId, TextToExtract], labels: Labels
    ) -> tuple[list[Extraction], list[Poisoned]]:
        outcome = await self.model.extract(texts)
        self.context.metrics.stage_seconds.labels(stage="model").observe(outcome.seconds)
        by_id = {subject.doc_id: subject for subject in subjects}
        extractions = [
            self._extraction(by_id[d], extracted, labels) for d, extracted in outcome.found.items()
        ]
        refused = [
            Poisoned(
                record=by_id[doc_id].record,
                error=PoisonRecord("not_extractable", f"{by_id[doc_id].document.path}: {reason}"),
            )
            for doc_id, reason in outcome.refused.items()
        ]
        return extractions, refused

    def _extraction(self, subject: Subject, extracted: Extracted, labels: Labels) -> Extraction:
        mine = labels[subject.owner].labels
        topic = self.context.spec.topics.mentions
        told = tell(subject, extracted, mine.names, topic=topic, max_bytes=self.event_max_bytes)
        rejected = dict(extracted.rejected) | ({"event_too_large": told.left_out} if told.left_out else {})
        return Extraction(
            subject=subject,
            labels=mine,
            fingerprint=self._fingerprint(subject, labels),
            told=told,
            rejected=rejected,
            skipped_words=extracted.skipped_words,
        )

    def _events(self, prepared: Prepared) -> list[OutgoingRecord]:
        topic = self.context.spec.topics.mentions
        events = [event for extraction in prepared.extractions for event in extraction.told.events]
        for subject in prepared.deletions:
            events += tell_end(subject, prepared.labels[subject.owner].labels.names, topic=topic)
        return events

    async def _tell_gone(self, extractions: Sequence[Extraction]) -> None:
        """The deletion was told of before our events: after these alone, link would know the document again."""
        gone = await self.context.hold("opensearch", lambda: remove_overtaken(self.gate, extractions))
        topic = self.context.spec.topics.mentions
        ends = [
            tell_end(one.extraction.subject, one.extraction.labels.names, topic=topic, version=one.version)
            for one in gone
        ]
        await self.context.send([event for events in ends for event in events])

    async def _ask_again(self, prepared: Prepared) -> None:
        """The next pages; and, for labels that changed while the model ran, all of the namespace once more."""
        topics = self.context.spec.topics
        used = list(dict.fromkeys(e.subject.owner for e in prepared.extractions))
        now = await self._labels(used)
        records = [page.next_record(topics) for page in prepared.turned if page.after is not None]
        records += [
            request_record(topics, owner, reason="labels_changed")
            for owner in used
            if now[owner].labels.version != prepared.labels[owner].labels.version
        ]
        await self.context.send(records)

    def _fingerprint(self, subject: Subject, labels: Labels) -> str:
        return labels[subject.owner].labels.fingerprint(self.model.extractor.model_id)

    def _count(self, prepared: Prepared) -> None:
        metrics = self.context.metrics
        metrics.skipped.labels(reason="older").inc(prepared.outdated)
        metrics.skipped.labels(reason="same").inc(prepared.done)
        for extraction in prepared.extractions:
            for mention in extraction.told.kept:
                metrics.mentions.labels(source=mention.source).inc()
            for reason, number in extraction.rejected.items():
                metrics.rejected_mentions(reason, number)
            metrics.skipped_words.inc(extraction.skipped_words)
        for page in prepared.turned:
            _log.info("extraction.page", **page.log_fields)
        self.context.note(
            documents=len(prepared.extractions),
            deleted=len(prepared.deletions),
            mentions=sum(len(extraction.told.kept) for extraction in prepared.extractions),
            same=prepared.done,
            older=prepared.outdated,
        )


def told_of(prepared: Prepared) -> list[EventRow]:
    """Stages of followed events, with the labels that link is told of. Those refused have their letters."""
    labels = {
        e.subject.record.place: sorted({mention.label for mention in e.told.kept})
        for e in prepared.extractions
    } | {s.record.place: list(prepared.labels[s.owner].labels.names) for s in prepared.deletions}
    refused = {one.record.place for one in prepared.poisoned}
    current = {word.record.place for word in prepared.current}
    rows: list[EventRow] = []
    for word in prepared.words:
        if word.event.tracks and word.record.place not in refused:
            place = word.record.place
            stage = "extracted" if place in current else "overtaken"
            rows += stages(of_tracks(word.event), stage, parts=labels.get(place, ()))
    return rows


def _unusable(told_of: Sequence[Subject | Asked], labels: Labels) -> list[Poisoned]:
    """Nothing is extracted, or taken away, by labels that can't be read."""
    return [
        Poisoned(record=one.record, error=PoisonRecord("invalid_labels", problem))
        for one in told_of
        if (problem := labels[one.owner].problem) is not None
    ]


def _once_each(poisoned: Sequence[Poisoned]) -> list[Poisoned]:
    """A request whose page holds several such documents is one letter, which names the first."""
    found: dict[tuple[str, int, int], Poisoned] = {}
    for one in poisoned:
        found.setdefault(one.record.place, one)
    return list(found.values())
