"""Edges from a seed to documents that the engine found to be like it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from search_api.graph.columns import DocumentHit
from search_api.graph.model import Edge, GraphRules


def likeness_edges(seed: str, hits: Iterable[DocumentHit], rules: GraphRules) -> list[Edge]:
    """One of each kind whose clause the document matched."""
    weights = {"tags": rules.tags_value, "category": rules.category_value, "terms": rules.terms_value}
    return [
        Edge(source=seed, target=hit.fields.doc_id[0], kind=kind, weight=weight)  # type: ignore[arg-type]
        for hit in hits
        for kind, weight in weights.items()
        if kind in hit.matched_queries
    ]
