"""Runs one agent as a process: start in order, report health, drain on SIGTERM, leave at once on a bug."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from typing import Any, Final, TypeVar

import faust
import structlog

from indexers.errors import HoplineError, Transient
from indexers.process_metrics import process_registry
from streams.admin import ensure_topics
from streams.batch import BatchHandler
from streams.context import AgentContext, AgentSpec
from streams.dlq import DeadLetters
from streams.faust_app import build_app
from streams.health import Liveness, Readiness, serve_health
from streams.hold import Holder
from streams.lag import LagReader
from streams.metrics import StreamMetrics
from streams.pipeline import Pipeline, leave
from streams.producer import EventProducer
from streams.standing import Standing
from streams.tracing import open_tracing

P = TypeVar("P")
T = TypeVar("T")
OpenHandler = Callable[[AgentContext], contextlib.AbstractAsyncContextManager[BatchHandler[P]]]

_LAG_SECONDS: Final = 2.0
_APP_STOP_SECONDS: Final = 15.0
_ASSIGNMENT: Final = "assignment"
_log = structlog.get_logger("hopline.streams.worker")


async def run_agent(spec: AgentSpec, open_handler: OpenHandler[P]) -> None:
    """Run until SIGTERM or SIGINT, then drain and return.

    `open_handler(context)` is entered before the consumer exists (a model loads for seconds, and a member of the
    group that doesn't answer holds up the others), inside it may wait with `context.hold`. It is left after the
    last batch. Raises ConfigurationError for settings that can't work; a bug ends the process with status 70.
    """
    stopping = Stopping()
    with stopping.on_signals():
        async with contextlib.AsyncExitStack() as resources:
            worker = await resources.enter_async_context(_worker(spec, stopping))
            await worker.run(open_handler)
    _log.info("worker.stopped", agent=spec.name)


class Stopping:
    """SIGTERM or SIGINT: drain. Once more: don't wait for the batch in flight."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurried = asyncio.Event()

    @contextlib.contextmanager
    def on_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ask)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def ask(self) -> None:
        if self.asked.is_set():
            self.hurried.set()
        self.asked.set()


async def done_within(work: Coroutine[Any, Any, object], seconds: float) -> bool:
    """Whether `work` ended in time; raises what it raised. What is late runs on.

    Not `wait_for`, which cancels and then waits for the end: Faust's services catch a cancellation and go on.
    """
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=seconds)
    if not task.done():
        return False
    task.result()
    return True


@contextlib.asynccontextmanager
async def _worker(spec: AgentSpec, stopping: Stopping) -> AsyncIterator[Worker]:
    registry = process_registry()
    metrics = StreamMetrics(registry, agent=spec.name)
    liveness = Liveness(limit_seconds=spec.settings.liveness_seconds)
    readiness = Readiness((_ASSIGNMENT, *spec.needs))
    holder = Holder(
        metrics=metrics, liveness=liveness, readiness=readiness, longest_pause=spec.settings.retry_max_seconds
    )
    health = serve_health(
        spec.settings.http_host,
        spec.settings.http_port,
        registry,
        live=liveness.verdict,
        ready=readiness.verdict,
    )
    tracing = open_tracing(spec.tracing, service=f"hopline-{spec.name}")
    producer = EventProducer(spec.kafka, spec.servers, tracing=tracing)
    letters = DeadLetters(producer, spec.topics.dead_letters, agent=spec.name, metrics=metrics)
    context = AgentContext(
        spec=spec,
        metrics=metrics,
        liveness=liveness,
        producer=producer,
        letters=letters,
        holder=holder,
        tracing=tracing,
    )
    async with health as port:
        _log.info("worker.started", agent=spec.name, http_port=port)
        try:
            yield Worker(context, readiness, stopping)
        finally:
            with contextlib.suppress(Transient):
                await producer.stop()
            tracing.close()


