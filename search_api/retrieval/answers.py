"""From ranked candidates to what the route answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from indexers.domain.matching import Match
from search_api.models import ExcerptAnswer, HitAnswer, MatchAnswer, ReasonAnswer, StageAnswer
from search_api.retrieval.candidates import Candidate, DocumentView, Evidence
from search_api.retrieval.excerpting import ShownExcerpt
from search_api.retrieval.stages import StageRecord

#: The only retrieval source so far.
LEG = "documents"


def hit_answer(
    candidate: Candidate,
    document: DocumentView,
    excerpt: ShownExcerpt | None,
    stale: str | None,
    matches: Sequence[Match],
) -> HitAnswer:
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
            _reason(evidence, matches if evidence.part == "keyword" else ())
            for evidence in candidate.evidence
        ],
        tags=document.tags,
        doc_type=document.doc_type,
        source=document.source,
        scope=document.scope,
        updated_at=document.updated_at,
    )


def _reason(evidence: Evidence, matches: Sequence[Match]) -> ReasonAnswer:
    span = evidence.span
    return ReasonAnswer(
        leg=LEG,
        part=evidence.part,
        raw_score=evidence.raw,
        normaliser=evidence.normaliser,
        normalised=evidence.normalised,
        weight=evidence.weight,
        contribution=evidence.contribution,
        matched_terms=[match.term for match in matches],
        matches=[MatchAnswer(term=m.term, part_of=m.part_of, fields=list(m.fields)) for m in matches],
        heading_path=[] if span is None else list(span.heading_path),
        start=None if span is None else span.start,
        end=None if span is None else span.end,
    )


def stage_answer(record: StageRecord) -> StageAnswer:
    return StageAnswer(
        stage=record.stage,
        on=record.on,
        candidates_in=record.candidates_in,
        candidates_out=record.candidates_out,
        ms=round(record.ms, 3),
    )
