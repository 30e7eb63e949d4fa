"""The lines of a document that answer a query. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from indexers.domain.excerpts import excerpt
from search_api.retrieval.candidates import Candidate, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExcerpt:
    text: str
    start: int
    end: int
    matched_terms: tuple[str, ...]


def best_span(candidate: Candidate) -> Span | None:
    """The chunk whose vector spoke for the document."""
    return next((e.span for e in candidate.evidence if e.span is not None), None)


def show(text: str, query: str, span: Span | None, *, max_chars: int) -> ShownExcerpt:
    """Around the query's words wherever they stand; without any, the begin of the chunk found by vector."""
    found = excerpt(text, query, max_chars=max_chars)
    if found.matched or span is None:
        start, end = found.start, found.end
    else:
        within = excerpt(text[span.start : span.end], query, max_chars=max_chars)
        start, end = span.start + within.start, span.start + within.end
    return ShownExcerpt(text=text[start:end], start=start, end=end, matched_terms=found.matched)
