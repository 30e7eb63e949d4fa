"""How long to wait before the next try. Pure."""

from __future__ import annotations

from typing import Final

#: 2**16 times any base is past any cap; larger powers only overflow.
_LAST_POWER: Final = 16


def full_jitter(
    failures: int, *, base_seconds: float, cap_seconds: float, jitter: float, at_least: float = 0.0
) -> float:
    """After the n-th failure in a row (from 1): anything up to base · 2^(n-1) seconds, at most the cap.

    `jitter` is a number of [0, 1). `at_least`, what the service itself asked for, stands above the cap. Never 0:
    full jitter may draw it, and a hot loop is what the back-off is for.
    """
    ceiling = min(cap_seconds, base_seconds * 2.0 ** min(failures - 1, _LAST_POWER))
    return max(ceiling * jitter, base_seconds / 4, at_least)
