"""The next live changes, and what the watching library's ends mean."""

from __future__ import annotations

from collections.abc import AsyncGenerator

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


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for fault in group.exceptions:
        found += _leaves(fault) if isinstance(fault, BaseExceptionGroup) else [fault]
    return found
