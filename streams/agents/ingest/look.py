"""What the events of a batch speak of, as it is now. Blocking; goes on where a vault that was away stopped it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from indexers.errors import PoisonRecord, Transient
from streams.agents.ingest.content import content_of
from streams.agents.ingest.decode import Arrival
from streams.agents.ingest.plan import Sight
from streams.agents.vaults import Vaults
from streams.batch import Poisoned


@dataclass(slots=True, kw_only=True)
class Look:
    """`waiting`: what is still to be looked at."""

    vaults: Vaults
    cap_bytes: int
    waiting: list[Arrival]
    sights: list[Sight] = field(default_factory=list)
    unreadable: list[Poisoned] = field(default_factory=list)

    def go_on(self) -> None:
        """Raises Transient while vaults are away; all of them are asked, so that they are awaited together."""
        fault: Transient | None = None
        waiting, self.waiting = self.waiting, []
        for arrival in waiting:
            try:
                self.sights.append(self._sight_of(arrival))
            except PoisonRecord as error:
                self.unreadable.append(Poisoned(record=arrival.record, error=error))
            except Transient as exc:
                fault = exc
                self.waiting.append(arrival)
        if fault is not None:
            raise fault

    def _sight_of(self, arrival: Arrival) -> Sight:
        """Of a reference only hash and size are kept: most are unchanged, and a batch may name hundreds of files."""
        content = content_of(arrival, self.vaults, self.cap_bytes)
        if content is not None and arrival.is_reference:
            content = replace(content, head=b"")
        return Sight(arrival=arrival, content=content)
