"""What both adapters have in common: all but the call of the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from indexers.extractors.scores import check_labels, check_windows
from indexers.extractors.spec import GlinerSpec
from indexers.extractors.tokens import ReadWindow, WordTokenizer
from indexers.pinned import PinnedThread
from indexers.ports import Span

P = ParamSpec("P")
T = TypeVar("T")


class GlinerExtractor(ABC):
    """An `EntityExtractor` but for `mixes_documents`: words, tokens, limits and checks are the same for both."""

    def __init__(
        self, model_id: str, spec: GlinerSpec, tokens: WordTokenizer, *, cpu_affinity: tuple[int, ...]
    ) -> None:
        self._id = model_id
        self._spec = spec
        self._tokens = tokens
        self._pinned = PinnedThread(cpu_affinity, section="extractor") if cpu_affinity else None

    @property
    def model_id(self) -> str:
        return self._id

    @property
    def max_words(self) -> int:
        return self._spec.max_len

    @property
    def max_tokens(self) -> int:
        return self._spec.max_tokens - 2

    def prompt_tokens(self, labels: Sequence[str]) -> int:
        return len(self._tokens.prompt(tuple(labels)))

    def word_tokens(self, words: Sequence[str]) -> list[int]:
        return self._tokens.counts(words)

    def extract(self, windows: Sequence[str], labels: Sequence[str], *, threshold: float) -> list[list[Span]]:
        check_labels(labels, threshold)
        prompt = self._tokens.prompt(tuple(labels))
        read = self._tokens.read(windows)
        check_windows(read, max_words=self.max_words, max_tokens=self.max_tokens, prompt=len(prompt))
        filled = [i for i, window in enumerate(read) if window.words and labels]
        found: list[list[Span]] = [[] for _ in windows]
        if filled:
            spans = self._on_model_thread(self._run, [read[i] for i in filled], labels, threshold)
            for i, row in zip(filled, spans, strict=True):
                found[i] = row
        return found

    @abstractmethod
    def _run(
        self, windows: Sequence[ReadWindow], labels: Sequence[str], threshold: float
    ) -> list[list[Span]]:
        """Of windows with words, within the model's limits; at least one label."""

    def _on_model_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs) if self._pinned is None else self._pinned.call(work, *args, **kwargs)
