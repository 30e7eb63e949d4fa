"""From outcomes to numbers: means with their intervals, of all questions and of each type. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from hopline.evaluation import metrics
from hopline.evaluation.asking import Outcome
from hopline.evaluation.configurations import Configuration
from hopline.evaluation.metrics import Estimate

#: Below it a note counts as of low health.
LOW_HEALTH: Final = 0.5
Gold = Mapping[str, float]
#: In the order of the table.
MEASURES: Final[Mapping[str, Callable[[Sequence[str], Gold], float]]] = {
    "recall@2": lambda found, gold: metrics.recall(found, gold, 2),
    "recall@5": lambda found, gold: metrics.recall(found, gold, 5),
    "recall@10": lambda found, gold: metrics.recall(found, gold, 10),
    "precision@5": lambda found, gold: metrics.precision(found, gold, 5),
    "mrr@10": metrics.reciprocal_rank,
    "ndcg@10": metrics.ndcg,
}
MAIN: Final = "recall@5"


class StageMean(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates before and after a stage, and its milliseconds: means over the traced questions."""

    stage: str
    on: bool
    candidates_in: float
    candidates_out: float
    ms: float


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration. `types`: the measures by type of question."""

    name: str
    what: str
    questions: int
    all: dict[str, Estimate]
    types: dict[str, dict[str, Estimate]]
    latency_ms_p50: float | None
    latency_ms_p95: float | None
    #: Shares of the hits, 0..1; `low_health` None where the service says no health.
    stale: float
    low_health: float | None
    stages: list[StageMean]
    context_tokens: Estimate
    #: Share of the questions with an answer whose context holds it.
    answer_in_context: Estimate


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What one question found in one configuration: ids, best first."""

    id: str
    docs: tuple[str, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    set_name: str
    questions: int
    #: Questions of the file without a right document: not asked.
    unjudged: int
    #: Documents of the set, and those that the index holds.
    documents: int
    indexed: int
    embedding_model: str
    context_budget: int
    seed: int
    confidence: float
    configurations: list[Measured]

    def of(self, name: str) -> Measured | None:
        return next((measured for measured in self.configurations if measured.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """`runs`: by configuration, in the order of the questions."""

    report: Report
    runs: Mapping[str, Sequence[Run]]


def measure(
    configuration: Configuration, outcomes: Sequence[Outcome], gold: Mapping[str, Gold], *, seed: int
) -> Measured:
    by_type: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_type[outcome.question.type].append(outcome)
    contexts = [outcome.context for outcome in outcomes if outcome.context is not None]
    held = [context.holds_answer for context in contexts if context.holds_answer is not None]
    healths = [health for outcome in outcomes for health in outcome.healths]
    times = [outcome.milliseconds for outcome in outcomes]
    hits = sum(len(outcome.found) for outcome in outcomes)
    return Measured(
        name=configuration.name,
        what=configuration.what,
        questions=len(outcomes),
        all=_measures(outcomes, gold, seed),
        types={kind: _measures(by_type[kind], gold, seed) for kind in sorted(by_type)},
        latency_ms_p50=metrics.percentile(times, 0.5),
        latency_ms_p95=metrics.percentile(times, 0.95),
        stale=sum(outcome.stale for outcome in outcomes) / max(1, hits),
        low_health=sum(h < LOW_HEALTH for h in healths) / len(healths) if healths else None,
        stages=_stage_means(outcomes),
        context_tokens=metrics.estimate([float(c.tokens) for c in contexts], seed=seed),
        answer_in_context=metrics.estimate([float(found) for found in held], seed=seed),
    )


def _measures(outcomes: Sequence[Outcome], gold: Mapping[str, Gold], seed: int) -> dict[str, Estimate]:
    return {
        name: metrics.estimate([of(o.found, gold[o.question.id]) for o in outcomes], seed=seed)
        for name, of in MEASURES.items()
    }


def _stage_means(outcomes: Sequence[Outcome]) -> list[StageMean]:
    """In the order of the stages; a stage that some requests leave out is averaged over those that have it."""
    seen: dict[str, list[tuple[bool, int, int, float]]] = {}
    for outcome in outcomes:
        for stage in outcome.stages:
            row = (stage.on, stage.candidates_in, stage.candidates_out, stage.ms)
            seen.setdefault(stage.stage, []).append(row)
    return [
        StageMean(
            stage=name,
            on=any(row[0] for row in rows),
            candidates_in=sum(row[1] for row in rows) / len(rows),
            candidates_out=sum(row[2] for row in rows) / len(rows),
            ms=sum(row[3] for row in rows) / len(rows),
        )
        for name, rows in seen.items()
    ]
