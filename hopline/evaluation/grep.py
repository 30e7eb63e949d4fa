"""The least that a search can do: the words of the question, counted in the files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class GrepIndex:
    """Files in memory as (path, folded path and text)."""

    files: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, texts: Iterable[tuple[str, str]]) -> GrepIndex:
        return cls(tuple((path, folded(f"{path}\n{text}")) for path, text in texts))

    def find(self, question: str, *, under: str = "", limit: int = 10) -> list[str]:
        """Paths of the files that hold most of the words, then those that hold them most often; ties by path."""
        words = list(dict.fromkeys(_WORD.findall(folded(question))))
        return [path for _, _, path in sorted(self._counted(words, under))[:limit]]

    def _counted(self, words: Sequence[str], under: str) -> Iterator[tuple[int, int, str]]:
        for path, text in self.files:
            if path.startswith(under):
                counts = [text.count(word) for word in words]
                if any(counts):
                    yield -sum(map(bool, counts)), -sum(counts), path


def folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
