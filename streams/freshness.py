"""How old what an event tells of is once it can be found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime


def ages(moments: Iterable[str], now: datetime) -> Iterator[float]:
    """Seconds from each moment (ISO 8601; without an offset: UTC) to `now`.

    Never below 0: the clock of another machine may be ahead. A text that is no moment has no age: a foreign producer's
    slip must not stop a batch.
    """
    for moment in moments:
        try:
            then = datetime.fromisoformat(moment)
        except ValueError:
            continue
        yield max(0.0, (now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds())
