"""Texts → mentions off the event loop, with a sign of life and a count for each call of the model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Final

from indexers.domain.identity import DocumentId
from indexers.extraction import Extracted, ask_model, begin_texts, finish_texts
from indexers.model_calls import TextToExtract
from indexers.ports import EntityExtractor, ModelCall, Span
from streams.context import AgentContext

#: Groups of texts on their way: one with the model, one ready for it, one begun or finished. Bounds memory.
GROUPS_AT_ONCE: Final = 3
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
        spans = self.extractor.extract(windows, labels, threshold=threshold)
        self._count(len(windows))
        return spans

    def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
        for answers in self.extractor.extract_each(calls):
            self._count(len(answers))
            yield answers

    def _count(self, windows: int) -> None:
        self.context.metrics.model_windows.observe(windows)
        self.context.beat()


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The extractor on a thread of its own; `rules`: a thread that meanwhile begins and finishes other texts."""

    extractor: EntityExtractor
    executor: Executor
    rules: Executor
    batch_windows: int | None

    async def extract(self, texts: Texts) -> tuple[dict[DocumentId, Extracted], dict[DocumentId, str]]:
        """What stands in each text; or why the model, or a pattern, refuses it. Both in the order given."""
        most = TEXTS_MIXED if self.extractor.mixes_documents else 1
        items = list(texts.items())
        groups = [dict(items[at : at + most]) for at in range(0, len(items), most)]
        found: dict[DocumentId, Extracted] = {}
        refused: dict[DocumentId, str] = {}
        for group, outcome in zip(groups, await self._all(groups), strict=True):
            if not isinstance(outcome, ValueError):
                found |= zip(group, outcome, strict=True)
            elif len(group) == 1:
                refused |= dict.fromkeys(group, str(outcome))
            else:
                # Mixed with others, it isn't known whose text it was: each by itself.
                for doc_id, text in group.items():
                    more, poisoned = await self.extract({doc_id: text})
                    found |= more
                    refused |= poisoned
        return found, refused

    async def _all(self, groups: Sequence[Texts]) -> list[list[Extracted] | ValueError]:
        """A few at a time: the model's next group is ready before it has done with the last."""
        room = asyncio.Semaphore(GROUPS_AT_ONCE)
        async with asyncio.TaskGroup() as tasks:
            running = []
            for group in groups:
                await room.acquire()
                running.append(tasks.create_task(self._one(list(group.values()), room)))
        return [task.result() for task in running]

    async def _one(
        self, texts: Sequence[TextToExtract], room: asyncio.Semaphore
    ) -> list[Extracted] | ValueError:
        """Cancelled, it leaves the step that has begun to its end: windows of a single text, or a few."""
        on = asyncio.get_running_loop().run_in_executor
        begin = partial(begin_texts, texts, extractor=self.extractor, batch_windows=self.batch_windows)
        try:
            begun = await on(self.rules, begin)
            await on(self.executor, ask_model, begun, self.extractor)
            return await on(self.rules, finish_texts, begun)
        except ValueError as exc:
            return exc
        finally:
            room.release()
