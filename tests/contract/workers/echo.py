"""An agent for the tests of the runtime: what it does to a record stands in the record.

Writes one JSON line a step to the file named in ECHO_LOG: {"step", "pid", "places", "values", "at"}.
ECHO_* variables say how it fails; KafkaSettings and AgentSettings come as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from indexers.errors import PoisonRecord, Transient
from streams import events
from streams.batch import Poisoned, Record, decode_each
from streams.context import AgentContext, AgentSpec
from streams.events import FileChange
from streams.logs import configure_logging
from streams.settings import AgentSettings, KafkaSettings
from streams.topics import Topics
from streams.worker import run_agent

LOG = Path(os.environ["ECHO_LOG"])
BEHAVIOUR = json.loads(os.environ.get("ECHO_BEHAVIOUR", "{}"))
AWAY = Path(BEHAVIOUR.get("away_while", "/nowhere"))
Prepared = tuple[Sequence[Record], list[Poisoned]]


def write(step: str, records: Sequence[Record]) -> None:
    line = {
        "step": step,
        "pid": os.getpid(),
        "places": [f"{r.topic.rpartition('.')[2]}:{r.partition}:{r.offset}" for r in records],
        "values": [(r.value or b"").decode(errors="replace") for r in records],
        "at": time.time(),
    }
    with LOG.open("a") as file:
        file.write(json.dumps(line) + "\n")


class Echo:
    """Steps: prepare, prepared, commit, committed. The store is the log file."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        self._commits = 0

    async def prepare(self, records: Sequence[Record]) -> Prepared:
        write("prepare", records)
        await asyncio.sleep(BEHAVIOUR.get("prepare_seconds", 0))
        bad = decode_each(records, FileChange)[1] if BEHAVIOUR.get("decode") else []
        write("prepared", records)
        return records, bad

    async def commit(self, prepared: Prepared) -> None:
        records, bad = prepared
        self._commits += 1
        write("commit", records)
        await self._misbehave(records)
        if bad:
            await self._context.park(bad)
        parked = {poisoned.record.place for poisoned in bad}
        write("committed", [record for record in records if record.place not in parked])

    async def _misbehave(self, records: Sequence[Record]) -> None:
        await asyncio.sleep(BEHAVIOUR.get("commit_seconds", 0))
        if self._commits == BEHAVIOUR.get("raise_at"):
            msg = "a bug"
            raise ValueError(msg)
        if self._commits == BEHAVIOUR.get("hang_at"):
            await asyncio.sleep(3600)
        if any((r.value or b"").decode(errors="replace") == BEHAVIOUR.get("poison") for r in records):
            raise PoisonRecord("rejected_by_store", "the store says no")
        if AWAY.exists():  # noqa: ASYNC240 - a test's switch
            raise Transient("the store is away")


@asynccontextmanager
async def open_echo(context: AgentContext) -> AsyncIterator[Echo]:
    async def reach() -> None:
        return None

    await context.hold("opensearch", reach)
    yield Echo(context)


def main() -> None:
    configure_logging("INFO")
    if "reads" in BEHAVIOUR:  # as another release would
        events.READABLE = frozenset(BEHAVIOUR["reads"])  # type: ignore[misc]
    spec = AgentSpec(
        name="ingest",
        topics=Topics(os.environ["ECHO_PREFIX"]),
        kafka=KafkaSettings.model_validate_json(os.environ.get("ECHO_KAFKA", "{}")),
        servers=os.environ["ECHO_SERVERS"],
        settings=AgentSettings.model_validate_json(os.environ.get("ECHO_AGENT", "{}")),
        preparing=BEHAVIOUR.get("preparing", 1),
        first_records=BEHAVIOUR.get("first_records"),
    )
    asyncio.run(run_agent(spec, open_echo))


if __name__ == "__main__":
    main()
