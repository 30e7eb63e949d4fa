"""The stages of the retrieval after the recall: each a pure function over the candidates of the stage before.

Each is counted and stands in the trace; those that an answer can do without can be turned off by name
(`search.stages_off`). Two lists of stages: what comes before the graph and the look-up, and what comes after.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from msgspec.structs import replace

from indexers.domain import scores
from search_api.cursor import SearchPosition
from search_api.retrieval.candidates import Candidate, DocumentView, Evidence, Facts, LegPart, Ranking
from search_api.retrieval.factors import FACTORS, apply_factor
from search_api.retrieval.normalising import EXACT, normalise
from search_api.retrieval.smoothing import smooth

Candidates = Sequence[Candidate]
_ID, _SCORE = attrgetter("doc_id"), attrgetter("score")


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
    """Drop rows of an older text than the newest known of their document, and what the filters refuse."""
    newest: dict[str, int] = {}
    for candidate in candidates:
        doc_id = candidate.doc_id
        for evidence in candidate.evidence:
            if evidence.version > newest.get(doc_id, 0):
                newest[doc_id] = evidence.version
    newest |= {c.doc_id: c.document.version for c in candidates if c.document is not None}
    allowed = ranking.allowed
    return [
        c
        for c in candidates
        if (allowed is None or c.doc_id in allowed) and _is_of_version(c, newest.get(c.doc_id, 0))
    ]


def weigh(candidates: Candidates, ranking: Ranking) -> list[Candidate]:
    """Weights are shares of all lists that were asked: a list that found nothing lifts and lowers no hit."""
    get = ranking.weights.get
    found: list[Candidate] = []
    for candidate in candidates:
        weighed: tuple[Evidence, ...] = ()
        for e in candidate.evidence:
            weighed += (e if e.part == EXACT else replace(e, weight=get((e.leg, e.part), 0.0)),)
        found.append(replace(candidate, evidence=weighed))
    return found


def fuse(candidates: Candidates, _ranking: Ranking) -> list[Candidate]:
    """One candidate a document: the best evidence of each list, contributions added up."""
    rows: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if (known := rows.get(candidate.doc_id)) is None:
            rows[candidate.doc_id] = [candidate]
        else:
            known.append(candidate)
    return [
        _alone(some[0]) if len(some) == 1 and len(some[0].evidence) == 1 else _fused(some)
        for some in rows.values()
    ]


def _alone(candidate: Candidate) -> Candidate:
    """As `_fused`: most documents are found once."""
    total = candidate.evidence[0].contribution
    facts = candidate.document or candidate.facts
    return replace(candidate, facts=facts, recall_score=total, score=total)


def _fused(rows: Candidates) -> Candidate:
    """Of one document."""
    kept: dict[LegPart, Evidence] = {}
    for candidate in rows:
        for evidence in candidate.evidence:
            name = (evidence.leg, evidence.part)
            known = kept.get(name)
            if known is None or _is_stronger(evidence, known):
                kept[name] = evidence
    document = next((c.document for c in rows if c.document is not None), None)
    facts = next((c.facts for c in rows if c.facts is not None), None)
    return with_evidence(rows[0].doc_id, document, facts, kept)


def with_evidence(
    doc_id: str, document: DocumentView | None, facts: Facts | None, kept: dict[LegPart, Evidence]
) -> Candidate:
    evidence = tuple(kept.values() if len(kept) == 1 else [kept[name] for name in sorted(kept)])
    total = scores.total([e.contribution for e in evidence])
    return Candidate(
        doc_id=doc_id,
        document=document,
        facts=document or facts,
        evidence=evidence,
        recall_score=total,
        score=total,
    )


def rank(candidates: Candidates, _ranking: Ranking) -> list[Candidate]:
    """Best first; equal scores by id, so that every run gives the same order."""
    return sorted(sorted(candidates, key=_ID), key=_SCORE, reverse=True)


FUSION: tuple[Stage, ...] = (
    Stage(name="current", run=keep_current, required=True),
    Stage(name="smooth", run=smooth),
    Stage(name="normalise", run=normalise),
    Stage(name="weigh", run=weigh),
    Stage(name="fuse", run=fuse, required=True),
)
ORDER: tuple[Stage, ...] = (
    *(Stage(name=name, run=partial(apply_factor, name)) for name in FACTORS),
    Stage(name="rank", run=rank, required=True),
)


def run_stages(
    candidates: Candidates, ranking: Ranking, stages: Sequence[Stage] = (*FUSION, *ORDER)
) -> tuple[list[Candidate], list[StageRecord]]:
    current = list(candidates)
    records: list[StageRecord] = []
    for stage in stages:
        on = stage.required or ranking.is_on(stage.name)
        before, start = len(current), time.perf_counter()
        if on:
            current = stage.run(current, ranking)
        spent = (time.perf_counter() - start) * 1_000
        records.append(
            StageRecord(stage=stage.name, on=on, candidates_in=before, candidates_out=len(current), ms=spent)
        )
    return current, records


def joined(records: Sequence[StageRecord], more: Sequence[StageRecord]) -> list[StageRecord]:
    """Counts and times of a stage that ran twice, over other candidates, as one."""
    again = {record.stage: record for record in more}
    return [
        record
        if (other := again.get(record.stage)) is None
        else StageRecord(
            stage=record.stage,
            on=record.on,
            candidates_in=record.candidates_in + other.candidates_in,
            candidates_out=record.candidates_out + other.candidates_out,
            ms=record.ms + other.ms,
        )
        for record in records
    ]


def behind(ranked: Candidates, after: SearchPosition | None) -> list[Candidate]:
    """What follows a position. The size of a page decides nothing but where the next position lies."""
    if after is None:
        return list(ranked)
    last = scores.rank_key(after.score, after.doc_id)
    return [c for c in ranked if scores.rank_key(c.score, c.doc_id) > last]


def is_stood_by(candidate: Candidate) -> bool:
    """The document lives, and its text is the one that the evidence speaks of."""
    document = candidate.document
    return document is not None and not document.deleted and _is_of_version(candidate, document.version)


def _is_of_version(candidate: Candidate, version: int) -> bool:
    for evidence in candidate.evidence:  # noqa: SIM110 - a generator for each of hundreds costs more
        if evidence.version not in (version, 0):
            return False
    return True


def _is_stronger(evidence: Evidence, known: Evidence) -> bool:
    ours, theirs = evidence.contribution, known.contribution
    return ours > theirs if ours != theirs else _strength(evidence) > _strength(known)


def _strength(evidence: Evidence) -> tuple[float, int]:
    """Of equal chunks the first of the document."""
    return (evidence.raw, -(evidence.span.ordinal if evidence.span else 0))
