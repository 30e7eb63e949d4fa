"""What documents say, read from their vaults when it is asked for; what was read last is kept for a while."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from indexers.domain.identity import DocumentKey
from indexers.linking.unlinked_look import NamedText
from indexers.linking.unlinked_rows import Sayer
from indexers.planning import FileContent, SaidText, said_of
from indexers.settings import IndexingSettings

#: Texts kept, in bytes of memory as far as they can be told.
KEPT_BYTES = 32_000_000
_CHARACTER_BYTES = 2
_TOKEN_BYTES = 120

#: The file as it is now, None where there is none. Blocking.
ReadFile = Callable[[DocumentKey], FileContent | None]
#: Runs a blocking call off the event loop, and waits for a vault that is away.
Run = Callable[[Callable[[], list[SaidText | None]]], Awaitable[list[SaidText | None]]]


@dataclass(slots=True)
class SaidTexts:
    """Bounded by bytes, the longest unused goes first. By document and content hash, so never stale."""

    max_bytes: int = KEPT_BYTES
    _kept: OrderedDict[tuple[str, str], SaidText] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def keep(self, doc_id: str, content_hash: str, text: SaidText) -> None:
        key = (doc_id, content_hash)
        if key in self._kept:
            self._kept.move_to_end(key)
            return
        self._kept[key] = text
        self._bytes += _size(text)
        while self._bytes > self.max_bytes:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= _size(gone)

    def drop(self, doc_id: str) -> None:
        """All texts of the document."""
        for key in [key for key in self._kept if key[0] == doc_id]:
            self._bytes -= _size(self._kept.pop(key))

    def find(self, doc_id: str, content_hash: str) -> SaidText | None:
        key = (doc_id, content_hash)
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)


async def run_in_thread(call: Callable[[], list[SaidText | None]]) -> list[SaidText | None]:
    return await asyncio.to_thread(call)


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultTexts:
    """`TextSource` over files."""

    read_file: ReadFile
    settings: IndexingSettings
    kept: SaidTexts = field(default_factory=SaidTexts)
    run: Run = run_in_thread

    async def read(self, sayers: Sequence[Sayer]) -> list[NamedText | None]:
        known = [self.kept.find(sayer.key.doc_id, sayer.content_hash) for sayer in sayers]
        missing = [sayer for sayer, text in zip(sayers, known, strict=True) if text is None]
        read = iter(await self.run(lambda: self._read(missing)) if missing else [])
        found = [next(read) if text is None else text for text in known]
        return [
            None if text is None else _named(sayer, text) for sayer, text in zip(sayers, found, strict=True)
        ]

    def _read(self, sayers: Iterable[Sayer]) -> list[SaidText | None]:
        found: list[SaidText | None] = []
        for sayer in sayers:
            content = self.read_file(sayer.key)
            if content is None or content.content_hash != sayer.content_hash:
                found.append(None)
                continue
            text = said_of(sayer.key, content, self.settings)
            self.kept.keep(sayer.key.doc_id, sayer.content_hash, text)
            found.append(text)
        return found


def _named(sayer: Sayer, text: SaidText) -> NamedText:
    return NamedText(key=sayer.key, version=sayer.version, text=text.text, said=text.said)


def _size(text: SaidText) -> int:
    tokens = sum(len(piece.keys) for piece in text.said)
    return len(text.text) * _CHARACTER_BYTES + tokens * _TOKEN_BYTES