class Worker:
    """The life of one agent process, phase by phase."""

    def __init__(self, context: AgentContext, readiness: Readiness, stopping: Stopping) -> None:
        self._context = context
        self._spec = context.spec
        self._readiness = readiness
        self._stopping = stopping
        self._partitions: Sequence[tuple[str, int]] = ()
        self._standing = Standing()
        self._context.metrics.follow(self._standing, self._spec.inputs)

    async def run(self, open_handler: OpenHandler[P]) -> None:
        async with contextlib.AsyncExitStack() as resources, asyncio.TaskGroup() as tasks:
            opening = self._open(resources, open_handler)
            handler = await self._unless_stopping(tasks, opening)
            if handler is None:
                return
            pipeline = Pipeline(handler, self._context, tasks)
            # Not in the working folder, which may be read-only.
            folder = tempfile.TemporaryDirectory(prefix="hopline-faust-")
            app = build_app(self._spec, pipeline, self._assigned, self._revoked, folder=folder.name)
            watching = tasks.create_task(self._watch(app, pipeline), name="watch")
            try:
                await self._start(app, folder)
                await self._stopping.asked.wait()
                await self._drain(app, pipeline)
            finally:
                watching.cancel()

    async def _open(
        self, resources: contextlib.AsyncExitStack, open_handler: OpenHandler[P]
    ) -> BatchHandler[P]:
        spec, hold = self._spec, self._context.hold
        await hold("kafka", lambda: ensure_topics(spec.kafka, spec.servers, spec.topics))
        await hold("kafka", self._context.producer.start)
        return await resources.enter_async_context(open_handler(self._context))

    async def _unless_stopping(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, T]) -> T | None:
        """The result, or None where a stop was asked for meanwhile: the start may be waiting for the store."""
        doing = tasks.create_task(work, name="open")
        asked = tasks.create_task(self._stopping.asked.wait(), name="asked")
        await asyncio.wait([doing, asked], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not doing.done():
            doing.cancel()
            return None
        return doing.result()

    async def _start(self, app: faust.App, folder: tempfile.TemporaryDirectory[str]) -> None:
        try:
            with folder:  # gone as soon as it may go, so that a process that is killed leaves none
                await app.start()
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # noqa: BLE001 - half started, Faust can't be trusted to stop
            leave("worker.start_failed", exc)

    async def _drain(self, app: faust.App, pipeline: Pipeline[P]) -> None:
        """What is in flight gets its grace and is committed; what isn't finished stays un-acknowledged."""
        _log.info("worker.draining", grace_seconds=self._spec.settings.stop_grace_seconds)
        finished = await self._unless_hurried(pipeline.drain(self._spec.settings.stop_grace_seconds))
        if not finished:
            _log.warning("batch.abandoned", reason="not finished within stop_grace_seconds; it comes again")
            pipeline.abandon()
        if not await done_within(app.stop(), _APP_STOP_SECONDS):
            leave("worker.stop_timed_out", TimeoutError(f"Faust took more than {_APP_STOP_SECONDS} s"))

    async def _unless_hurried(self, draining: Coroutine[Any, Any, bool]) -> bool:
        async with asyncio.TaskGroup() as tasks:
            drained = tasks.create_task(draining)
            hurried = tasks.create_task(self._stopping.hurried.wait())
            await asyncio.wait([drained, hurried], return_when=asyncio.FIRST_COMPLETED)
            for task in (drained, hurried):
                task.cancel()
        return not drained.cancelled() and drained.result()

    def _assigned(self, partitions: Sequence[tuple[str, int]]) -> None:
        """An empty assignment is one too: a worker more than there are partitions stands by, and is ready."""
        self._partitions = partitions
        self._standing.forget()
        self._context.metrics.assigned.set(len(partitions))
        self._context.metrics.rebalances.inc()
        self._context.liveness.moved()
        self._readiness.met(_ASSIGNMENT)
        _log.info("worker.assigned", agent=self._spec.name, partitions=[f"{t}:{p}" for t, p in partitions])

    def _revoked(self) -> None:
        self._partitions = ()
        self._standing.forget()
        self._readiness.met(_ASSIGNMENT, value=False)

    async def _watch(self, app: faust.App, pipeline: Pipeline[P]) -> None:
        try:
            await self._watch_forever(app, pipeline)
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # noqa: BLE001 - a task group would unwind around a running Faust, and hang
            leave("watch.failed", exc)

    async def _watch_forever(self, app: faust.App, pipeline: Pipeline[P]) -> None:
        """Lag as the brokers see it, every two seconds; and an end when Faust has given up."""
        async with LagReader(self._spec.kafka, self._spec.servers, self._spec.group) as reader:
            while True:
                await asyncio.sleep(_LAG_SECONDS)
                if app.crashed:
                    leave("worker.crashed", app.crash_reason or RuntimeError("faust gave no reason"))
                try:
                    await self._read_lag(reader, pipeline)
                except Transient as exc:
                    self._context.liveness.tried("kafka")
                    _log.warning("lag.unknown", reason=exc.reason)
                except HoplineError as exc:
                    _log.error("lag.unknown", reason=str(exc))

    async def _read_lag(self, reader: LagReader, pipeline: Pipeline[P]) -> None:
        partitions = self._partitions
        found = await reader.read(self._spec.inputs, partitions)
        self._context.liveness.reached("kafka")
        if partitions is not self._partitions:
            return  # a rebalance came between
        if self._standing.read(found, pipeline.in_work):
            self._context.liveness.moved()
            self._context.metrics.progress.set_to_current_time()
        self._context.liveness.waiting(sum(p.lag for p in found))
        for topic in self._spec.inputs:
            self._context.metrics.lag.labels(topic=topic).set(sum(p.lag for p in found if p.topic == topic))
