"""What a model finds in labelled texts: through the agent's adapters and windows, without the rules in front of it."""

from __future__ import annotations

from collections.abc import Sequence

from indexers.domain.entities.spans import LabelledSpan, merge_windows, select_flat
from indexers.domain.entities.windows import WindowLimits, cut_windows, split_words
from indexers.ports import EntityExtractor

from .examples import MAX_LABELS
from .labelled import LabelledData
from .metrics import Named, Score, score

THRESHOLD = 0.5


def examine(
    extractor: EntityExtractor, data: LabelledData, *, threshold: float = THRESHOLD
) -> dict[str, Score]:
    """By label; of each text the labels that it was searched for are asked."""
    found = [
        _names(extractor, text.text, asked, threshold)
        for text, asked in zip(data.texts, data.asked, strict=True)
    ]
    return score([[(e.start, e.end, e.label) for e in text.entities] for text in data.texts], found)


def _names(extractor: EntityExtractor, text: str, asked: Sequence[str], threshold: float) -> list[Named]:
    spans: list[LabelledSpan] = []
    for at in range(0, len(asked), MAX_LABELS):
        spans += _spans(extractor, text, asked[at : at + MAX_LABELS], threshold)
    return [(span.start, span.end, span.label) for span in select_flat([], spans)[1]]


def _spans(
    extractor: EntityExtractor, text: str, labels: Sequence[str], threshold: float
) -> list[LabelledSpan]:
    words = split_words(text)
    tokens = extractor.word_tokens([text[word.start : word.end] for word in words])
    room = extractor.max_tokens - extractor.prompt_tokens(labels)
    windows = cut_windows(text, words, tokens, WindowLimits(max_tokens=room)).windows
    found: list[list[LabelledSpan]] = []
    for window in windows:
        (spans,) = extractor.extract([text[window.start : window.end]], labels, threshold=threshold)
        found.append(
            [
                LabelledSpan(
                    start=window.start + s.start, end=window.start + s.end, label=s.label, score=s.score
                )
                for s in spans
            ]
        )
    return merge_windows(list(zip(windows, found, strict=True)))
