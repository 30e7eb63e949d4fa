"""What an agent is (`AgentSpec`) and what the runtime gives its handler (`AgentContext`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeVar

from streams.batch import BatchSizes, Poisoned, Record
from streams.dlq import DeadLetters
from streams.health import Liveness
from streams.hold import Holder
from streams.metrics import Dependency, StreamMetrics
from streams.producer import EventProducer, OutgoingRecord
from streams.settings import AgentSettings, KafkaSettings, TracingSettings
from streams.topics import Topics
from streams.tracing import OFF, Tracing

T = TypeVar("T")
#: What came of the batch whose task this is. Several are in work at once, so no field of the context can hold it.
_noted: Final[ContextVar[Counter[str] | None]] = ContextVar("noted", default=None)


def begin_notes() -> Counter[str]:
    """From here on, what is noted in this task is noted there."""
    noted = Counter[str]()
    _noted.set(noted)
    return noted


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One agent: its name gives group and topics (`Topics.group`, `Topics.read_by` unless `reads` is given).

    `needs`: dependencies that must have answered once before /readyz says yes. `preparing`: batches that may be in
    `prepare` at once; more than one where a model would else wait for the look-ups of the next batch. `first_records`:
    most records of the first batch after a quiet time (`BatchSizes`); None: as of any other.
    """

    name: str
    topics: Topics
    kafka: KafkaSettings
    servers: str
    settings: AgentSettings
    needs: tuple[Dependency, ...] = ("opensearch",)
    reads: tuple[str, ...] = ()
    preparing: int = 1
    #: Added to the group's name: of a second group of the same agent.
    part: str = ""
    first_records: int | None = None
    tracing: TracingSettings = field(default_factory=TracingSettings)

    @property
    def batch_sizes(self) -> BatchSizes:
        most = self.settings.batch_records
        return BatchSizes(first=self.first_records or most, most=most)

    @property
    def group(self) -> str:
        return self.topics.group(self.name) + self.part

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.reads or self.topics.read_by(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """Services of the runtime for one handler."""

    spec: AgentSpec
    metrics: StreamMetrics
    liveness: Liveness
    producer: EventProducer
    letters: DeadLetters
    holder: Holder
    tracing: Tracing = OFF
    #: Called once dead letters are confirmed.
    after_park: list[Callable[[Sequence[Poisoned]], Awaitable[None]]] = field(default_factory=list)
    _parked: set[tuple[str, int, int]] = field(default_factory=set)

    async def hold(self, dependency: Dependency, call: Callable[[], Awaitable[T]]) -> T:
        """The call's result; while it raises Transient, it is called again, for as long as it takes."""
        return await self.holder.hold(dependency, call)

    async def send(self, records: Sequence[OutgoingRecord]) -> None:
        """Confirmed events; waits while the brokers are away."""
        await self.holder.hold("kafka", lambda: self.producer.send_all(records))

    async def park(self, poisoned: Sequence[Poisoned]) -> None:
        """Confirmed dead letters; waits while the brokers are away. To be called in `commit`."""
        await self.holder.hold("kafka", lambda: self.letters.park(poisoned))
        for told in self.after_park if poisoned else ():
            await told(poisoned)
        self._parked.update(p.record.place for p in poisoned)

    def note(self, **outcomes: int) -> None:
        """How many of what came of the batch, for its line in the log: numbers, never a name or a text."""
        noted = _noted.get()
        if noted is not None:
            noted.update(outcomes)

    def beat(self) -> None:
        """Part of a long batch is done: the worker is alive."""
        self.liveness.moved()

    def forget_parked(self, records: Sequence[Record]) -> int:
        """How many of these were parked. The runtime asks once a batch is acknowledged."""
        places = {record.place for record in records} & self._parked
        self._parked.difference_update(places)
        return len(places)
