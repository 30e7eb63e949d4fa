"""Every question asked in every configuration, through the HTTP API or over the files."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hopline.calls import ApiError, Call
from hopline.client import HoplineClient
from hopline.evaluation.configurations import GREP, Configuration
from hopline.evaluation.grep import GrepIndex
from hopline.evaluation.sets import Question, limited
from hopline.local.maven import Say
from indexers.errors import HoplineError

#: As deep as any measure looks.
HITS = 10
#: Questions of a configuration whose trace is read for the counts of its stages.
TRACED = 50
_TELL_SECONDS = 10.0
#: Answers that any text holds; whether a context does says nothing.
_IDLE_ANSWERS = frozenset({"yes", "no", "예", "네", "아니오", "아니요", "noanswer"})


class StageCount(msgspec.Struct, frozen=True, kw_only=True):
    stage: str
    on: bool = True
    candidates_in: int
    candidates_out: int
    ms: float = 0.0


class _Hit(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    stale_excerpt: str | None = None
    invalid: str | None = None
    health: float | None = None


class _Trace(msgspec.Struct, frozen=True, kw_only=True):
    stages: list[StageCount]


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    hits: list[_Hit]
    trace: _Trace | None = None


class _Context(msgspec.Struct, frozen=True, kw_only=True):
    tokens: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSeen:
    tokens: int
    #: Whether an answer of the question stands in it; None where it has none.
    holds_answer: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question in one configuration."""

    question: Question
    #: Ids of the documents found, best first.
    found: tuple[str, ...]
    milliseconds: float
    #: Of the hits: those whose text has changed or gone, that are expired or superseded; and the healths.
    stale: int = 0
    healths: tuple[float, ...] = ()
    stages: tuple[StageCount, ...] = ()
    context: ContextSeen | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the questions are asked of. `ids`: path → id. `prefixes`: group → beginning of its paths."""

    client: HoplineClient
    ids: Mapping[str, str]
    prefixes: Mapping[str, str] = field(default_factory=dict)
    grep: GrepIndex = field(default_factory=lambda: GrepIndex(()))
    #: Tokens of a context; 0: none is asked for.
    budget: int = 0

    def id_of(self, path: str) -> str:
        """Paths that the set doesn't know by another name are ids."""
        return self.ids.get(path, path)


def ask_all(
    place: Place, questions: Sequence[Question], configurations: Sequence[Configuration], say: Say
) -> dict[str, list[Outcome]]:
    """By configuration, in the order of the questions.

    Question by question, each time beginning with another configuration: whatever else the machine does meanwhile
    falls on all alike.
    """
    outcomes: dict[str, list[Outcome]] = {configuration.name: [] for configuration in configurations}
    traced = {question.id for question in limited(questions, TRACED)}
    for configuration in configurations:
        _ask(place, questions[0], configuration, traced=False)  # connections and caches warm up
    told = time.monotonic()
    for number, question in enumerate(questions):
        first = number % len(configurations)
        for configuration in (*configurations[first:], *configurations[:first]):
            outcome = _ask(place, question, configuration, traced=question.id in traced)
            outcomes[configuration.name].append(outcome)
        if time.monotonic() - told > _TELL_SECONDS:
            told = time.monotonic()
            say(f"  {number + 1} of {len(questions)} questions asked")
    return outcomes


def _ask(place: Place, question: Question, configuration: Configuration, *, traced: bool) -> Outcome:
    under = place.prefixes.get(question.group or "", "")
    if configuration.name == GREP:
        start = time.perf_counter()
        paths = place.grep.find(question.text, under=under, limit=HITS)
        spent = time.perf_counter() - start
        found = tuple(place.id_of(path) for path in paths)
        return Outcome(question=question, found=found, milliseconds=spent * 1_000)
    body: dict[str, Any] = {"query": question.text, **configuration.body}
    if under:
        body["filters"] = {"path_prefix": under}
    start = time.perf_counter()
    answer = _call(place.client, "/v1/search", {**body, "page_size": HITS}, _Answer, question)
    spent = time.perf_counter() - start
    return Outcome(
        question=question,
        found=tuple(place.id_of(hit.path) for hit in answer.hits),
        milliseconds=spent * 1_000,
        stale=sum((hit.stale_excerpt or hit.invalid) is not None for hit in answer.hits),
        healths=tuple(hit.health for hit in answer.hits if hit.health is not None),
        stages=_stages(place, question, body) if traced else (),
        context=_context(place, question, body) if place.budget else None,
    )


def _stages(place: Place, question: Question, body: Mapping[str, Any]) -> tuple[StageCount, ...]:
    """Asked once more: explaining takes time of its own."""
    answer = _call(
        place.client, "/v1/search", {**body, "page_size": HITS, "explain": True}, _Answer, question
    )
    return () if answer.trace is None else tuple(answer.trace.stages)


def _context(place: Place, question: Question, body: Mapping[str, Any]) -> ContextSeen:
    asked = {**body, "budget_tokens": place.budget}
    answer = _call(place.client, "/v1/context", asked, _Context, question)
    wanted = tuple(text for text in question.answers if folded(text) not in _IDLE_ANSWERS)
    holds = any(holds_text(answer.text, text) for text in wanted) if wanted else None
    return ContextSeen(tokens=answer.tokens, holds_answer=holds)


def holds_text(text: str, answer: str) -> bool:
    """Whether the answer stands there, in any case and spacing; not as a part of a longer Latin word or number."""
    wanted = folded(answer)
    before = r"(?<![0-9a-z])" if re.match("[0-9a-z]", wanted) else ""
    after = r"(?![0-9a-z])" if re.search("[0-9a-z]$", wanted) else ""
    return re.search(before + re.escape(wanted) + after, folded(text)) is not None


def folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _call(client: HoplineClient, path: str, body: Mapping[str, Any], kind: Any, question: Question) -> Any:
    try:
        return client.call(Call(method="POST", path=path, answer=kind, json=body))
    except ApiError as exc:
        msg = f"question {question.id!r} was refused: {exc}"
        raise HoplineError(msg) from exc
