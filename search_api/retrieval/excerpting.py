"""The lines of a document that answer a query, and the words of it that it holds. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from indexers.domain.excerpts import FoldedText, excerpt_of
from indexers.domain.folding import nfc_fold
from indexers.domain.frontmatter import likely_body_start
from indexers.domain.matching import Match, QueryWords, matched
from search_api.retrieval.candidates import Candidate, FoundChunk


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExcerpt:
    text: str
    start: int
    end: int
    matches: tuple[Match, ...]


def best_span(candidate: Candidate) -> FoundChunk | None:
    """The chunk whose vector spoke for the document."""
    return next((e.span for e in candidate.evidence if e.span is not None), None)


def show(text: str, words: QueryWords, candidate: Candidate, *, max_chars: int) -> ShownExcerpt:
    """Around the query's words wherever they stand; without any, the begin of the chunk found by vector."""
    body_start, span = likely_body_start(text), best_span(candidate)
    body, terms = FoldedText.of(text[body_start:]), words.terms
    found = excerpt_of(body, terms, max_chars=max_chars, front=text[:body_start])
    if found.matched or span is None:
        start, end = found.start, found.end
    else:
        # No term stands in the text, so none in its chunk: its head.
        within = excerpt_of(FoldedText.of(text[span.start : span.end]), (), max_chars=max_chars)
        start, end = span.start + within.start, span.start + within.end
    return ShownExcerpt(
        text=text[start:end], start=start, end=end, matches=matches(words, candidate, body.folded)
    )


def matches(words: QueryWords, candidate: Candidate, folded_body: str | None) -> tuple[Match, ...]:
    """In the fields that the keyword part searches; the body only where it could be read."""
    document = candidate.document
    if document is None or all(evidence.part != "keyword" for evidence in candidate.evidence):
        return ()
    fields = {
        "title": nfc_fold(document.title),
        "aliases": nfc_fold("\n".join(document.aliases)),
        "tags": nfc_fold("\n".join(document.tags)),
        "path": nfc_fold(document.path),
    }
    if folded_body is not None:
        fields["body"] = folded_body
    return matched(words, fields)
