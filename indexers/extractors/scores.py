"""The port's checks before the model, and scores → spans behind it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from indexers.errors import RefusedInput
from indexers.extractors.tokens import ReadWindow
from indexers.ports import Span

Scores = NDArray[np.float32]


def check_labels(labels: Sequence[str], threshold: float) -> None:
    """A span's label must say which question it answers: else RefusedInput."""
    if len(set(labels)) != len(labels):
        raise RefusedInput(f"a label is asked for twice: {sorted(labels)}")
    if not 0 < threshold <= 1:
        raise RefusedInput(f"a threshold of {threshold} is not above 0 and at most 1")


def check_windows(windows: Sequence[ReadWindow], *, max_words: int, max_tokens: int, prompt: int) -> None:
    """Raises RefusedInput for a window that the model would cut; positions are named, never the text."""
    for position, window in enumerate(windows):
        if len(window.words) > max_words:
            raise RefusedInput(
                f"window {position} has {len(window.words)} words, the model takes {max_words}: cut it first"
            )
        if prompt + len(window.ids) > max_tokens:
            raise RefusedInput(
                f"window {position} has {len(window.ids)} tokens beside a prompt of {prompt}, "
                f"the model takes {max_tokens} together: cut it first"
            )


def spans_over(
    threshold: float, logits: Scores, windows: Sequence[ReadWindow], labels: Sequence[str]
) -> list[list[Span]]:
    """logits: [windows, words, widths, labels], the words padded; a width of index k covers k + 1 words.

    In the order of start, end and label as asked.
    """
    found: list[list[Span]] = [[] for _ in windows]
    with np.errstate(over="ignore"):
        scores = 1 / (1 + np.exp(-logits[..., : len(labels)]))
    for row, start, width, label in np.argwhere(scores > threshold).tolist():
        words = windows[row].words
        if start + width < len(words):
            span = Span(
                start=words[start].start,
                end=words[start + width].end,
                label=labels[label],
                score=float(scores[row, start, width, label]),
            )
            found[row].append(span)
    return found
