"""Memory events and people's edits in every order, with ends of processes between: nothing accepted is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from indexers.errors import Transient
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import REBUILT, Index
from streams.batch import Record
from streams.producer import EventProducer
from tests.conftest import Stack
from tests.memory_api import ADA, MemoryService, memory_service

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MemoryService]:
    async with memory_service(stack, tmp_path_factory.mktemp("memories"), principals=[ADA]) as opened:
        yield opened


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


async def killed_before_its_rows(world: MemoryService, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """What stands on the log is in the vault now, and nothing of it is in the store. The records come again."""

    async def killed(_gate: Gate, _writes: Any) -> Any:
        raise Killed

    records = await world.arrived()
    with monkeypatch.context() as patch:
        patch.setattr(Gate, "write", killed)
        with pytest.raises(Killed):
            await world.rig.feed(*records)
    return records


async def put(world: MemoryService, memory: Any, content: str, **more: Any) -> Any:
    return await world.ok(ADA, "PUT", f"/v1/memories/{memory['doc_id']}", {"content": content, **more})


async def test_an_edit_survives_the_redelivery_of_its_write(world: MemoryService) -> None:
    memory = await world.written(ADA, "as written")
    records = world.log[-1:]
    await world.rig.feed(world.edited(memory, "quagga, as edited by a person"))
    await world.rig.feed(*records)
    await world.follow_on()
    assert world.file(memory).read_text() == "quagga, as edited by a person"
    assert await world.found(ADA, "quagga", parts=["keyword"]) == [memory["doc_id"]]
    assert await world.state(ADA, memory["event_id"]) == "linked"


async def test_an_update_after_an_edit_was_indexed_wins(world: MemoryService) -> None:
    memory = await world.written(ADA, "first", title="Gecko")
    await world.rig.feed(world.edited(memory, "---\ntitle: Gecko of mine\nmood: fine\n---\nsecond"))
    update = await put(world, memory, "third")
    await world.carry_out()
    assert await world.state(ADA, update["event_id"]) == "linked"
    assert world.file(memory).read_text() == "---\ntitle: Gecko of mine\nmood: fine\n---\nthird\n"


async def test_an_update_over_an_edit_that_is_not_indexed_leaves_it(world: MemoryService) -> None:
    memory = await world.written(ADA, "one heron")
    word = world.edited(memory, "two herons, says a person")
    update = await put(world, memory, "three herons")
    await world.carry_out()
    assert await world.state(ADA, update["event_id"]) == "overtaken"
    records = world.log[-1:]
    await world.rig.feed(word)
    # A worker that ended before it could commit gets it again.
    await world.rig.feed(*records)
    await world.follow_on()
    assert world.file(memory).read_text() == "two herons, says a person"
    assert await world.found(ADA, "herons", parts=["keyword"]) == [memory["doc_id"]]


async def test_to_supersede_an_edit_that_is_not_indexed_keeps_its_text(world: MemoryService) -> None:
    memory = await world.written(ADA, "one ibis")
    world.edited(memory, "two ibises")
    new = await world.written(ADA, "three ibises", supersedes=memory["doc_id"])
    assert world.file(memory).read_text() == f"---\nsuperseded_by: {new['doc_id']}\n---\ntwo ibises"


@pytest.mark.parametrize("word", ["write", "update", "forget", "supersede"])
async def test_a_worker_that_ends_between_file_and_rows_loses_nothing(
    world: MemoryService, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    if word == "write":
        memory = answer = await world.write(ADA, "lynx of the write")
    else:
        memory = await world.written(ADA, f"lynx before the {word}", tags=["cat"])
        if word == "update":
            answer = await put(world, memory, "lynx of the update")
        elif word == "forget":
            answer = await world.ok(ADA, "DELETE", f"/v1/documents/{memory['doc_id']}")
        else:
            answer = await world.write(ADA, "lynx that supersedes", supersedes=memory["doc_id"])
    records = await killed_before_its_rows(world, monkeypatch)
    for _ in range(2):
        await world.rig.feed(*records)
        await world.follow_on()
    assert await world.state(ADA, answer["event_id"]) == "linked"
    counts = await world.rows_with(memory["doc_id"])
    assert (
        counts == {} if word == "forget" else counts["documents"] == counts["chunks"] == counts["gate"] == 1
    )
    assert world.file(memory).exists() is (word != "forget")


async def test_a_write_whose_file_was_seen_before_its_rows_is_followed_to_its_end(
    world: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = await world.write(ADA, "ocelot")
    records = await killed_before_its_rows(world, monkeypatch)
    await world.rig.feed(world.edited(memory, world.file(memory).read_text()))
    await world.follow_on()
    await world.rig.feed(*records)
    await world.follow_on()
    assert await world.state(ADA, memory["event_id"]) == "linked"
    assert (await world.rows_with(memory["doc_id"]))["documents"] == 1


async def test_a_sight_from_before_brings_nothing_back(world: MemoryService) -> None:
    memory = await world.written(ADA, "vicuna")
    raw = world.file(memory).read_bytes()
    await world.ok(ADA, "DELETE", f"/v1/documents/{memory['doc_id']}")
    late = world.rig.told(memory["path"], raw, root=world.root())
    await world.ingest()
    await world.rig.feed(late)
    await world.follow_on()
    assert await world.rows_with(memory["doc_id"]) == {}


async def test_a_word_and_the_sight_of_its_file_in_one_batch_are_both_heeded(world: MemoryService) -> None:
    memory = await world.written(ADA, "wombat")
    forgotten = await world.ok(ADA, "DELETE", f"/v1/documents/{memory['doc_id']}")
    echo = world.rig.told(memory["path"], world.file(memory).read_bytes(), root=world.root())
    await world.rig.feed(*await world.arrived(), echo)
    await world.follow_on()
    assert (await world.rows_with(memory["doc_id"]), world.file(memory).exists()) == ({}, False)
    assert await world.state(ADA, forgotten["event_id"]) == "linked"


@pytest.mark.parametrize("end", ["forget", "erase"])
async def test_a_word_behind_a_sight_from_before_is_heeded(world: MemoryService, end: str) -> None:
    memory = await world.written(ADA, f"margay, {end}")
    raw = world.file(memory).read_bytes()
    await put(world, memory, f"margay, {end}, again")
    await world.carry_out()
    path = f"/v1/documents/{memory['doc_id']}"
    await (
        world.ok(ADA, "DELETE", path) if end == "forget" else world.call(ADA, "DELETE", f"{path}?erase=true")
    )
    late = world.rig.told(memory["path"], raw, root=world.root())
    await world.rig.feed(*await world.arrived(), late)
    await world.follow_on()
    assert (await world.rows_with(memory["doc_id"]), world.file(memory).exists()) == ({}, False)


@pytest.mark.parametrize("before", ["write", "written"])
async def test_an_update_in_one_batch_with_the_end_before_it_does_not_undo_it(
    world: MemoryService, before: str
) -> None:
    memory = await (world.written if before == "written" else world.write)(ADA, "numbat")
    forgotten = await world.ok(ADA, "DELETE", f"/v1/documents/{memory['doc_id']}")
    update = await put(world, memory, "numbats")
    await world.carry_out()
    kept = world.root().path / ".hopline/forgotten" / memory["path"]
    assert (world.file(memory).exists(), kept.exists()) == (False, True)
    assert await world.rows_with(memory["doc_id"]) == {}
    states = [await world.state(ADA, word["event_id"]) for word in (forgotten, update)]
    assert states == ["linked", "overtaken"]


async def test_what_a_person_takes_back_is_there_again(world: MemoryService) -> None:
    memory = await world.written(ADA, "yapok")
    await world.ok(ADA, "DELETE", f"/v1/documents/{memory['doc_id']}")
    await world.carry_out()
    records = world.log[-1:]
    kept = world.root().path / ".hopline/forgotten" / memory["path"]
    await world.rig.feed(world.edited(memory, kept.read_text()))
    await world.rig.feed(*records)
    await world.follow_on()
    assert await world.found(ADA, "yapok", parts=["keyword"]) == [memory["doc_id"]]


async def test_a_word_in_dead_letters_has_failed(world: MemoryService) -> None:
    memory = await world.written(ADA, "zebu")
    world.file(memory).write_bytes(b"x" * 8_000_001)
    update = await put(world, memory, "zebus")
    await world.carry_out()
    event = await world.ok(ADA, "GET", f"/v1/events/{update['event_id']}")
    assert (event["state"], event["failure"]) == ("failed", {"reason": "file_too_large"})
    # Mended and sent again, as `hopline dlq replay` does.
    world.file(memory).write_bytes(b"zebu")
    await world.rig.feed(world.edited(memory, "zebu"))
    update = await put(world, memory, "zebus")
    await world.carry_out()
    assert await world.state(ADA, update["event_id"]) == "linked"


class Broker:
    """Takes a call for the broker: fails before or after it sent, then works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *faults: str) -> None:
        self._faults = list(faults)
        send_all = EventProducer.send_all

        async def send(producer: EventProducer, records: Sequence[Any]) -> None:
            fault = self._faults.pop(0) if self._faults else None
            if fault != "before":
                await send_all(producer, records)
            if fault is not None:
                raise Transient("away")

        monkeypatch.setattr(EventProducer, "send_all", send)


