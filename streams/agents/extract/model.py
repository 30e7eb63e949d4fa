"""Texts → mentions off the event loop, with a sign of life and a count for each call of the model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from indexers.domain.identity import DocumentId
from indexers.extraction import Extracted, extract_texts
from indexers.model_calls import TextToExtract
from indexers.ports import EntityExtractor, Span
from streams.context import AgentContext

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
        self.context.metrics.model_windows.observe(len(windows))
        self.context.beat()
        return spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The extractor on a thread of its own."""

    extractor: EntityExtractor
    executor: Executor
    batch_windows: int | None

    async def extract(self, texts: Texts) -> tuple[dict[DocumentId, Extracted], dict[DocumentId, str]]:
        """What stands in each text; or why the model, or a pattern, refuses it."""
        together = bool(texts) and self.extractor.mixes_documents
        groups: Sequence[Texts] = [texts] if together else [{doc_id: text} for doc_id, text in texts.items()]
        found: dict[DocumentId, Extracted] = {}
        refused: dict[DocumentId, str] = {}
        for group in groups:
            try:
                found |= await self._call(group)
            except ValueError as exc:
                if len(group) == 1:
                    refused |= dict.fromkeys(group, str(exc))
                    continue
                # Mixed with others, it isn't known whose text it was: each by itself.
                more, poisoned = await self._apart(group)
                found |= more
                refused |= poisoned
        return found, refused

    async def _apart(self, texts: Texts) -> tuple[dict[DocumentId, Extracted], dict[DocumentId, str]]:
        found: dict[DocumentId, Extracted] = {}
        refused: dict[DocumentId, str] = {}
        for doc_id, text in texts.items():
            more, poisoned = await self.extract({doc_id: text})
            found |= more
            refused |= poisoned
        return found, refused

    async def _call(self, texts: Texts) -> dict[DocumentId, Extracted]:
        def call() -> list[Extracted]:
            return extract_texts(
                list(texts.values()), extractor=self.extractor, batch_windows=self.batch_windows
            )

        found = await asyncio.get_running_loop().run_in_executor(self.executor, call)
        return dict(zip(texts, found, strict=True))
