"""From ranked candidates to what the route answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import asdict

from indexers.domain.matching import Match
from search_api.models import (
    ExcerptAnswer,
    FactorAnswer,
    HitAnswer,
    MatchAnswer,
    ReasonAnswer,
    SaidNameAnswer,
    StageAnswer,
    StepAnswer,
)
from search_api.retrieval.candidates import Candidate, DocumentView, Evidence, Ranking
from search_api.retrieval.excerpting import ShownExcerpt
from search_api.retrieval.factors import FACTORS, factor, inputs, invalid, is_exact
from search_api.retrieval.stages import StageRecord


def hit_answer(
    candidate: Candidate,
    document: DocumentView,
    excerpt: ShownExcerpt | None,
    stale: str | None,
    matches: Sequence[Match],
    ranking: Ranking,
    *,
    explain: bool,
) -> HitAnswer:
    """`matches`: of the keyword parts. Paths are put in afterwards, once their contexts are known."""
    return HitAnswer(
        doc_id=candidate.doc_id,
        path=document.path,
        title=document.title,
        abstract=document.abstract,
        score=candidate.score,
        excerpt=None
        if excerpt is None
        else ExcerptAnswer(text=excerpt.text, start=excerpt.start, end=excerpt.end),
        stale_excerpt=stale,
        reasons=[
            reason_answer(evidence, matches if evidence.part == "keyword" else (), ())
            for evidence in candidate.evidence
        ],
        factors=factor_answers(candidate, ranking, explain=explain),
        health=document.health,
        health_reasons=document.health_reasons,
        invalid=invalid(document, ranking.route.now),
        tags=document.tags,
        doc_type=document.doc_type,
        source=document.source,
        scope=document.scope,
        updated_at=document.updated_at,
    )


def reason_answer(evidence: Evidence, matches: Sequence[Match], path: Sequence[StepAnswer]) -> ReasonAnswer:
    span = evidence.span
    return ReasonAnswer(
        leg=evidence.leg,
        part=evidence.part,
        raw_score=evidence.raw,
        normaliser=evidence.normaliser,
        scale=evidence.scale,
        normalised=evidence.normalised,
        weight=evidence.weight,
        contribution=evidence.contribution,
        matched_terms=[match.term for match in matches],
        matches=[MatchAnswer(term=m.term, part_of=m.part_of, fields=list(m.fields)) for m in matches],
        heading_path=[] if span is None else list(span.heading_path),
        start=None if span is None else span.start,
        end=None if span is None else span.end,
        turns=list(evidence.turns),
        names=[SaidNameAnswer(**asdict(name)) for name in evidence.names],
        path=list(path),
    )


def factor_answers(candidate: Candidate, ranking: Ranking, *, explain: bool) -> list[FactorAnswer]:
    """In the order of multiplication. Those of 1 tell nothing, unless everything was asked for."""
    if is_exact(candidate):
        return []
    found = [(name, factor(name, candidate, ranking)) for name in FACTORS if ranking.is_on(name)]
    return [
        FactorAnswer(name=name, value=value, inputs=inputs(name, candidate, ranking))
        for name, value in found
        if explain or value != 1.0
    ]


def stage_answer(record: StageRecord) -> StageAnswer:
    return StageAnswer(
        stage=record.stage,
        on=record.on,
        candidates_in=record.candidates_in,
        candidates_out=record.candidates_out,
        ms=round(record.ms, 3),
    )