@pytest.mark.parametrize("fault", ["before", "after"])
async def test_a_repeated_request_is_one_write_whatever_was_lost(
    world: MemoryService, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    body = {"content": f"quoll {fault}", "title": "Quoll", "idempotency_key": f"quoll-{fault}"}
    with monkeypatch.context() as patch:
        Broker(patch, fault)
        lost = await world.call(ADA, "POST", "/v1/memories", body)
        again = await world.ok(ADA, "POST", "/v1/memories", body)
    assert (lost.status_code, lost.json()["type"]) == (503, "urn:hopline:problem:broker-unavailable")
    await world.carry_out()
    assert await world.state(ADA, again["event_id"]) == "linked"
    assert (await world.rows_with(again["doc_id"]))["documents"] == 1
    sent = [record for record in world.log if again["event_id"].encode() in (record.value or b"")]
    assert len(sent) == {"before": 1, "after": 2}[fault]


async def test_equal_requests_at_once_are_one_write(world: MemoryService) -> None:
    body = {"content": "serval", "idempotency_key": "serval"}
    answers = await asyncio.gather(*(world.ok(ADA, "POST", "/v1/memories", body) for _ in range(8)))
    assert len({answer["event_id"] for answer in answers}) == 1
    assert sorted(answer["replayed"] for answer in answers) == [False, *[True] * 7]
    await world.carry_out()
    assert await world.found(ADA, "serval", parts=["keyword"]) == [answers[0]["doc_id"]]


async def test_the_whole_log_again_changes_no_row(world: MemoryService) -> None:
    await world.written(ADA, "last one", title="Last")
    before = {index: await world.rig.rows(index) for index in (*REBUILT, Index.EVENTS)}
    for record in world.log[:10]:
        await world.rig.feed(record)
    await world.rig.feed(*world.log)
    await world.follow_on()
    after = {index: await world.rig.rows(index) for index in (*REBUILT, Index.EVENTS)}
    assert {
        i: [r for r in rows if r not in before[i]] for i, rows in after.items() if i is not Index.EVENTS
    } == {index: [] for index in REBUILT}
    news = [row for row_id, row in after[Index.EVENTS].items() if row_id not in before[Index.EVENTS]]
    assert {row["stage"] for row in news} <= {"overtaken"}
