"""The stages of the retrieval after the recall: each a pure function over the candidates of the stage before.

A later stage is added by one entry in `STAGES`. Each is counted and stands in the trace; those that an answer
can do without can be turned off by name (the setting `search.stages_off`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from indexers.domain import scores
from search_api.cursor import SearchPosition
from search_api.models import PARTS, Part
from search_api.retrieval.candidates import Candidate, DocumentView, Evidence, Ranking

Candidates = Sequence[Candidate]
#: By part: the name of its rule, and what the rule gives, by the evidence's place.
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
    rules = _place_rules(candidates) if ranking.fusion == "rrf" else _score_rules(candidates, ranking)

    def rule(key: str, e: Evidence) -> Evidence:
        name, normalised = rules[e.part]
        return Evidence(
            part=e.part,
            raw=e.raw,
            version=e.version,
            span=e.span,
            normaliser=name,
            normalised=normalised[key],
            weight=e.weight,
        )

    return [
        _with_evidence(c, tuple([rule(f"{place}/{n}", e) for n, e in enumerate(c.evidence)]))
        for place, c in enumerate(candidates)
    ]


def weigh(candidates: Candidates, ranking: Ranking) -> list[Candidate]:
    """Weights are shares of all parts that were asked: a part that found nothing lifts and lowers no hit."""
    shares = scores.shares(ranking.weights)
    return [
        _with_evidence(c, tuple([replace(e, weight=shares[e.part]) for e in c.evidence])) for c in candidates
    ]


def fuse(candidates: Candidates, _ranking: Ranking) -> list[Candidate]:
    """One candidate a document: the best evidence of each part, contributions added up."""
    best: dict[str, dict[Part, Evidence]] = {}
    documents: dict[str, DocumentView] = {}
    for candidate in candidates:
        if candidate.document is not None:
            documents.setdefault(candidate.doc_id, candidate.document)
        kept = best.setdefault(candidate.doc_id, {})
        for evidence in candidate.evidence:
            known = kept.get(evidence.part)
            if known is None or _strength(evidence) > _strength(known):
                kept[evidence.part] = evidence
    weights = {e.part: e.weight for kept in best.values() for e in kept.values()}
    lists = {
        part: {doc_id: kept[part].normalised for doc_id, kept in best.items() if part in kept}
        for part in weights
    }
    return [
        Candidate(
            doc_id=fused.doc_id,
            document=documents.get(fused.doc_id),
            evidence=tuple(best[fused.doc_id][part] for part in sorted(best[fused.doc_id])),
            score=fused.score,
        )
        for fused in scores.weighted_sum(lists, weights)
    ]


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
    return [c for c in ranked if after is None or _rank_key(c) > scores.rank_key(after.score, after.doc_id)]


def position_of(candidate: Candidate) -> SearchPosition:
    return SearchPosition(score=candidate.score, doc_id=candidate.doc_id)


def is_stood_by(candidate: Candidate) -> bool:
    """The document lives, and its text is the one that the evidence speaks of."""
    document = candidate.document
    if document is None or document.deleted:
        return False
    return all(evidence.version == document.version for evidence in candidate.evidence)


def _with_evidence(candidate: Candidate, evidence: tuple[Evidence, ...]) -> Candidate:
    return Candidate(
        doc_id=candidate.doc_id, document=candidate.document, evidence=evidence, score=candidate.score
    )


def _rank_key(candidate: Candidate) -> tuple[float, str]:
    return scores.rank_key(candidate.score, candidate.doc_id)


def _score_rules(candidates: Candidates, ranking: Ranking) -> Rules:
    keyword = scores.normalise_keyword(_raw(candidates, "keyword"), floor=ranking.keyword_floor)
    vector = scores.normalise_vector(_raw(candidates, "vector"), cosine_floor=ranking.cosine_floor)
    return {"keyword": (KEYWORD_RULE, keyword.scores), "vector": (VECTOR_RULE, vector.scores)}


def _place_rules(candidates: Candidates) -> Rules:
    """Places are of documents: one with many chunks takes one place, that of its best."""
    rules: Rules = {}
    for part in PARTS:
        raw = _raw(candidates, part)
        doc_ids = {key: candidates[int(key.partition("/")[0])].doc_id for key in raw}
        best: dict[str, float] = {}
        for key, score in raw.items():
            best[doc_ids[key]] = max(score, best.get(doc_ids[key], score))
        placed = scores.normalise_place(best).scores
        rules[part] = (PLACE_RULE, {key: placed[doc_ids[key]] for key in raw})
    return rules


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
