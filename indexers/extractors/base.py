"""What both adapters have in common: all but the call of the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Generic, ParamSpec, TypeVar

from indexers.errors import RefusedInput
from indexers.extractors.scores import Scores, check_labels, check_windows, spans_over
from indexers.extractors.spec import GlinerSpec
from indexers.extractors.tokens import ReadWindow, WordTokenizer
from indexers.pinned import PinnedThread
from indexers.ports import ModelCall, Span

P = ParamSpec("P")
T = TypeVar("T")
#: What an adapter's model takes.
I = TypeVar("I")  # noqa: E741 - input

#: Windows from which on a lot is full: no call is split. Handed over one by one, calls took the caller's thread twice
#: as long as in fours: the two threads wake each other, and both want the interpreter.
LOT_WINDOWS: Final = 4
#: Lots given to the model's thread ahead of the answers that are waited for: the next one begins at once.
LOTS_AHEAD: Final = 2


@dataclass(frozen=True, slots=True)
class ReadCall(Generic[I]):
    """One call ready for the model. `filled[i]`: which window of the call `windows[i]` is; blank ones are left out."""

    filled: list[int]
    windows: list[ReadWindow]
    inputs: I | None


@dataclass(frozen=True, slots=True)
class Lot(Generic[I]):
    """Calls that go to the model's thread together. `refused`: why the call behind them can't be made."""

    calls: list[tuple[ModelCall, ReadCall[I]]]
    refused: RefusedInput | None = None

    @property
    def inputs(self) -> list[I]:
        return [read.inputs for _, read in self.calls if read.inputs is not None]

    def answers(self, scores: Iterable[Scores]) -> Iterator[list[list[Span]]]:
        """`scores`: of `inputs`, in order."""
        rest = iter(scores)
        for call, read in self.calls:
            yield _answer(call, read, None if read.inputs is None else next(rest))


class GlinerExtractor(ABC, Generic[I]):
    """An `EntityExtractor` but for `mixes_documents`: words, tokens, limits and checks are the same for both.

    Before and behind the model (words, arrays, spans) the caller's thread works, so that with `extract_each` the
    model's thread does nothing but run the model.
    """

    def __init__(
        self, model_id: str, spec: GlinerSpec, tokens: WordTokenizer, *, cpu_affinity: tuple[int, ...]
    ) -> None:
        self._id = model_id
        self._spec = spec
        self._tokens = tokens
        self._is_pinned = bool(cpu_affinity)
        self._thread = PinnedThread(cpu_affinity, section="extractor")

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
        call = ModelCall(windows=tuple(windows), prompts=tuple(labels), threshold=threshold)
        read = self._read(call)
        scores = None if read.inputs is None else self._on_model_thread(self._run, read.inputs)
        return _answer(call, read, scores)

    def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
        waiting: deque[tuple[Lot[I], Future[list[Scores]]]] = deque()
        try:
            for lot in self._lots(calls):
                waiting.append((lot, self._thread.submit(self._run_each, lot.inputs)))
                if lot.refused is not None:
                    # The answers before are those of good calls.
                    yield from _answers(waiting)
                    raise lot.refused
                if len(waiting) > LOTS_AHEAD:
                    yield from _answered(*waiting.popleft())
            yield from _answers(waiting)
        finally:
            for _, running in waiting:
                running.cancel()

    @abstractmethod
    def _inputs(self, windows: Sequence[ReadWindow], labels: Sequence[str]) -> I:
        """Of windows with words, within the model's limits; at least one label."""

    @abstractmethod
    def _run(self, inputs: I) -> Scores:
        """Logits: [windows, words, widths, labels], the words padded."""

    def _lots(self, calls: Iterable[ModelCall]) -> Iterator[Lot[I]]:
        ready: list[tuple[ModelCall, ReadCall[I]]] = []
        windows = 0
        for call in calls:
            try:
                ready.append((call, self._read(call)))
            except RefusedInput as refused:
                yield Lot(ready, refused)
                return
            windows += max(1, len(call.windows))
            if windows >= LOT_WINDOWS:
                yield Lot(ready)
                ready, windows = [], 0
        if ready:
            yield Lot(ready)

    def _run_each(self, inputs: Sequence[I]) -> list[Scores]:
        return [self._run(one) for one in inputs]

    def _read(self, call: ModelCall) -> ReadCall[I]:
        check_labels(call.prompts, call.threshold)
        prompt = self._tokens.prompt(call.prompts)
        read = self._tokens.read(call.windows)
        check_windows(read, max_words=self.max_words, max_tokens=self.max_tokens, prompt=len(prompt))
        filled = [i for i, window in enumerate(read) if window.words and call.prompts]
        windows = [read[i] for i in filled]
        return ReadCall(filled, windows, self._inputs(windows, call.prompts) if filled else None)

    def _on_model_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.call(work, *args, **kwargs) if self._is_pinned else work(*args, **kwargs)


def _answers(waiting: deque[tuple[Lot[I], Future[list[Scores]]]]) -> Iterator[list[list[Span]]]:
    while waiting:
        yield from _answered(*waiting.popleft())


def _answered(lot: Lot[I], running: Future[list[Scores]]) -> Iterator[list[list[Span]]]:
    yield from lot.answers(running.result())


def _answer(call: ModelCall, read: ReadCall[I], scores: Scores | None) -> list[list[Span]]:
    found: list[list[Span]] = [[] for _ in call.windows]
    if scores is not None:
        rows = spans_over(call.threshold, scores, read.windows, call.prompts)
        for i, row in zip(read.filled, rows, strict=True):
            found[i] = row
    return found
