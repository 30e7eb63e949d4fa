"""The stages of the retrieval after the recall: each a pure function over the candidates of the stage before.

A later stage is added by one entry in `STAGES`. Each is counted and stands in the trace; those that an answer
can do without can be turned off by name (the setting `search.stages_off`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter

from msgspec.structs import replace

from indexers.domain import scores
from search_api.cursor import SearchPosition
from search_api.models import PARTS, Part
from search_api.retrieval.candidates import Candidate, DocumentView, Evidence, Ranking

Candidates = Sequence[Candidate]
_ID, _SCORE = attrgetter("doc_id"), attrgetter("score")
#: By part: the name of its rule, and what the rule gives, by the evidence's number.
Rules = dict[Part, tuple[str, dict[str, float]]]
#: Names of the rules in `indexers.domain.scores`, as a reason gives them.
KEYWORD_RULE = "bm25/max(best,floor)"
VECTOR_RULE = "(cosine-floor)/(1-floor)/max(best,floor)"
PLACE_RULE = f"{scores.RRF_K + 1}/({scores.RRF_K}+place)"


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
    newest: dict[str, int] = {}
    for candidate in candidates:
        for evidence in candidate.evidence:
            if evidence.version > newest.get(candidate.doc_id, 0):
                newest[candidate.doc_id] = evidence.version
    newest |= {c.doc_id: c.document.version for c in candidates if c.document is not None}
    return [
        c
        for c in candidates
        if (ranking.allowed is None or c.doc_id in ranking.allowed)
        and _is_of_version(c, newest.get(c.doc_id, 0))
    ]


def normalise(candidates: Candidates, ranking: Ranking) -> list[Candidate]:
    """Bring both parts to 0..1 by the rules of `indexers.domain.scores`. Doesn't depend on the page."""
    rules = _place_rules(candidates) if ranking.fusion == "rrf" else _score_rules(candidates, ranking)
    keys = map(str, count())

    def normalised(e: Evidence) -> Evidence:
        name, by_number = rules[e.part]
        return replace(e, normaliser=name, normalised=by_number[next(keys)])

    return [replace(c, evidence=tuple([normalised(e) for e in c.evidence])) for c in candidates]


def weigh(candidates: Candidates, ranking: Ranking) -> list[Candidate]:
    """Weights are shares of all parts that were asked: a part that found nothing lifts and lowers no hit."""
    shares = scores.shares(ranking.weights)
    return [
        replace(c, evidence=tuple([replace(e, weight=shares[e.part]) for e in c.evidence]))
        for c in candidates
    ]


def fuse(candidates: Candidates, _ranking: Ranking) -> list[Candidate]:
    """One candidate a document: the best evidence of each part, contributions added up."""
    best: dict[str, dict[Part, Evidence]] = {}
    documents: dict[str, DocumentView] = {}
    for candidate in candidates:
        if candidate.document is not None:
            documents.setdefault(candidate.doc_id, candidate.document)
        kept = best.get(candidate.doc_id)
        if kept is None:
            kept = best[candidate.doc_id] = {}
        for evidence in candidate.evidence:
            known = kept.get(evidence.part)
            if known is None or _is_stronger(evidence, known):
                kept[evidence.part] = evidence
    weights = {e.part: e.weight for kept in best.values() for e in kept.values()}
    lists = {
        part: {doc_id: kept[part].normalised for doc_id, kept in best.items() if part in kept}
        for part in weights
    }
    chosen = {
        doc_id: tuple(kept.values() if len(kept) == 1 else [kept[part] for part in sorted(kept)])
        for doc_id, kept in best.items()
    }
    return [
        Candidate(
            doc_id=fused.doc_id,
            document=documents.get(fused.doc_id),
            evidence=chosen[fused.doc_id],
            score=fused.score,
        )
        for fused in scores.weighted_sum(lists, weights)
    ]


def rank(candidates: Candidates, _ranking: Ranking) -> list[Candidate]:
    """Best first; equal scores by id, so that every run gives the same order."""
    return sorted(sorted(candidates, key=_ID), key=_SCORE, reverse=True)


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
    if after is None:
        return list(ranked)
    last = scores.rank_key(after.score, after.doc_id)
    return [c for c in ranked if scores.rank_key(c.score, c.doc_id) > last]


def position_of(candidate: Candidate) -> SearchPosition:
    return SearchPosition(score=candidate.score, doc_id=candidate.doc_id)


def is_stood_by(candidate: Candidate) -> bool:
    """The document lives, and its text is the one that the evidence speaks of."""
    document = candidate.document
    return document is not None and not document.deleted and _is_of_version(candidate, document.version)


def _is_of_version(candidate: Candidate, version: int) -> bool:
    for evidence in candidate.evidence:  # noqa: SIM110 - a generator for each of hundreds costs more
        if evidence.version != version:
            return False
    return True


def _score_rules(candidates: Candidates, ranking: Ranking) -> Rules:
    keyword = scores.normalise_keyword(_raw(candidates, "keyword"), floor=ranking.keyword_floor)
    vector = scores.normalise_vector(_raw(candidates, "vector"), cosine_floor=ranking.cosine_floor)
    return {"keyword": (KEYWORD_RULE, keyword.scores), "vector": (VECTOR_RULE, vector.scores)}


def _place_rules(candidates: Candidates) -> Rules:
    """Places are of documents: one with many chunks takes one place, that of its best."""
    rules: Rules = {}
    every_id = [candidate.doc_id for candidate in candidates for _ in candidate.evidence]
    for part in PARTS:
        raw = _raw(candidates, part)
        doc_ids = {key: every_id[int(key)] for key in raw}
        best: dict[str, float] = {}
        for key, score in raw.items():
            best[doc_ids[key]] = max(score, best.get(doc_ids[key], score))
        placed = scores.normalise_place(best).scores
        rules[part] = (PLACE_RULE, {key: placed[doc_ids[key]] for key in raw})
    return rules


def _raw(candidates: Candidates, part: Part) -> dict[str, float]:
    """Raw scores by the evidence's number among all: a document may have many chunks."""
    every = [evidence for candidate in candidates for evidence in candidate.evidence]
    return {str(number): evidence.raw for number, evidence in enumerate(every) if evidence.part == part}


def _is_stronger(evidence: Evidence, known: Evidence) -> bool:
    ours, theirs = evidence.contribution, known.contribution
    return ours > theirs if ours != theirs else _strength(evidence) > _strength(known)


def _strength(evidence: Evidence) -> tuple[float, int]:
    """Of equal chunks the first of the document."""
    return (evidence.raw, -(evidence.span.ordinal if evidence.span else 0))
