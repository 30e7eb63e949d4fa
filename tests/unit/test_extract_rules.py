"""What the extract agent tells of a document, and what it does of a batch: pure."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import pytest

from indexers.domain.entities.labels import EntityLabel, NamespaceLabels
from indexers.domain.identity import AgentId, DocumentId, EntityNamespace, Namespace, Scope, TenantId
from indexers.errors import RefusedInput
from indexers.extraction import Extracted, FoundMention
from indexers.model_calls import TextToExtract
from indexers.opensearch.rows import ExtractionRow
from indexers.ports import ModelCall, Span
from streams.agents.extract.announce import row_write, tell, tell_end
from streams.agents.extract.model import GROUPS_AT_ONCE, Model, Outcome
from streams.agents.extract.requests import decode_requests
from streams.agents.extract.subjects import Subject, newest_subjects
from streams.batch import Record
from streams.events import MentionsExtracted, decode
from streams.extract_requests import request_record
from streams.producer import OutgoingRecord
from streams.topics import Topics

HOME = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)
RECORD = Record(topic="t", partition=0, offset=0, key=None, value=None, timestamp=0.0)


def subject(path: str = "a.md", version: int = 1, *, whole: bool = False) -> Subject:
    return Subject(
        record=RECORD, document=HOME.document(path), version=version, content_hash="h", text="", whole=whole
    )


def mention(surface: str, start: int, label: str = "person", weight: float = 0.9) -> FoundMention:
    return FoundMention(
        label=label,
        surface=surface,
        start=start,
        end=start + len(surface),
        weight=weight,
        sentence=f"{surface} stands here.",
        source="model",
    )


def events(records: Sequence[OutgoingRecord]) -> list[MentionsExtracted]:
    return [decode(record.value, MentionsExtracted) for record in records]


def test_each_label_is_told_of_under_its_own_key_and_the_retired_one_as_empty() -> None:
    found = Extracted(mentions=(mention("Alice", 0), mention("Ops", 9, "team")), rejected={})
    told = tell(subject(), found, ("person", "team", "berth"), topic="m", max_bytes=100_000)
    assert [(r.topic, r.key) for r in told.events] == [
        ("m", b"acme/shared/person"),
        ("m", b"acme/shared/team"),
        ("m", b"acme/shared/berth"),
    ]
    assert [(e.kind, e.label, [m.surface for m in e.mentions]) for e in events(told.events)] == [
        ("upserted", "person", ["Alice"]),
        ("upserted", "team", ["Ops"]),
        ("upserted", "berth", []),
    ]
    assert (told.kept, told.left_out) == (found.mentions, 0)


def test_the_end_of_a_document_is_told_of_with_the_version_of_its_deletion() -> None:
    ends = events(tell_end(subject(version=3), ("person", "team"), topic="m", version=7))
    assert [(e.kind, e.label, e.version, e.mentions) for e in ends] == [
        ("deleted", "person", 7, []),
        ("deleted", "team", 7, []),
    ]


def test_where_the_broker_takes_no_more_every_name_stands_once_before_any_stands_twice() -> None:
    often = [mention("Alice", at * 20, weight=0.99) for at in range(200)]
    once = [mention(f"Person {at:03d}", 10_000 + at * 20, weight=0.6) for at in range(50)]
    found = Extracted(mentions=(*often, *once), rejected={})
    told = tell(subject(), found, ("person",), topic="m", max_bytes=12_000)
    assert all(len(record.value or b"") <= 12_000 for record in told.events)
    surfaces = [m.surface for m in told.kept]
    assert {m.surface for m in once} | {"Alice"} == set(surfaces)
    assert [m.start for m in told.kept] == sorted(m.start for m in told.kept)
    assert told.left_out == 250 - len(surfaces)
    assert [m.surface for e in events(told.events) for m in e.mentions] == surfaces


def test_the_row_counts_names_not_places() -> None:
    mentions = (mention("Alice Novak", 0), mention("alice novak", 50), mention("Alice Novak", 90, "team"))
    told = tell(
        subject(), Extracted(mentions=mentions, rejected={}), ("person", "team"), topic="m", max_bytes=9_999
    )
    write = row_write(subject(version=5), told, fingerprint="f", rejected=2)
    assert isinstance(write.row, ExtractionRow)
    assert (write.version, msgspec.to_builtins(write.row)) == (
        5,
        {
            "tenant_id": "acme", "agent_id": "ada", "team_id": None, "scope": "shared",
            "doc_id": HOME.document("a.md").doc_id, "namespace": "shared", "version": 5,
            "fingerprint": "f", "mentions": 2, "rejected": 2,
        },
    )  # fmt: skip


def test_the_newest_version_of_a_document_is_extracted_and_what_must_be_done_is() -> None:
    mixed = [subject("a.md", 1), subject("b.md", 4), subject("a.md", 2), subject("b.md", 4, whole=True)]
    chosen = [(s.document.path, s.version, s.whole) for s in newest_subjects(mixed)]
    assert chosen == [("a.md", 2, False), ("b.md", 4, True)]


def test_requests_for_one_page_are_one() -> None:
    shared = EntityNamespace.of(HOME)
    sent = [
        request_record(Topics(), shared, reason="one"),
        request_record(Topics(), shared, reason="two"),
        request_record(Topics(), shared, reason="three", after="x"),
        request_record(
            Topics(), EntityNamespace(tenant_id=TenantId("acme"), owner="team:ops"), reason="four"
        ),
    ]
    asked, poisoned = decode_requests([replace(RECORD, value=record.value) for record in sent])
    assert [(a.owner.owner, a.event.reason) for a in asked] == [
        ("shared", "one"),
        ("shared", "three"),
        ("team:ops", "four"),
    ]
    assert poisoned == []
    assert {record.key for record in sent} == {b"acme/shared", b"acme/team:ops"}


class Capitals:
    """Takes every capitalised word for a name, and refuses a window that says `stop`."""

    model_id = "capitals"
    max_words = 100
    max_tokens = 200

    def __init__(self, *, mixes_documents: bool) -> None:
        self.mixes_documents = mixes_documents
        self.calls: list[list[str]] = []

    def prompt_tokens(self, labels: Sequence[str]) -> int:
        return len(labels)

    def word_tokens(self, words: Sequence[str]) -> list[int]:
        return [1 for _ in words]

    def extract(self, windows: Sequence[str], labels: Sequence[str], *, threshold: float) -> list[list[Span]]:
        [answers] = self.extract_each(
            [ModelCall(windows=tuple(windows), prompts=tuple(labels), threshold=threshold)]
        )
        return answers

    def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
        for call in calls:
            self.calls.append(list(call.windows))
            if any("stop" in window for window in call.windows):
                raise RefusedInput(f"no window over {call.threshold}")
            yield [[Span(start=0, end=5, label=call.prompts[0], score=0.9)] for _ in call.windows]


@pytest.mark.parametrize("mixes", [False, True])
async def test_a_text_that_the_model_refuses_costs_its_neighbours_nothing(*, mixes: bool) -> None:
    labels = NamespaceLabels(labels=(EntityLabel(name="person"),))
    texts = {
        DocumentId(name): TextToExtract(text=text, labels=labels)
        for name, text in (("a", "Alice runs."), ("b", "Bruno: stop."), ("c", "Carla eats it."))
    }
    extractor = Capitals(mixes_documents=mixes)
    with ThreadPoolExecutor(max_workers=1) as executor:
        model = Model(extractor=extractor, executor=executor, rules=executor, batch_windows=8)
        outcome = await model.extract(texts)
    assert {doc_id: [m.surface for m in one.mentions] for doc_id, one in outcome.found.items()} == {
        "a": ["Alice"],
        "c": ["Carla"],
    }
    assert outcome.refused == {"b": "no window over 0.5"}
    alone = [["Alice runs."], ["Bruno: stop."], ["Carla eats it."]]
    together = [["Alice runs.", "Bruno: stop.", "Carla eats it."]]
    assert extractor.calls == (together + alone if mixes else alone)


class Slow(Capitals):
    """Answers only once it may; tells which texts have been begun (their words counted)."""

    def __init__(self) -> None:
        super().__init__(mixes_documents=False)
        self.begun: list[str] = []
        self.may_answer = threading.Semaphore(0)

    def word_tokens(self, words: Sequence[str]) -> list[int]:
        self.begun.append(words[0])
        return super().word_tokens(words)

    def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
        for answers in super().extract_each(calls):
            self.may_answer.acquire()
            yield answers


def numbered(count: int, word: str = "Text") -> dict[DocumentId, TextToExtract]:
    labels = NamespaceLabels(labels=(EntityLabel(name="person"),))
    return {
        DocumentId(str(n)): TextToExtract(text=f"{word}{n} is here.", labels=labels) for n in range(count)
    }


def named(outcome: Outcome) -> list[tuple[str, str]]:
    return [(doc_id, one.mentions[0].surface) for doc_id, one in outcome.found.items()]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - threads change it
            await asyncio.sleep(0.002)


@contextlib.contextmanager
def slow_model() -> Iterator[tuple[Slow, Model]]:
    slow = Slow()
    with ThreadPoolExecutor(max_workers=1) as executor, ThreadPoolExecutor(max_workers=1) as rules:
        yield slow, Model(extractor=slow, executor=executor, rules=rules, batch_windows=None)


async def test_texts_are_begun_while_the_model_is_at_another_but_few_at_once() -> None:
    with slow_model() as (slow, model):
        running = asyncio.create_task(model.extract(numbered(8)))
        await until(lambda: len(slow.begun) == GROUPS_AT_ONCE)
        await asyncio.sleep(0.05)
        assert (slow.begun, len(slow.calls)) == ([f"Text{n}" for n in range(GROUPS_AT_ONCE)], 1)
        slow.may_answer.release()
        await until(lambda: len(slow.begun) == GROUPS_AT_ONCE + 1)
        slow.may_answer.release(100)
        outcome = await running
    assert named(outcome) == [(str(n), f"Text{n}") for n in range(8)]
    assert outcome.refused == {}
    assert slow.calls == [[f"Text{n} is here."] for n in range(8)]


async def test_the_texts_of_the_next_batch_follow_those_of_the_one_before_in_one_go() -> None:
    with slow_model() as (slow, model):
        running = [asyncio.create_task(model.extract(numbered(4, word))) for word in ("One", "Two")]
        await until(lambda: len(slow.begun) == GROUPS_AT_ONCE)
        slow.may_answer.release(3)
        await until(lambda: len(slow.calls) == 4)
        assert [task.done() for task in running] == [False, False]
        slow.may_answer.release(1)
        first = await running[0]
        await until(lambda: len(slow.calls) == 5)
        assert not running[1].done()
        slow.may_answer.release(100)
        second = await running[1]
    assert named(first) == [(str(n), f"One{n}") for n in range(4)]
    assert named(second) == [(str(n), f"Two{n}") for n in range(4)]
    assert slow.calls == [[f"{word}{n} is here."] for word in ("One", "Two") for n in range(4)]


async def test_every_text_gets_its_own_answers_on_a_pool_of_several_threads() -> None:
    class Sleepy(Capitals):
        def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
            for answers in super().extract_each(calls):
                time.sleep(0.001 * (len(self.calls) % 3))
                yield answers

    sleepy = Sleepy(mixes_documents=False)
    with ThreadPoolExecutor(max_workers=3) as pool:
        model = Model(extractor=sleepy, executor=pool, rules=pool, batch_windows=None)
        outcomes = await asyncio.gather(*(model.extract(numbered(20, word)) for word in ("One", "Two")))
    assert [named(outcome) for outcome in outcomes] == [
        [(str(n), f"{word}{n}"[:5]) for n in range(20)] for word in ("One", "Two")
    ]


async def test_a_fault_of_the_model_is_no_refusal() -> None:
    class Broken(Capitals):
        def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
            next(iter(calls))
            raise ValueError("a bug")

    with ThreadPoolExecutor(max_workers=1) as executor, ThreadPoolExecutor(max_workers=1) as rules:
        broken = Broken(mixes_documents=False)
        model = Model(extractor=broken, executor=executor, rules=rules, batch_windows=None)
        with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="a bug")):
            await model.extract(numbered(1))


async def test_a_batch_that_is_given_up_ends_with_the_text_that_the_model_is_at() -> None:
    with slow_model() as (slow, model):
        running = asyncio.create_task(model.extract(numbered(8)))
        await until(lambda: len(slow.begun) == GROUPS_AT_ONCE)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        slow.may_answer.release(100)
        later = await model.extract(numbered(2))
    assert list(later.found) == ["0", "1"]
    assert slow.calls == [["Text0 is here."], ["Text0 is here."], ["Text1 is here."]]
