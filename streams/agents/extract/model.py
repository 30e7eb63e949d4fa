"""Texts → mentions off the event loop, with a sign of life and a count for each call of the model."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from indexers.domain.identity import DocumentId
from indexers.errors import RefusedInput
from indexers.extraction import Begun, Extracted, ask_each, begin_texts, finish_texts
from indexers.model_calls import TextToExtract
from indexers.ports import EntityExtractor, ModelCall, Span
from indexers.watched import ModelCalled
from streams.context import AgentContext

#: Groups of texts on their way: one that the model is at, of short texts some that it is given ahead, one ready for it,
#: one begun or finished. Bounds memory.
GROUPS_AT_ONCE: Final = 8
#: Texts of one group where a call of the model may hold windows of several.
TEXTS_MIXED: Final = 16
Texts = Mapping[DocumentId, TextToExtract]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An `EntityExtractor` whose calls are counted, each a sign of life: a long text takes minutes."""

    extractor: EntityExtractor
    context: AgentContext

    @property
    def model_id(self) -> str:
        return self.extractor.model_id

    @property
    def max_words(self) -> int:
        return self.extractor.max_words

    @property
    def max_tokens(self) -> int:
        return self.extractor.max_tokens

    @property
    def mixes_documents(self) -> bool:
        return self.extractor.mixes_documents

    def prompt_tokens(self, labels: Sequence[str]) -> int:
        return self.extractor.prompt_tokens(labels)

    def word_tokens(self, words: Sequence[str]) -> list[int]:
        return self.extractor.word_tokens(words)

    def extract(self, windows: Sequence[str], labels: Sequence[str], *, threshold: float) -> list[list[Span]]:
        started = time.perf_counter()
        spans = self.extractor.extract(windows, labels, threshold=threshold)
        self._count(len(windows), time.perf_counter() - started)
        return spans

    def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
        """What the caller does between two answers is none of a call's time."""
        started = time.perf_counter()
        for answers in self.extractor.extract_each(calls):
            self._count(len(answers), time.perf_counter() - started)
            yield answers
            started = time.perf_counter()

    def _count(self, windows: int, seconds: float) -> None:
        metrics = self.context.metrics
        metrics.model_windows.observe(windows)
        metrics.model.observe(ModelCalled(model="extractor", texts=windows, seconds=seconds))
        self.context.beat()


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Both in the order given: what stands in each text, or why the model, or a pattern, refuses it.

    `seconds`: what the model took.
    """

    found: dict[DocumentId, Extracted] = field(default_factory=dict)
    refused: dict[DocumentId, str] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: Outcome) -> None:
        self.found |= other.found
        self.refused |= other.refused
        self.seconds += other.seconds


class Model:
    """The extractor on a thread of its own; `rules`: a thread that meanwhile begins and finishes other texts.

    Batches may overlap: the model goes from one's last text to the next one's first without a pause.
    """

    def __init__(
        self, *, extractor: EntityExtractor, executor: Executor, rules: Executor, batch_windows: int | None
    ) -> None:
        self.extractor = extractor
        self._asking = _Asking(extractor, executor)
        self._rules = rules
        self._batch_windows = batch_windows
        self._turn = asyncio.Lock()
        self._room = asyncio.Semaphore(GROUPS_AT_ONCE)

    async def extract(self, texts: Texts) -> Outcome:
        most = TEXTS_MIXED if self.extractor.mixes_documents else 1
        items = list(texts.items())
        groups = [dict(items[at : at + most]) for at in range(0, len(items), most)]
        outcome = Outcome()
        for group, one in zip(groups, await self._all(groups), strict=True):
            if isinstance(one, Outcome):
                outcome.add(one)
            elif len(group) == 1:
                outcome.add(Outcome(refused=dict.fromkeys(group, str(one))))
            else:
                # Mixed with others, it isn't known whose text it was: each by itself.
                for doc_id, text in group.items():
                    outcome.add(await self.extract({doc_id: text}))
        return outcome

    async def _all(self, groups: Sequence[Texts]) -> list[Outcome | RefusedInput]:
        """A few at a time, batch after batch: the model's next group is ready before it has done with the last."""
        async with asyncio.TaskGroup() as tasks:
            running = []
            async with self._turn:
                for group in groups:
                    await self._room.acquire()
                    running.append(tasks.create_task(self._one(group)))
        return [task.result() for task in running]

    async def _one(self, group: Texts) -> Outcome | RefusedInput:
        """Cancelled, it leaves the step that has begun to its end: windows of a single text, or a few."""
        on = asyncio.get_running_loop().run_in_executor
        texts = list(group.values())
        begin = partial(begin_texts, texts, extractor=self.extractor, batch_windows=self._batch_windows)
        try:
            begun = await on(self._rules, begin)
            seconds = await self._asking.answer(begun)
            extracted = await on(self._rules, finish_texts, begun)
        except RefusedInput as refused:
            return refused
        finally:
            self._room.release()
        return Outcome(found=dict(zip(group, extracted, strict=True)), seconds=seconds)


class _Asking:
    """Texts wait here for the model, in order of arrival; its thread goes from one to the next while there is any."""

    def __init__(self, extractor: EntityExtractor, executor: Executor) -> None:
        self._extractor = extractor
        self._executor = executor
        self._waiting: SimpleQueue[tuple[Begun, Future[float]]] = SimpleQueue()

    async def answer(self, begun: Begun) -> float:
        """Seconds that it took. RefusedInput for a window that the model refuses."""
        if not begun.planned:
            return 0.0
        answered: Future[float] = Future()
        self._waiting.put((begun, answered))
        # Where the run before has taken it by then, this one finds nothing to do.
        self._executor.submit(self._run)
        return await asyncio.wrap_future(answered)

    def _run(self) -> None:
        since, taken = time.perf_counter(), deque[Future[float]]()
        try:
            for _, refused in ask_each(self._take(taken), self._extractor):
                answered, now = taken.popleft(), time.perf_counter()
                if refused is None:
                    answered.set_result(now - since)
                else:
                    answered.set_exception(refused)
                since = now
        except BaseException as bug:  # noqa: BLE001 - raised where the texts are waited for, all the same to them
            for answered in taken:
                answered.set_exception(bug)

    def _take(self, taken: deque[Future[float]]) -> Iterator[Begun]:
        """Without those that nobody waits for any more; `taken`: where to tell of the answers, in the same order."""
        with contextlib.suppress(Empty):
            while True:
                begun, answered = self._waiting.get_nowait()
                if answered.set_running_or_notify_cancel():
                    taken.append(answered)
                    yield begun
