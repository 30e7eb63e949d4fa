"""How well a model finds what people labelled: strict micro precision, recall and F1. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: (start, end, label), code points.
Named = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Right only where both ends and the label are right."""

    right: int = 0
    found: int = 0
    labelled: int = 0

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.labelled if self.labelled else 0.0

    @property
    def f1(self) -> float:
        both = self.found + self.labelled
        return 2 * self.right / both if both else 0.0

    def __add__(self, other: Score) -> Score:
        return Score(
            right=self.right + other.right,
            found=self.found + other.found,
            labelled=self.labelled + other.labelled,
        )

    def as_dict(self) -> dict[str, float | int]:
        """Shares in per cent, one decimal."""
        shares = {"f1": self.f1, "precision": self.precision, "recall": self.recall}
        return {name: round(100 * share, 1) for name, share in shares.items()} | {"labelled": self.labelled}


def score(labelled: Sequence[Iterable[Named]], found: Sequence[Iterable[Named]]) -> dict[str, Score]:
    """By label, over texts given in one order. The sum of all is the micro average."""
    scores: dict[str, Score] = {}
    for gold, guess in zip(labelled, found, strict=True):
        wanted, given = set(gold), set(guess)
        for group, name in ((wanted & given, "right"), (given, "found"), (wanted, "labelled")):
            for _, _, label in group:
                scores[label] = scores.get(label, Score()) + Score(**{name: 1})
    return dict(sorted(scores.items()))
