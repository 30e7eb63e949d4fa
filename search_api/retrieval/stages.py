"""The stages of the retrieval after the recall: each a pure function over the candidates of the stage before.

A later stage is added by one entry in `STAGES`. Each is counted and stands in the trace; those that an answer
can do without can be turned off by name (the setting `search.stages_off`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum

from msgspec.structs import replace

from indexers.domain import scores
from search_api.cursor import SearchPosition
from search_api.models import Part
from search_api.retrieval.candidates import Candidate, Evidence, Ranking

Candidates = Sequence[Candidate]
#: Names of the rules in `indexers.domain.scores`, as a reason gives them.
KEYWORD_RULE = "bm25/max(best,floor)"
VECTOR_RULE = "(cosine-floor)/(1-floor)/max(best,floor)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    name: str
    run: Callable[[Candidates, Ranking], list[Candidate]]
    #: Without it the answer would be no answer (dead rows, a document twice, no order).
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecord:
    """What the trace says of one stage."""

    stage: str
    on: bool
    candidates_in: int
    candidates_out: int
    ms: float


def keep_current(candidates: Candidates, ranking: Ranking) -> list[Candidate]:
    """Drop chunks of an older text than the newest known of their document, and what the filters refuse."""
    known = {c.doc_id: c.document.version for c in candidates if c.document is not None}
    newest: dict[str, int] = {}
    for candidate in candidates:
        versions = (evidence.version for evidence in candidate.evidence)
        newest[candidate.doc_id] = max(newest.get(candidate.doc_id, 0), *versions)
    newest |= known
    return [
        c
        for c in candidates
        if all(evidence.version == newest[c.doc_id] for evidence in c.evidence)
        and (ranking.allowed is None or c.doc_id in ranking.allowed)
    ]


def normalise(candidates: Candidates, ranking: Ranking) -> list[Candidate]:
    """Bring both parts to 0..1 by the rules of `indexers.domain.scores`. Doesn't depend on the page."""
    keyword = scores.normalise_keyword(_raw(candidates, "keyword"), floor=ranking.keyword_floor).scores
    vector = scores.normalise_vector(_raw(candidates, "vector"), cosine_floor=ranking.cosine_floor).scores
    rules = {"keyword": (KEYWORD_RULE, keyword), "vector": (VECTOR_RULE, vector)}

    def rule(key: str, evidence: Evidence) -> Evidence:
        name, normalised = rules[evidence.part]
        return replace(evidence, normaliser=name, normalised=normalised[key])

    return [
        replace(c, evidence=tuple(rule(f"{place}/{n}", e) for n, e in enumerate(c.evidence)))
        for place, c in enumerate(candidates)
    ]


def weigh(candidates: Candidates, ranking: Ranking) -> list[Candidate]:
    """Weights are shares of all parts that were asked: a part that found nothing lifts and lowers no hit."""
    asked = ranking.weights
    total = fsum(asked.values())
    shares = {part: weight / total if total else 1 / len(asked) for part, weight in asked.items()}
    return [
        replace(c, evidence=tuple(replace(e, weight=shares[e.part]) for e in c.evidence)) for c in candidates
    ]


def fuse(candidates: Candidates, _ranking: Ranking) -> list[Candidate]:
    """One candidate a document: the best evidence of each part, contributions added up."""
    by_document: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_document.setdefault(candidate.doc_id, []).append(candidate)
    return [_fused(doc_id, group) for doc_id, group in by_document.items()]


def rank(candidates: Candidates, _ranking: Ranking) -> list[Candidate]:
    """Best first; equal scores by id, so that every run gives the same order."""
    return sorted(candidates, key=_rank_key)


STAGES: tuple[Stage, ...] = (
    Stage(name="current", run=keep_current, required=True),
    Stage(name="normalise", run=normalise),
    Stage(name="weigh", run=weigh),
    Stage(name="fuse", run=fuse, required=True),
    Stage(name="rank", run=rank, required=True),
)


def run_stages(
    candidates: Candidates, ranking: Ranking, stages: Sequence[Stage] = STAGES
) -> tuple[list[Candidate], list[StageRecord]]:
    current = list(candidates)
    records: list[StageRecord] = []
    for stage in stages:
        on = stage.required or stage.name not in ranking.off
        before, start = len(current), time.perf_counter()
        if on:
            current = stage.run(current, ranking)
        spent = (time.perf_counter() - start) * 1_000
        records.append(
            StageRecord(stage=stage.name, on=on, candidates_in=before, candidates_out=len(current), ms=spent)
        )
    return current, records


def behind(ranked: Candidates, after: SearchPosition | None) -> list[Candidate]:
    """What follows a position. The size of a page decides nothing but where the next position lies."""
    return [c for c in ranked if after is None or _rank_key(c) > (-after.score, after.doc_id)]


def position_of(candidate: Candidate) -> SearchPosition:
    return SearchPosition(score=candidate.score, doc_id=candidate.doc_id)


def is_stood_by(candidate: Candidate) -> bool:
    """The document lives, and its text is the one that the evidence speaks of."""
    document = candidate.document
    if document is None or document.deleted:
        return False
    return all(evidence.version == document.version for evidence in candidate.evidence)


def _rank_key(candidate: Candidate) -> tuple[float, str]:
    return (-candidate.score, candidate.doc_id)


def _fused(doc_id: str, group: Sequence[Candidate]) -> Candidate:
    best: dict[str, Evidence] = {}
    for evidence in (e for candidate in group for e in candidate.evidence):
        known = best.get(evidence.part)
        if known is None or _strength(evidence) > _strength(known):
            best[evidence.part] = evidence
    kept = tuple(best[part] for part in sorted(best))
    return Candidate(
        doc_id=doc_id,
        document=next((c.document for c in group if c.document is not None), None),
        evidence=kept,
        score=min(fsum(evidence.contribution for evidence in kept), 1.0),
    )


def _raw(candidates: Candidates, part: Part) -> dict[str, float]:
    """Raw scores by the evidence's place: a document may have many chunks."""
    return {
        f"{place}/{n}": evidence.raw
        for place, candidate in enumerate(candidates)
        for n, evidence in enumerate(candidate.evidence)
        if evidence.part == part
    }


def _strength(evidence: Evidence) -> tuple[float, float, int]:
    """Of equal chunks the first of the document."""
    return (evidence.contribution, evidence.raw, -(evidence.span.ordinal if evidence.span else 0))
