"""Edges from a seed to documents that the engine found to be like it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from indexers.opensearch.gate import SearchHit
from search_api.graph.columns import DocumentColumnsHit
from search_api.graph.model import Edge, EdgeKind, GraphRules


def likeness_edges(seed: str, hits: Iterable[SearchHit], rules: GraphRules) -> list[Edge]:
    """One of each kind whose clause the document matched."""
    weights: dict[EdgeKind, float] = {
        "tags": rules.tags_value,
        "category": rules.category_value,
        "terms": rules.terms_value,
    }
    return [
        Edge(source=seed, target=hit.fields.doc_id[0], kind=kind, weight=weight)
        for hit in hits
        if isinstance(hit, DocumentColumnsHit)
        for kind, weight in weights.items()
        if kind in hit.matched_queries
    ]
