"""Which worker reads which partitions: Faust's own assignor, told that no standby copies are wanted."""

from __future__ import annotations

from typing import Any

from faust.assignor import PartitionAssignor


class EvenAssignor(PartitionAssignor):
    """Equal partition numbers of all topics to one worker, and no worker holds two numbers more than another.

    Faust spreads evenly only where no standbys are asked for: else a worker keeps what it holds up to
    ceil(numbers / workers), and one that joins may be left with nothing. We must ask for a standby, because without
    one (and without tables) Faust doesn't use this assignor at all (see faust_app), but have no tables to copy.
    """

    def __init__(self, app: Any, replicas: int = 0) -> None:
        del replicas
        super().__init__(app, replicas=0)
