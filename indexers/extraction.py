"""Texts → mentions: patterns in front, the model over windows, one name per place, evidence checked.

Blocks while the model runs: call it off the event loop. The result is a function of text, labels and model alone
where a call of the model holds windows of one text only, or the model doesn't mix them (`mixes_documents`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from indexers.domain.entities.evidence import objection, tidy_span
from indexers.domain.entities.labels import EntityLabel, NamespaceLabels
from indexers.domain.entities.masking import Readings, readings
from indexers.domain.entities.patterns import compile_patterns
from indexers.domain.entities.recognisers import Recognised, recognise
from indexers.domain.entities.sentences import sentence_around, sentence_text
from indexers.domain.entities.spans import LabelledSpan, merge_windows, select_flat
from indexers.domain.entities.windows import MAX_WORDS, Window, WindowLimits, cut_windows, split_words
from indexers.domain.frontmatter import likely_body_start
from indexers.ports import EntityExtractor, Span

#: Windows of one call where no number is given: on int8 one is fastest, and scores then depend on nothing else.
WINDOWS_ALONE: Final = 1
WINDOWS_MIXED: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TextToExtract:
    text: str
    labels: NamespaceLabels


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMention:
    """text[start:end] == surface (code points) names something. `weight` 0..1; `source`: `model` or `pattern`."""

    label: str
    surface: str
    start: int
    end: int
    weight: float
    sentence: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """`mentions` don't overlap and are sorted by start. `rejected`: what the evidence gate refused, by reason."""

    mentions: tuple[FoundMention, ...]
    rejected: Mapping[str, int]
    #: Words that no window of the model can hold; patterns see them all the same.
    skipped_words: int = 0


@dataclass(frozen=True, slots=True)
class _Question:
    """Labels of one call: a prompt leaves at least half of the model's tokens to the text."""

    labels: tuple[EntityLabel, ...]
    prompts: tuple[str, ...]
    threshold: float


@dataclass(slots=True)
class _Work:
    """One text on its way; `found[i]`: spans of window i, in offsets of the text."""

    job: TextToExtract
    body_start: int
    readings: Readings
    questions: tuple[_Question, ...] = ()
    windows: tuple[Window, ...] = ()
    skipped: int = 0
    found: list[list[LabelledSpan]] = field(default_factory=list)

    def window_text(self, index: int) -> str:
        return self.readings.prose[self.windows[index].start : self.windows[index].end]

    def words_of(self, index: int) -> int:
        return self.windows[index].last - self.windows[index].first


def extract_texts(
    texts: Sequence[TextToExtract],
    *,
    extractor: EntityExtractor,
    batch_windows: int | None = None,
    rules: bool = True,
) -> list[Extracted]:
    """In the order given. `batch_windows`: most windows of one model call; None: what suits the model.

    `rules`: patterns stand in front of the model; False measures the model alone.

    ValueError for a label that the model can't be asked for, labels that leave it no room for text, and a pattern
    that is no regular expression.
    """
    works = [_prepare(job, extractor) for job in texts]
    for question, group in _calls(works, batch_windows, extractor):
        windows = [work.window_text(index) for work, index in group]
        answers = extractor.extract(windows, question.prompts, threshold=question.threshold)
        for (work, index), spans in zip(group, answers, strict=True):
            work.found[index] += _placed(spans, question, work.windows[index].start)
    return [_finish(work, _by_rule(work) if rules else Recognised(spans=())) for work in works]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """What `extract_texts` asks of the extractor in one call."""

    windows: tuple[str, ...]
    prompts: tuple[str, ...]
    threshold: float


def model_calls(
    texts: Sequence[TextToExtract], *, extractor: EntityExtractor, batch_windows: int | None = None
) -> list[ModelCall]:
    """All calls of `extract_texts`, without making them: what the rest costs is measured against these."""
    works = [_prepare(job, extractor) for job in texts]
    return [
        ModelCall(
            windows=tuple(work.window_text(index) for work, index in group),
            prompts=question.prompts,
            threshold=question.threshold,
        )
        for question, group in _calls(works, batch_windows, extractor)
    ]


