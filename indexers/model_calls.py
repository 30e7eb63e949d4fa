"""Which calls of the model some texts need: windows of their prose, labels in one prompt or a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from indexers.domain.entities.labels import EntityLabel, NamespaceLabels
from indexers.domain.entities.masking import Readings, readings
from indexers.domain.entities.spans import LabelledSpan
from indexers.domain.entities.windows import MAX_WORDS, Window, WindowLimits, cut_windows, split_words
from indexers.domain.frontmatter import likely_body_start
from indexers.errors import RefusedInput
from indexers.ports import EntityExtractor, ModelCall, Span

#: Windows of one call where no number is given: on int8 one is fastest, and scores then depend on nothing else.
WINDOWS_ALONE: Final = 1
WINDOWS_MIXED: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TextToExtract:
    text: str
    labels: NamespaceLabels


@dataclass(frozen=True, slots=True)
class Question:
    """Labels of one call: a prompt leaves at least half of the model's tokens to the text."""

    labels: tuple[EntityLabel, ...]
    prompts: tuple[str, ...]
    threshold: float


@dataclass(slots=True)
class Work:
    """One text on its way; `found[i]`: spans of window i, in offsets of the text."""

    job: TextToExtract
    body_start: int
    readings: Readings
    questions: tuple[Question, ...] = ()
    windows: tuple[Window, ...] = ()
    skipped: int = 0
    found: list[list[LabelledSpan]] = field(default_factory=list)

    def window_text(self, index: int) -> str:
        return self.readings.prose[self.windows[index].start : self.windows[index].end]

    def words_of(self, index: int) -> int:
        return self.windows[index].last - self.windows[index].first


def model_calls(
    texts: Sequence[TextToExtract], *, extractor: EntityExtractor, batch_windows: int | None = None
) -> list[ModelCall]:
    """All calls of `extract_texts`, without making them: what the rest costs is measured against these."""
    works = [prepare(job, extractor) for job in texts]
    return [call_of(*planned) for planned in calls(works, batch_windows, extractor)]


def call_of(question: Question, group: Sequence[tuple[Work, int]]) -> ModelCall:
    return ModelCall(
        windows=tuple(work.window_text(index) for work, index in group),
        prompts=question.prompts,
        threshold=question.threshold,
    )


def prepare(job: TextToExtract, extractor: EntityExtractor) -> Work:
    body_start = likely_body_start(job.text)
    work = Work(job, body_start, readings(job.text, body_start=body_start))
    work.questions = tuple(_questions(job.labels.labels, extractor))
    if not work.questions:
        return work
    prose = work.readings.prose
    words = split_words(prose)
    tokens = extractor.word_tokens([prose[word.start : word.end] for word in words])
    room = extractor.max_tokens - max(
        extractor.prompt_tokens(question.prompts) for question in work.questions
    )
    if room < 1:
        raise RefusedInput("a label's prompt leaves no room for text: shorten it")
    cut = cut_windows(
        job.text,
        words,
        tokens,
        WindowLimits(max_tokens=room, max_words=min(MAX_WORDS, extractor.max_words)),
    )
    work.windows, work.skipped = cut.windows, cut.skipped
    work.found = [[] for _ in cut.windows]
    return work


def _questions(labels: Sequence[EntityLabel], extractor: EntityExtractor) -> Iterator[Question]:
    """All labels at once if their prompt is short enough, as the model was trained to tell them apart."""
    group: list[EntityLabel] = []
    for label in labels:
        prompts = [entry.prompt for entry in (*group, label)]
        if group and extractor.prompt_tokens(prompts) > extractor.max_tokens // 2:
            yield _question(group)
            group = []
        group.append(label)
    if group:
        yield _question(group)


def _question(labels: Sequence[EntityLabel]) -> Question:
    return Question(
        tuple(labels), tuple(label.prompt for label in labels), min(label.threshold for label in labels)
    )


def calls(
    works: Sequence[Work], batch_windows: int | None, extractor: EntityExtractor
) -> Iterator[tuple[Question, list[tuple[Work, int]]]]:
    """Groups of windows that share a model call: of one text each, or across texts with the same question.

    By length, then in the texts' order: little padding, and the same groups for the same texts.
    """
    mixed = extractor.mixes_documents
    size = batch_windows or (WINDOWS_MIXED if mixed else WINDOWS_ALONE)
    pools: dict[tuple[int, Question], list[tuple[Work, int]]] = {}
    for number, work in enumerate(works):
        for question in work.questions:
            pool = pools.setdefault((0 if mixed else number, question), [])
            pool += ((work, index) for index in range(len(work.windows)))
    for (_, question), pool in pools.items():
        pool.sort(key=lambda place: place[0].words_of(place[1]))
        for at in range(0, len(pool), size):
            yield question, pool[at : at + size]


def placed(spans: Sequence[Span], question: Question, shift: int) -> Iterator[LabelledSpan]:
    """In offsets of the text; each label has its own threshold."""
    by_prompt = dict(zip(question.prompts, question.labels, strict=True))
    for span in spans:
        label = by_prompt[span.label]
        if span.score >= label.threshold:
            yield LabelledSpan(
                start=span.start + shift, end=span.end + shift, label=label.name, score=span.score
            )
