"""How fast a bulk of changes may go, so that what others write meanwhile needn't stand behind it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Records of a bulk before anything is known of ingest's speed. New notes take it 20 ms each on a busy
#: machine, and who comes then waits for all of them; a fast ingest is known as such after a few commits.
FIRST_RECORDS: Final = 50
#: A portion is no smaller, however slow ingest is: it has costs of its own per batch.
LEAST_RECORDS: Final = 5
#: In one step, upwards and against what was seen.
_GROWTH: Final = 2.0
_AHEAD: Final = 4.0
_FRESH_SECONDS: Final = 2.0


@dataclass(slots=True, kw_only=True)
class Pace:
    """Told what the broker says, it says how many records more may go. Times: seconds of one monotonic clock.

    The rule: what waits for ingest is kept at `lag_seconds` of its own speed. Committed offsets trail the work by
    up to `commit_seconds`, so of what isn't committed the speed × the time since the last commit counts as done (no
    more than `commit_seconds` of it: work that doesn't end is not done). The speed is what was committed between
    two looks; where ingest had nearly nothing left it was we who held it up, and the speed counts as twice as high.

    Where records wait and nothing is committed for `patience_seconds`, ingest is away: the bulk goes on as it
    comes, and the broker keeps it.
    """

    lag_seconds: float
    commit_seconds: float
    patience_seconds: float
    #: Records a second; None: not known yet.
    rate: float | None = None
    _committed: int | None = None
    #: When something was committed last, or nothing waited.
    _moved_at: float = 0.0
    _waiting: int = 0
    _looked_at: float = 0.0

    def seen(self, at: float, *, committed: int, waiting: int) -> None:
        """Offsets committed so far and records beyond them, of all partitions together."""
        before, self._committed, self._waiting = self._committed, committed, waiting
        looked_at, self._looked_at = self._looked_at, at
        # Nobody looked between two bulks: nothing is said of the time that ingest took.
        if before is not None and committed > before and at - looked_at < _FRESH_SECONDS:
            self._measured((committed - before) / max(at - self._moved_at, 1e-3), waiting)
        if before is None or committed != before or not waiting:
            self._moved_at = at

    def granted(self, records: int) -> None:
        """They are on their way; the next look counts them itself."""
        self._waiting += records

    def room(self, at: float, most: int) -> int:
        """Records that may go now, at most `most`; 0: wait and look again."""
        if self.is_away(at):
            return most
        since = at - self._moved_at
        if self.rate is None:
            allowed = float(FIRST_RECORDS)
        else:
            done = self.rate * min(since, self.commit_seconds)
            allowed = max(self.rate * self.lag_seconds, LEAST_RECORDS) + done
        room = min(most, int(allowed) - self._waiting)
        # Not one by one as ingest goes on: each portion is a call to the disk and one to the broker.
        return room if room >= min(most, LEAST_RECORDS) else 0

    def is_away(self, at: float) -> bool:
        """True while records wait and ingest gets nowhere."""
        return self._waiting > 0 and at - self._moved_at >= self.patience_seconds

    def _measured(self, speed: float, waiting: int) -> None:
        if self.rate is None:
            self.rate = speed
            return
        before, self.rate = self.rate, (self.rate + speed) / 2
        if waiting <= before * self.lag_seconds / 2:
            self.rate = max(self.rate, min(_GROWTH * before, _AHEAD * speed))