def _prepare(job: TextToExtract, extractor: EntityExtractor) -> _Work:
    body_start = likely_body_start(job.text)
    work = _Work(job, body_start, readings(job.text, body_start=body_start))
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
        raise ValueError("a label's prompt leaves no room for text: shorten it")
    cut = cut_windows(
        job.text,
        words,
        tokens,
        WindowLimits(max_tokens=room, max_words=min(MAX_WORDS, extractor.max_words)),
    )
    work.windows, work.skipped = cut.windows, cut.skipped
    work.found = [[] for _ in cut.windows]
    return work


def _questions(labels: Sequence[EntityLabel], extractor: EntityExtractor) -> Iterator[_Question]:
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


def _question(labels: Sequence[EntityLabel]) -> _Question:
    return _Question(
        tuple(labels), tuple(label.prompt for label in labels), min(label.threshold for label in labels)
    )


def _calls(
    works: Sequence[_Work], batch_windows: int | None, extractor: EntityExtractor
) -> Iterator[tuple[_Question, list[tuple[_Work, int]]]]:
    """Groups of windows that share a model call: of one text each, or across texts with the same question.

    By length, then in the texts' order: little padding, and the same groups for the same texts.
    """
    mixed = extractor.mixes_documents
    size = batch_windows or (WINDOWS_MIXED if mixed else WINDOWS_ALONE)
    pools: dict[tuple[int, _Question], list[tuple[_Work, int]]] = {}
    for number, work in enumerate(works):
        for question in work.questions:
            pool = pools.setdefault((0 if mixed else number, question), [])
            pool += ((work, index) for index in range(len(work.windows)))
    for (_, question), pool in pools.items():
        pool.sort(key=lambda place: place[0].words_of(place[1]))
        for at in range(0, len(pool), size):
            yield question, pool[at : at + size]


def _placed(spans: Sequence[Span], question: _Question, shift: int) -> Iterator[LabelledSpan]:
    """In offsets of the text; each label has its own threshold."""
    by_prompt = dict(zip(question.prompts, question.labels, strict=True))
    for span in spans:
        label = by_prompt[span.label]
        if span.score >= label.threshold:
            yield LabelledSpan(
                start=span.start + shift, end=span.end + shift, label=label.name, score=span.score
            )


def _by_rule(work: _Work) -> Recognised:
    return recognise(work.readings.shown, patterns=compile_patterns(work.job.labels.patterns))


def _finish(work: _Work, recognised: Recognised) -> Extracted:
    """Refused spans go before the choice: one that can't be stored must not keep another from its place."""
    rejected: Counter[str] = Counter(
        pattern_timed_out=len(recognised.timed_out), too_many=recognised.left_out
    )
    by_rule = [
        LabelledSpan(start=span.start, end=span.end, label=span.label, score=1.0) for span in recognised.spans
    ]
    by_model = merge_windows(list(zip(work.windows, work.found, strict=True)))
    patterns, names = select_flat(
        _evident(work, by_rule, work.readings.shown, rejected),
        _evident(work, by_model, work.readings.prose, rejected),
    )
    mentions = [
        *(_mention(work, span, "pattern") for span in patterns),
        *(_mention(work, span, "model") for span in names),
    ]
    return Extracted(
        mentions=tuple(sorted(mentions, key=lambda mention: mention.start)),
        rejected=+rejected,
        skipped_words=work.skipped,
    )


def _evident(
    work: _Work, spans: Sequence[LabelledSpan], reading: str, rejected: Counter[str]
) -> list[LabelledSpan]:
    """Without what the evidence gate refuses; marks at a span's edges are no part of the name."""
    text, kept = work.job.text, []
    for span in spans:
        start, end = tidy_span(text, reading, span.start, span.end)
        reason = objection(text, text[start:end], start, end, reading=reading, body_start=work.body_start)
        if reason is None:
            kept.append(replace(span, start=start, end=end))
        else:
            rejected[reason] += 1
    return kept


def _mention(work: _Work, span: LabelledSpan, source: str) -> FoundMention:
    text = work.job.text
    sentence = sentence_around(text, span.start, span.end, body_start=work.body_start)
    return FoundMention(
        label=span.label,
        surface=text[span.start : span.end],
        start=span.start,
        end=span.end,
        weight=span.score,
        sentence=sentence_text(text, *sentence),
        source=source,
    )
