"""Workers of two releases in one group: nothing is lost, whoever gets which event."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import pytest

from indexers.domain.identity import Scope
from streams.dlq import LetterFilter, read_letters, replay
from streams.events import DeadLetter, FileChange, encode, new_event_id, now_iso
from streams.producer import EventProducer
from streams.versions import VersionClock
from tests.echo_worker import EchoTopics, EchoWorker, all_done, assignment, split_evenly, until_seen

pytestmark = pytest.mark.engines

Start = Callable[..., EchoWorker]
#: A release that reads the next number too.
NEWER = {"decode": True, "reads": [1, 2]}
CLOCK = VersionClock()
OLDER = {"decode": True}


def event(path: str, **more: object) -> tuple[bytes, bytes]:
    change = FileChange(
        event_id=new_event_id(), tenant_id="T1", agent_id="a1", scope=Scope.SHARED, occurred_at=now_iso(),
        version=CLOCK.next(), path=path, vault_path=path, kind="upserted",
    )  # fmt: skip
    return path.encode(), json.dumps(json.loads(encode(change)) | more).encode()


def texts(records: list[tuple[bytes, bytes]]) -> set[str]:
    return {value.decode() for _, value in records}


def unknown(topics: EchoTopics) -> AsyncIterator[DeadLetter]:
    return read_letters(
        topics.settings, topics.servers, topics.topics, LetterFilter(error_class="unknown_schema")
    )


async def test_an_old_and_a_new_worker_side_by_side(echo_topics: EchoTopics, echo_worker: Start) -> None:
    """The old one ignores what it may ignore, and parks the next number; the new one brings that back."""
    old, new = echo_worker(OLDER, instance_id="a"), echo_worker(NEWER, instance_id="b")
    await until_seen(lambda: split_evenly([old, new]), what="a share for both")
    held = {int(place.split(":")[1]) for place in assignment(old)}
    plain = [event(f"plain{n}.md") for n in range(20)]
    richer = [event(f"richer{n}.md", mood="calm", seen={"by": ["ada"]}) for n in range(20)]
    newest = [event(f"newest{n}.md", schema_version=2, mood="calm") for n in range(40)]
    await echo_topics.send_keyed([*plain, *richer, *newest])
    await all_done(echo_topics)

    letters = [letter async for letter in unknown(echo_topics)]
    parked = {(letter.value or b"").decode() for letter in letters}
    assert {letter.partition for letter in letters} <= held
    assert set() < parked < texts(newest), "each worker has some of them"
    assert set(new.done()) == texts([*plain, *richer, *newest]) - parked

    assert old.terminate() == 0
    upgraded = echo_worker(NEWER, instance_id="a")
    await until_seen(lambda: split_evenly([upgraded, new]), what="a share for both")
    async with EventProducer(echo_topics.settings, echo_topics.servers) as producer:
        replayed = await replay(unknown(echo_topics), producer=producer, topics=echo_topics.topics)
    assert (replayed.sent, replayed.refused) == (len(parked), ())
    await all_done(echo_topics)
    assert set(new.done()) == texts([*plain, *richer, *newest])
    assert {upgraded.terminate(), new.terminate()} == {0}
