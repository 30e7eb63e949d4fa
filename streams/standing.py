"""Where a worker's group stands on the partitions that it holds: what waits, since when, and whether offsets move."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from streams.lag import PartitionLag

#: Of a record: topic and partition.
Place = tuple[str, int]
#: Sightings of one partition's end; beyond them every second one is forgotten, which makes ages a little smaller.
_SIGHTINGS: Final = 512


class Standing:
    """Told by the look at the brokers, asked by /metrics at any time: ages grow while the brokers are away, too.

    A record's age comes from its own timestamp where the record is in work. Else from when its offset was first
    seen to be there: never more than it is, less by the time between two looks, and for a record that waited before
    this worker came, until it is read.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._committed: dict[Place, int] = {}
        #: End offsets as they grew, and when each was first seen.
        self._ends: defaultdict[Place, list[tuple[int, float]]] = defaultdict(list)
        #: Of each topic: when the oldest record that waits came.
        self._since: dict[str, float] = {}
        self._moved_at: float | None = None

    def forget(self) -> None:
        """The partitions were assigned anew, or taken away."""
        self._committed = {}
        self._ends.clear()
        self._since = {}
        self._moved_at = None

    def read(self, found: Sequence[PartitionLag], in_work: Mapping[Place, float]) -> bool:
        """Whether a committed offset has moved since the last look. `in_work`: time of the oldest such record."""
        now = self._clock()
        committed = {(p.topic, p.partition): p.committed or 0 for p in found}
        moved = any(committed.get(place, 0) > before for place, before in self._committed.items())
        self._committed = committed
        since: dict[str, float] = {}
        for one in found:
            waiting = self._waiting_since(one, now, in_work)
            if waiting is not None:
                since[one.topic] = min(waiting, since.get(one.topic, waiting))
        if not since:
            self._moved_at = None
        elif moved or self._moved_at is None:
            self._moved_at = now
        self._since = since
        return moved

    def lag_seconds(self, topic: str) -> float:
        """Age of the oldest record that isn't committed; 0: none waits."""
        return self._age(self._since.get(topic))

    def commit_age_seconds(self) -> float:
        """Since records wait, or since an offset last moved while they do; 0: none waits."""
        return self._age(self._moved_at)

    def _waiting_since(self, one: PartitionLag, now: float, in_work: Mapping[Place, float]) -> float | None:
        place = (one.topic, one.partition)
        next_offset = one.end - one.lag
        ends = [(end, seen) for end, seen in self._ends[place] if end > next_offset]
        if one.end > next_offset and (not ends or one.end > ends[-1][0]):
            ends.append((one.end, now))
        self._ends[place] = ends if len(ends) <= _SIGHTINGS else ends[::2]
        if not ends:
            return None
        return min(ends[0][1], in_work.get(place, now))

    def _age(self, since: float | None) -> float:
        return 0.0 if since is None else max(0.0, self._clock() - since)
