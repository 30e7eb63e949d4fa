"""The verifier's process: a run, a pause, the next run, until it is stopped. Changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import structlog

from indexers.errors import ConfigurationError, HoplineError
from indexers.opensearch.gate import Gate
from indexers.opensearch.retry import RetryPolicy
from indexers.process_metrics import process_registry
from indexers.settings import VaultRoot
from indexers.verify.report import VerifyReport
from streams.agents.config import AgentConfig
from streams.health import Liveness, Readiness, serve_health
from streams.rebuild import verify_roots
from streams.settings import VerifierSettings
from streams.verifier.metrics import VerifyMetrics
from streams.verifier.standing import standing
from streams.watcher.status import TREE_NAME

log = structlog.get_logger("hopline.streams.verifier")

#: Tries inside one request of the gate; beyond them the run has failed.
_ATTEMPTS: Final = 3
#: A failed run is tried again after so long, or after the usual pause where that is shorter.
_RETRY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierConfig:
    """`roots`: what is compared, as it is now; blocking. `named`: the roots of the settings among them."""

    agent: AgentConfig
    settings: VerifierSettings
    roots: Callable[[], Sequence[VaultRoot]]
    every_seconds: float

    @property
    def named(self) -> frozenset[str]:
        return frozenset(root.name for root in self.agent.roots)


async def run(config: VerifierConfig) -> None:
    """Until SIGTERM or SIGINT, which end it at once: nothing is written, so nothing is left half done.

    Raises ConfigurationError for settings that can't work.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await _serve(config, stop)
    log.info("verifier.stopped")


async def _serve(config: VerifierConfig, stop: asyncio.Event) -> None:
    metrics = VerifyMetrics(process_registry())
    liveness, readiness = Liveness(limit_seconds=config.settings.liveness_seconds), Readiness(())
    serving = serve_health(
        config.settings.http_host,
        config.settings.http_port,
        metrics.registry,
        live=liveness.verdict,
        ready=readiness.verdict,
    )
    policy = RetryPolicy(attempts=_ATTEMPTS, on_wait=lambda *_: liveness.tried("opensearch"))
    gate = config.agent.gate(policy)
    try:
        async with serving as port:
            log.info("verifier.started", http_port=port, every_seconds=config.every_seconds)
            runs = Runs(config=config, gate=gate, metrics=metrics, liveness=liveness)
            await _until(stop, runs.repeat())
    finally:
        await gate.close()


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, NoReturn]) -> None:
    """What the work raises is raised here, as it is."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    for task in (working, stopping):
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """One run after another."""

    config: VerifierConfig
    gate: Gate
    metrics: VerifyMetrics
    liveness: Liveness

    async def repeat(self) -> NoReturn:
        """Runs begin `every_seconds` apart, or right after one another where one takes longer."""
        every = self.config.every_seconds
        while True:
            began = time.monotonic()
            complete = await self.once()
            took = time.monotonic() - began
            await asyncio.sleep(max(0.0, every - took) if complete else min(every, _RETRY_SECONDS))

    async def once(self) -> bool:
        """False: it could not be ended, and says nothing."""
        began = time.monotonic()
        self.liveness.begin()
        try:
            findings = await self._findings()
        except ConfigurationError:
            raise
        except HoplineError as fault:
            self.metrics.failed()
            log.warning("verify.failed", reason=str(fault), seconds=round(time.monotonic() - began, 3))
            return False
        finally:
            self.liveness.end()
        self.liveness.reached("opensearch")
        seconds = time.monotonic() - began
        self.metrics.complete(findings, seconds)
        found = {root: dict(counts) for root, counts in findings.items() if counts}
        log.info("verify.finished", roots=len(findings), findings=found, seconds=round(seconds, 3))
        return True

    async def _findings(self) -> Mapping[str, Counter[str]]:
        """By root as it is shown. What isn't clean is looked at once more, after what is under way had time."""
        roots = await asyncio.to_thread(self.config.roots)
        first = await self._look(roots)
        doubtful = [root for root in roots if not first[root.name].clean]
        second: Mapping[str, VerifyReport] = {}
        if doubtful:
            await asyncio.sleep(self.config.settings.settle_seconds)
            second = await self._look(doubtful)
        findings: dict[str, Counter[str]] = {}
        for root in roots:
            shown = root.name if root.name in self.config.named else TREE_NAME
            own = standing(first[root.name], second[root.name]) if root.name in second else Counter[str]()
            findings[shown] = findings.get(shown, Counter()) + own
        return findings

    async def _look(self, roots: Sequence[VaultRoot]) -> dict[str, VerifyReport]:
        reports = await verify_roots(
            self.config.agent, self.gate, roots, say=lambda _line: self.liveness.moved()
        )
        return {report.root: report for report in reports}
