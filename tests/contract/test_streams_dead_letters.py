"""Poison between good records, and what can be done with dead letters afterwards."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from dirty_equals import IsStr
from typer.testing import CliRunner

from hopline.cli.main import build_app
from indexers.domain.identity import Scope
from indexers.errors import PoisonRecord
from streams.batch import Poisoned, Record
from streams.dlq import LetterFilter, letter_of, read_letters, replay
from streams.events import DeadLetter, FileChange, encode, new_event_id, now_iso
from streams.producer import EventProducer
from tests.conftest import Stack
from tests.echo_worker import EchoTopics, EchoWorker, until, until_seen

pytestmark = pytest.mark.engines

Start = Callable[..., EchoWorker]
NOT_JSON = b"\x00\xffnot json"
NO_FIELDS = b'{"tenant":"T1"}'


def change(path: str, **more: Any) -> bytes:
    event = FileChange(
        event_id=new_event_id(), tenant_id="T1", agent_id="a1", scope=Scope.SHARED, occurred_at=now_iso(),
        version=1, path=path, vault_path=path, kind="upserted", size=1, content=b"x",
    )  # fmt: skip
    return json.dumps({**json.loads(encode(event)), **more}).encode()


async def letters(topics: EchoTopics, wanted: LetterFilter | None = None) -> list[DeadLetter]:
    read = read_letters(topics.settings, topics.servers, topics.topics, wanted or LetterFilter())
    return [letter async for letter in read]


async def done(topics: EchoTopics, count: int) -> None:
    async def reached() -> bool:
        return await topics.committed() == count and await topics.waiting() == 0

    await until(reached, what=f"{count} committed")


@pytest.mark.parametrize("batch_records", [1, 10])
async def test_c09_poison_messages_between_good_ones(
    echo_topics: EchoTopics, echo_worker: Start, batch_records: int
) -> None:
    good_a, bad_size, good_b = change("a.md"), change("s.md", size="a lot"), change("b.md")
    await echo_topics.send([good_a, NOT_JSON, None, NO_FIELDS, bad_size, good_b])
    worker = echo_worker({"decode": True}, batch_records=batch_records)
    await done(echo_topics, 6)
    found = sorted(await letters(echo_topics), key=lambda letter: letter.offset)
    topic = echo_topics.topics.file_changes
    partition = found[0].partition
    assert [(x.topic, x.partition, x.offset, x.error_class, x.value, x.key, x.tenant_id) for x in found] == [
        (topic, partition, 1, "not_json", NOT_JSON, b"one", None),
        (topic, partition, 2, "null_value", None, b"one", None),
        (topic, partition, 3, "invalid_fields", NO_FIELDS, b"one", None),
        (topic, partition, 4, "invalid_fields", bad_size, b"one", "T1"),
    ]
    status, metrics = worker.get("/metrics")
    assert status == 200
    for reason, count in {"not_json": 1, "null_value": 1, "invalid_fields": 2}.items():
        assert f'hopline_stream_dead_letters_total{{error_class="{reason}"}} {count}.0' in metrics
    await echo_topics.send([change("c.md")])
    await done(echo_topics, 7)  # the agent still runs
    assert worker.terminate() == 0


async def test_a_record_that_the_handler_cannot_name_is_found_one_by_one(
    echo_topics: EchoTopics, echo_worker: Start
) -> None:
    await echo_topics.send([b"v1", b"poison", b"v2", b"v3"])
    worker = echo_worker({"poison": "poison"})
    await done(echo_topics, 4)
    assert worker.terminate() == 0
    assert [(x.error_class, x.value) for x in await letters(echo_topics)] == [
        ("rejected_by_store", b"poison")
    ]
    assert set(worker.done()) >= {"v1", "v2", "v3"}


async def test_only_poison_slows_the_agent_down(echo_topics: EchoTopics, echo_worker: Start) -> None:
    await echo_topics.send([NOT_JSON] * 60)
    worker = echo_worker({"decode": True}, poison_run=20, poison_pause_seconds=2, liveness_seconds=1)
    await until_seen(lambda: worker.logged("records.poisoned_in_a_row"), what="the first pause")
    assert await echo_topics.committed() < 60
    assert worker.get("/livez")[0] == 200
    await done(echo_topics, 60)
    assert worker.terminate() == 0
    assert len(await letters(echo_topics)) == 60


async def test_a_list_of_nothing_ends(echo_topics: EchoTopics) -> None:
    assert await asyncio.wait_for(letters(echo_topics), 10) == []


async def test_bytes_that_are_no_letter_are_passed_over(echo_topics: EchoTopics) -> None:
    await echo_topics.send([b"by hand", None], topic=echo_topics.topics.dead_letters)
    await echo_topics.send([encode(parked(echo_topics, b"x"))] * 2, topic=echo_topics.topics.dead_letters)
    assert [letter.value for letter in await letters(echo_topics)] == [b"x"]


async def test_replay_sends_the_same_bytes_and_refuses_what_is_old_or_foreign(
    echo_topics: EchoTopics,
) -> None:
    fresh, foreign = parked(echo_topics, b"\x00\xff"), parked(echo_topics, b"y", topic="other.topic")
    old = msgspec.structs.replace(
        parked(echo_topics, b"old"),
        dead_letter_id="old",
        failed_at=(datetime.now(UTC) - timedelta(days=31)).isoformat(),
    )
    for letter in (fresh, foreign, old):
        await echo_topics.send([encode(letter)], topic=echo_topics.topics.dead_letters)
    for _ in range(2):
        async with EventProducer(echo_topics.settings, echo_topics.servers) as producer:
            read = read_letters(echo_topics.settings, echo_topics.servers, echo_topics.topics, LetterFilter())
            replayed = await replay(read, producer=producer, topics=echo_topics.topics)
        assert replayed.sent == 1
        assert dict(replayed.refused) == {
            "old": "failed 31 days ago: over 30 days a deletion since then could be undone",
            foreign.dead_letter_id: "other.topic is not read by any agent of this installation",
        }
    assert sum(part.end for part in await echo_topics.lag()) == 2


async def test_the_command_lists_shows_and_replays(
    stack: Stack, echo_topics: EchoTopics, echo_worker: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPLINE_PREFIX", echo_topics.topics.prefix)
    # Asked which documents were erased; there is no index yet.
    monkeypatch.setenv("HOPLINE_OPENSEARCH__URL", stack.opensearch_url)
    monkeypatch.setenv("HOPLINE_KAFKA__BOOTSTRAP_SERVERS", echo_topics.servers)
    await echo_topics.send([NOT_JSON, NO_FIELDS, change("s.md", size="a lot")])
    worker = echo_worker({"decode": True})
    await done(echo_topics, 3)
    listed = await hopline("dlq", "list", "--json")
    assert (listed["total"], [row["error_class"] for row in listed["letters"]].count("invalid_fields")) == (
        3,
        2,
    )
    only = await hopline("dlq", "list", "--reason", "not_json", "--agent", "ingest", "--json")
    assert only["letters"] == [
        {
            "dead_letter_id": IsStr(), "failed_at": IsStr(), "agent": "ingest", "tenant_id": None,
            "topic": echo_topics.topics.file_changes, "partition": only["letters"][0]["partition"], "offset": 0,
            "error_class": "not_json", "reason": IsStr(),
        }
    ]  # fmt: skip
    assert (await hopline("dlq", "list", "--tenant", "T1", "--json"))["total"] == 1
    pages = [await hopline("dlq", "list", "--limit", "2", "--page", str(n), "--json") for n in (1, 2, 3)]
    assert [len(page["letters"]) for page in pages] == [2, 1, 0]
    letter_id = only["letters"][0]["dead_letter_id"]
    shown = await hopline("dlq", "show", letter_id[:12], "--json")
    assert base64.b64decode(shown["value_base64"]) == NOT_JSON
    assert await hopline("dlq", "replay", letter_id, "--json") == {"sent": 1, "refused": []}
    await done(echo_topics, 4)
    assert len(await letters(echo_topics)) == 4, "still bad: a letter again"
    assert worker.terminate() == 0


def parked(topics: EchoTopics, value: bytes, *, topic: str | None = None) -> DeadLetter:
    record = Record(
        topic=topic or topics.topics.file_changes, partition=0, offset=7, key=b"k", value=value, timestamp=0.0
    )
    return letter_of(Poisoned(record=record, error=PoisonRecord("not_json", "no")), agent="ingest")


async def hopline(*arguments: str) -> Any:
    """In a thread: the command runs an event loop of its own."""
    result = await asyncio.to_thread(CliRunner().invoke, build_app(), list(arguments))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
