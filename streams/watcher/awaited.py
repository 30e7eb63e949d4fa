"""The next live changes, and what the watching library's ends mean."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from watchfiles import Change
from watchfiles._rust_notify import WatchfilesRustInternalError

from indexers.errors import HoplineError

Found = set[tuple[Change, str]]
Changes = AsyncGenerator[Found, None]


class UndecodableName(HoplineError):  # noqa: N818 - a signal of the loop
    """A live change of a file whose name isn't UTF-8: the library drops what it had and ends."""


async def next_of(changes: Changes) -> Found | None:
    """The next changes, empty after a quiet tick; None once told to stop."""
    try:
        return await anext(changes, None)
    except ExceptionGroup as group:
        faults, others = group.split(WatchfilesRustInternalError)
        if faults is None or others is not None:
            raise
        words = [str(fault) for fault in _leaves(faults)]
        if all(text.startswith("Unable to decode path") for text in words):
            raise UndecodableName(words[0]) from group
        msg = f"watching broke: {words[0]}"
        raise HoplineError(msg) from group
    except RuntimeError as exc:
        # The watching library's word for a kernel that refuses more watches; elsewhere it would be a bug's.
        msg = f"watching broke: {exc}"
        raise HoplineError(msg) from exc


class Ahead:
    """The next changes, asked for ahead: what came while a scan was under way can be looked at in the middle of it."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, Found | None]]) -> None:
        self._ask = ask
        self._asked: asyncio.Task[Found | None] | None = None

    async def next(self) -> Found | None:
        """As the question answers: the next changes, None once told to stop, or its fault."""
        task, self._asked = self._asked or asyncio.ensure_future(self._ask()), None
        return await task

    def arrived(self) -> Found:
        """What is there by now. An end or a fault is left for `next`."""
        if self._asked is None:
            self._asked = asyncio.ensure_future(self._ask())
        task = self._asked
        if not task.done() or task.cancelled() or task.exception() is not None:
            return set()
        found = task.result()
        if found is None:
            return set()
        self._asked = None
        return found

    async def close(self) -> None:
        """To be called before what it asks is closed. Waits for the answer.

        The watching library takes a cancelled question for the order to stop everything.
        """
        task, self._asked = self._asked, None
        if task is not None:
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # whoever closes has a fault of his own, or needs no more


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for fault in group.exceptions:
        found += _leaves(fault) if isinstance(fault, BaseExceptionGroup) else [fault]
    return found
