"""The filters of a request over a row in hand: the rule of `queries.document_filters` without the engine. Pure."""

from __future__ import annotations

from datetime import datetime

from indexers.domain.frontmatter import normalise_tag
from search_api.requests import SearchFilters
from search_api.retrieval.candidates import DocumentView
from search_api.retrieval.factors import moment


def passes(filters: SearchFilters, document: DocumentView) -> bool:
    """Kinds are joined by AND, values of a kind by OR."""
    return (
        (not filters.tags or not {normalise_tag(tag) for tag in filters.tags}.isdisjoint(document.tags))
        and (not filters.doc_type or document.doc_type in filters.doc_type)
        and (not filters.path_prefix or document.path.startswith(filters.path_prefix))
        and (not filters.scope or document.scope in {scope.value for scope in filters.scope})
        and _is_updated_in(document.updated_at, filters.updated_from, filters.updated_before)
    )


def _is_updated_in(written: str | None, start: datetime | None, end: datetime | None) -> bool:
    """Without a date it is in no span."""
    if start is None and end is None:
        return True
    updated = moment(written)
    return updated is not None and (start is None or updated >= start) and (end is None or updated < end)
