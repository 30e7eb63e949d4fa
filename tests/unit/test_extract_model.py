"""How the extract agent asks its model: in which order, what overlaps what, and what a refusal or a bug costs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from indexers.domain.entities.labels import EntityLabel, NamespaceLabels
from indexers.domain.identity import DocumentId
from indexers.errors import RefusedInput
from indexers.model_calls import TextToExtract
from indexers.ports import ModelCall, Span
from streams.agents.extract.model import GROUPS_AT_ONCE, Model, Outcome


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
        try:
            yield slow, Model(extractor=slow, executor=executor, rules=rules, batch_windows=None)
        finally:
            # Else a test that fails waits for ever for its thread.
            slow.may_answer.release(1_000)


async def test_texts_are_begun_while_the_model_is_at_another_but_few_at_once() -> None:
    count = GROUPS_AT_ONCE + 2
    with slow_model() as (slow, model):
        running = asyncio.create_task(model.extract(numbered(count)))
        await until(lambda: len(slow.begun) == GROUPS_AT_ONCE)
        await asyncio.sleep(0.05)
        assert (slow.begun, len(slow.calls)) == ([f"Text{n}" for n in range(GROUPS_AT_ONCE)], 1)
        slow.may_answer.release()
        await until(lambda: len(slow.begun) == GROUPS_AT_ONCE + 1)
        slow.may_answer.release(100)
        outcome = await running
    assert named(outcome) == [(str(n), f"Text{n}") for n in range(count)]
    assert outcome.refused == {}
    assert slow.calls == [[f"Text{n} is here."] for n in range(count)]


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
        running = asyncio.create_task(model.extract(numbered(GROUPS_AT_ONCE + 3)))
        await until(lambda: len(slow.begun) == GROUPS_AT_ONCE)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        slow.may_answer.release(100)
        later = await model.extract(numbered(2))
    assert list(later.found) == ["0", "1"]
    assert slow.calls == [["Text0 is here."], ["Text0 is here."], ["Text1 is here."]]
