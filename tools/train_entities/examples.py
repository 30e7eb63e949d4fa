"""Labelled texts → what GLiNER learns from: words, spans of words, the labels that are asked. Pure."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from indexers.domain.entities.windows import Window, WindowLimits, Word, cut_windows, split_words

from .labelled import LabelledData, LabelledText

#: Labels of one question: GLiNER's own limit is 25.
MAX_LABELS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One window. `spans`: (first word, last word, both in it; label), in the text's order."""

    words: tuple[str, ...]
    spans: tuple[tuple[int, int, str], ...]
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """`too_wide`: entities of more words than the model's spans have; they can't be learnt."""

    examples: tuple[Example, ...]
    too_wide: int


def make_examples(data: LabelledData, *, max_width: int) -> Examples:
    """Cut into windows as the agent cuts them; an entity is learnt in every window that holds it whole."""
    examples: list[Example] = []
    too_wide = 0
    for labelled, asked in zip(data.texts, data.asked, strict=True):
        words = split_words(labelled.text)
        spans, wide = _word_spans(labelled, words, max_width)
        too_wide += wide
        cut = cut_windows(labelled.text, words, [1] * len(words), WindowLimits(max_tokens=len(words)))
        examples += (_example(labelled.text, words, spans, asked, window) for window in cut.windows)
    return Examples(examples=tuple(examples), too_wide=too_wide)


def split_held_out(data: LabelledData, share: float) -> tuple[LabelledData, LabelledData]:
    """(to learn, to be examined by): by a hash of each text, so that a text stays where it was when others come."""
    bound = int(share * 2**32)
    held = [_number(labelled.text) < bound for labelled in data.texts]
    return _part(data, [not one for one in held]), _part(data, held)


def question(example: Example, chance: random.Random) -> dict[str, Any]:
    """As GLiNER's collator takes it. The labels asked come in another order each time, those of the example always."""
    present = list(dict.fromkeys(label for _, _, label in example.spans))[:MAX_LABELS]
    absent = [label for label in example.asked if label not in present]
    chance.shuffle(absent)
    labels = [*present, *absent[: MAX_LABELS - len(present)]]
    chance.shuffle(labels)
    return {
        "tokenized_text": list(example.words),
        "ner": [[first, last, label] for first, last, label in example.spans if label in labels],
        "ner_labels": labels,
    }


def batches(examples: Sequence[Example], size: int, chance: random.Random) -> Iterator[list[Example]]:
    """Each example once, neighbours of like length together, the batches in another order each time."""
    order = sorted(examples, key=lambda example: (len(example.words), chance.random()))
    groups = [order[at : at + size] for at in range(0, len(order), size)]
    chance.shuffle(groups)
    yield from groups


def _word_spans(
    labelled: LabelledText, words: Sequence[Word], max_width: int
) -> tuple[list[tuple[int, int, str]], int]:
    starts = {word.start: index for index, word in enumerate(words)}
    ends = {word.end: index for index, word in enumerate(words)}
    spans = sorted((starts[e.start], ends[e.end], e.label) for e in labelled.entities)
    kept = [span for span in spans if span[1] - span[0] < max_width]
    return kept, len(spans) - len(kept)


def _example(
    text: str,
    words: Sequence[Word],
    spans: Sequence[tuple[int, int, str]],
    asked: tuple[str, ...],
    window: Window,
) -> Example:
    return Example(
        words=tuple(text[word.start : word.end] for word in words[window.first : window.last]),
        spans=tuple(
            (first - window.first, last - window.first, label)
            for first, last, label in spans
            if window.first <= first and last < window.last
        ),
        asked=asked,
    )


def _part(data: LabelledData, chosen: Sequence[bool]) -> LabelledData:
    return LabelledData(
        texts=tuple(text for text, one in zip(data.texts, chosen, strict=True) if one),
        asked=tuple(asked for asked, one in zip(data.asked, chosen, strict=True) if one),
        counts=data.counts,
        left_out=data.left_out,
    )


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big")
