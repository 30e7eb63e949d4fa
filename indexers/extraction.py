"""Texts → mentions: patterns in front, the model over windows, one name per place, evidence checked.

Blocks while the model runs: call it off the event loop. In three steps, so that the model can be at one text while
another is begun or finished, and goes from text to text without a pause. The result is a function of text, labels and
model alone where a call of the model holds windows of one text only, or the model doesn't mix them
(`mixes_documents`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from indexers.domain.entities.evidence import objection, tidy_span
from indexers.domain.entities.patterns import compile_patterns
from indexers.domain.entities.recognisers import Recognised, recognise
from indexers.domain.entities.sentences import sentence_around, sentence_text
from indexers.domain.entities.spans import LabelledSpan, merge_windows, select_flat
from indexers.errors import RefusedInput
from indexers.model_calls import Question, TextToExtract, Work, call_of, calls, placed, prepare
from indexers.ports import EntityExtractor, ModelCall, Span


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Texts on their way: what the rules found, and which calls of the model are to be made for what."""

    works: Sequence[Work]
    recognised: Sequence[Recognised]
    planned: Sequence[tuple[Question, Sequence[tuple[Work, int]]]]


def extract_texts(
    texts: Sequence[TextToExtract],
    *,
    extractor: EntityExtractor,
    batch_windows: int | None = None,
    rules: bool = True,
) -> list[Extracted]:
    """In the order given: `begin_texts`, `ask_each`, `finish_texts`. RefusedInput as from the first two."""
    begun = begin_texts(texts, extractor=extractor, batch_windows=batch_windows, rules=rules)
    for _, refused in ask_each([begun], extractor):
        if refused is not None:
            raise refused
    return finish_texts(begun)


def begin_texts(
    texts: Sequence[TextToExtract],
    *,
    extractor: EntityExtractor,
    batch_windows: int | None = None,
    rules: bool = True,
) -> Begun:
    """All that comes before the model. `batch_windows`: most windows of one model call; None: what suits the model.

    `rules`: patterns stand in front of the model; False measures the model alone.

    RefusedInput for a label that the model can't be asked for, labels that leave it no room for text, and a pattern
    that is no regular expression.
    """
    works = [prepare(job, extractor) for job in texts]
    return Begun(
        works=works,
        recognised=[_by_rule(work) if rules else Recognised(spans=()) for work in works],
        planned=list(calls(works, batch_windows, extractor)),
    )


def ask_each(
    begun: Iterable[Begun], extractor: EntityExtractor
) -> Iterator[tuple[Begun, RefusedInput | None]]:
    """Each once it is answered, in order, or why the model refuses one of its windows; one without calls never comes.

    The model's next call is made ready across their borders, so a few are taken ahead of those that come out.
    """
    steps: Iterator[_Step] = chain.from_iterable(_steps(one) for one in begun)
    while True:
        open_steps: deque[_Step] = deque()
        try:
            for answers in extractor.extract_each(_taken(steps, open_steps)):
                step = open_steps.popleft()
                step.place(answers)
                if step.is_last:
                    yield step.begun, None
        except RefusedInput as refused:
            # What came before has been answered: it is the first that has not.
            at_fault = open_steps.popleft().begun
            yield at_fault, refused
            steps = _others(chain(open_steps, steps), at_fault)
        else:
            return


@dataclass(frozen=True, slots=True)
class _Step:
    """One call of the model."""

    begun: Begun
    question: Question
    group: Sequence[tuple[Work, int]]
    is_last: bool

    def place(self, answers: Sequence[Sequence[Span]]) -> None:
        for (work, index), spans in zip(self.group, answers, strict=True):
            work.found[index] += placed(spans, self.question, work.windows[index].start)


def _steps(begun: Begun) -> Iterator[_Step]:
    for at, planned in enumerate(begun.planned, start=1):
        yield _Step(begun, *planned, at == len(begun.planned))


def _taken(steps: Iterable[_Step], open_steps: deque[_Step]) -> Iterator[ModelCall]:
    for step in steps:
        open_steps.append(step)
        yield call_of(step.question, step.group)


def _others(steps: Iterable[_Step], but: Begun) -> Iterator[_Step]:
    return (step for step in steps if step.begun is not but)


def finish_texts(begun: Begun) -> list[Extracted]:
    """What the texts' mentions are, once the model has been asked."""
    return [_finish(*one) for one in zip(begun.works, begun.recognised, strict=True)]


def _by_rule(work: Work) -> Recognised:
    try:
        patterns = compile_patterns(work.job.labels.patterns)
    except ValueError as exc:
        raise RefusedInput(str(exc)) from exc
    return recognise(work.readings.shown, patterns=patterns)


def _finish(work: Work, recognised: Recognised) -> Extracted:
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
    work: Work, spans: Sequence[LabelledSpan], reading: str, rejected: Counter[str]
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


def _mention(work: Work, span: LabelledSpan, source: str) -> FoundMention:
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
