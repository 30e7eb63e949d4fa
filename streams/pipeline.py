"""Two stages, acknowledgements in order: the commit rule of streams.batch at work."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Generic, NoReturn, TypeVar

import structlog

from indexers.errors import PoisonRecord
from streams.batch import BatchHandler, Poisoned, Record, offsets_of, poison_run
from streams.context import AgentContext, begin_notes
from streams.events import new_event_id
from streams.metrics import Stage
from streams.standing import Place

P = TypeVar("P")
T = TypeVar("T")
Acknowledge = Callable[[], Awaitable[None]]

#: A bug: nothing was acknowledged, a supervisor starts the process anew (EX_SOFTWARE of sysexits.h).
EXIT_BUG: Final = 70
_log = structlog.get_logger("hopline.streams.pipeline")


def leave(event: str, exc: BaseException) -> NoReturn:
    """End the process at once, no await in between: an exception inside Faust would lose events (trap 2)."""
    _log.critical(event, error=repr(exc), exc_info=exc)
    sys.stderr.flush()
    os._exit(EXIT_BUG)


class Pipeline(Generic[P]):
    """`feed` one batch after another, from one task. The handler's stages run here and nowhere else.

    One batch is in the second stage, `AgentSpec.preparing` of them are in the first or wait for the second.
    """

    def __init__(self, handler: BatchHandler[P], context: AgentContext, tasks: asyncio.TaskGroup) -> None:
        self._handler = handler
        self._context = context
        self._tasks = tasks
        self._preparing = asyncio.Semaphore(context.spec.preparing)
        self._room = asyncio.Semaphore(context.spec.preparing)
        self._running: set[asyncio.Task[None]] = set()
        #: Set once the batch that was fed last is acknowledged.
        self._before = asyncio.Event()
        self._before.set()
        #: Records that were fed and aren't acknowledged, in the order of feeding.
        self._fed: dict[object, Sequence[Record]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._idle_since = -math.inf
        self._closing = False
        self._poison_run = 0

    @property
    def idle_seconds(self) -> float:
        """For how long nothing has been in work; for ever, before the first batch."""
        return time.perf_counter() - self._idle_since if self._idle.is_set() else 0.0

    @property
    def in_work(self) -> dict[Place, float]:
        """Of each partition: timestamp of the oldest record that was fed and isn't acknowledged."""
        oldest: dict[Place, float] = {}
        for records in self._fed.values():
            for record in records:
                if record.timestamp > 0:
                    oldest.setdefault((record.topic, record.partition), record.timestamp)
        return oldest

    async def feed(self, records: Sequence[Record], acknowledge: Acknowledge) -> None:
        """Returns when the next batch may be prepared: where one is at a time, when this is in its second stage."""
        if self._closing:
            await asyncio.Future()  # until the agent is cancelled: nothing new is begun after SIGTERM
        fed = self._enter(records)
        try:
            await self._slow_down()
            await self._room.acquire()
        except BaseException:
            self._exit(fed)
            raise
        before, self._before = self._before, asyncio.Event()
        work = self._run(records, acknowledge, before=before, done=self._before)
        task = self._tasks.create_task(work, name="batch")
        self._running.add(task)
        task.add_done_callback(partial(self._finished, fed))
        async with self._room:
            return

    async def drain(self, grace_seconds: float) -> bool:
        """Begin nothing new; True when what was in flight is acknowledged, False when the grace was too short."""
        self._closing = True
        try:
            await asyncio.wait_for(self._idle.wait(), grace_seconds)
        except TimeoutError:
            return False
        return True

    def abandon(self) -> None:
        """Stop every batch where it is: they stay un-acknowledged and come again.

        The store stage isn't free afterwards. A later batch that was acknowledged past one of these would lose it
        (trap 10).
        """
        for task in self._running:
            task.cancel()

    async def _run(
        self,
        records: Sequence[Record],
        acknowledge: Acknowledge,
        *,
        before: asyncio.Event,
        done: asyncio.Event,
    ) -> None:
        """One batch. `before`: the one before is acknowledged; `done`: this one is. Given up, it never is."""
        name, batch = self._context.spec.name, new_event_id()
        led = [record.trace for record in records if record.trace is not None]
        # In every line that is logged on the way: this task is the batch's own.
        structlog.contextvars.bind_contextvars(agent=name, batch=batch)
        with self._context.tracing.span(f"{name} batch", kind="consumer", before=led) as span:
            if span.trace_id is not None:
                structlog.contextvars.bind_contextvars(trace_id=span.trace_id)
            noted = begin_notes()
            times = await self._stages(records, acknowledge, before)
            done.set()
            self._account(records, times, noted)
            span.tell({"batch": batch, "records": len(records), **noted})

    async def _stages(
        self, records: Sequence[Record], acknowledge: Acknowledge, before: asyncio.Event
    ) -> dict[str, float]:
        """Seconds of each."""
        started = time.perf_counter()
        finish = await self._guarded(self._prepare(records))
        prepared = time.perf_counter()
        await before.wait()
        self._room.release()
        turn = time.perf_counter()
        await self._guarded(finish())
        await self._guarded(acknowledge())
        return {"prepare": prepared - started, "wait": turn - prepared, "commit": time.perf_counter() - turn}

    def _finished(self, fed: object, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._exit(fed)

    async def _prepare(self, records: Sequence[Record]) -> Callable[[], Awaitable[None]]:
        """The second stage, ready to be called."""
        try:
            prepared = await self._call_prepare(records)
        except PoisonRecord:
            return partial(self._one_by_one, records)
        return partial(self._commit, records, prepared)

    async def _commit(self, records: Sequence[Record], prepared: P) -> None:
        try:
            await self._call_commit(prepared)
        except PoisonRecord:
            await self._one_by_one(records)

    async def _one_by_one(self, records: Sequence[Record]) -> None:
        """Find the record that nobody named; what was done before is done again, to the same effect."""
        for record in records:
            try:
                await self._call_commit(await self._call_prepare([record]))
            except PoisonRecord as error:
                await self._context.park([Poisoned(record=record, error=error)])

    async def _call_prepare(self, records: Sequence[Record]) -> P:
        async with self._preparing:
            return await self._timed("prepare", lambda: self._handler.prepare(records))

    async def _call_commit(self, prepared: P) -> None:
        await self._timed("commit", lambda: self._handler.commit(prepared))

    async def _timed(self, stage: Stage, call: Callable[[], Awaitable[T]]) -> T:
        with self._context.metrics.stage_seconds.labels(stage=stage).time():
            result = await self._context.hold("batch", call)
        self._context.beat()
        return result

    async def _guarded(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # noqa: BLE001 - whatever it is, nothing may reach Faust
            leave("batch.failed", exc)

    async def _slow_down(self) -> None:
        settings = self._context.spec.settings
        if settings.poison_run and self._poison_run >= settings.poison_run:
            _log.error(
                "records.poisoned_in_a_row",
                records=self._poison_run,
                pause_seconds=settings.poison_pause_seconds,
            )
            await self._context.holder.pause("poison_run", settings.poison_pause_seconds)

    def _account(
        self, records: Sequence[Record], times: Mapping[str, float], outcomes: Mapping[str, int]
    ) -> None:
        metrics = self._context.metrics
        parked = self._context.forget_parked(records)
        self._poison_run = poison_run(self._poison_run, records=len(records), parked=parked)
        metrics.poison_run.set(self._poison_run)
        metrics.batch_records.observe(len(records))
        for topic in {r.topic for r in records}:
            own = [r for r in records if r.topic == topic]
            metrics.records.labels(topic=topic).inc(len(own))
            metrics.newest_event.labels(topic=topic).set(max(r.timestamp for r in own))
        _log.info(
            "batch.committed",
            offsets=offsets_of(records),
            records=len(records),
            parked=parked,
            bytes=sum(r.size for r in records),
            **{f"{stage}_seconds": round(seconds, 4) for stage, seconds in times.items()},
            outcomes={name: count for name, count in outcomes.items() if count},
        )

    def _enter(self, records: Sequence[Record]) -> object:
        fed = object()
        self._fed[fed] = records
        self._idle.clear()
        self._context.liveness.begin()
        return fed

    def _exit(self, fed: object) -> None:
        del self._fed[fed]
        self._context.liveness.end()
        if not self._fed:
            self._idle_since = time.perf_counter()
            self._idle.set()
