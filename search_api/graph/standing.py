"""Edges of documents that have moved on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from search_api.graph.model import Edge, Step, Subgraph


def standing(subgraph: Subgraph, versions: Mapping[str, int | None]) -> Subgraph:
    """Without the edges that the present version of a document doesn't say; `stale` counts them.

    `versions`: documents as their rows stand, None for one that is gone or hidden: no edge leads from or to it.
    Documents that aren't among them stay unchecked. The expansion calls it with the rows that it read; the search
    calls it again after the final look-up, with the rows of the candidates and of all that say a shown path's edges
    (`Edge.said_by`), and where anything was stale runs its parts anew.
    """
    gone = {doc_id for doc_id, version in versions.items() if version is None}
    # As `_stands`: this runs for thousands of edges, thrice a search.
    of = versions.get
    said = [edge for edge in subgraph.edges if of(edge.said_by, edge.version) == edge.version]
    if gone:
        said = [edge for edge in said if edge.source not in gone and edge.target not in gone]
    kept = tuple(said)
    known = {doc_id: version for doc_id, version in versions.items() if version is not None}
    return replace(
        subgraph,
        edges=kept,
        versions={**subgraph.versions, **known},
        stale=subgraph.stale + len(subgraph.edges) - len(kept),
    )


def path_stands(path: tuple[Step, ...], versions: Mapping[str, int | None]) -> bool:
    """Whether every edge of a path does: what is shown."""
    return all(_stands(step.edge, versions) for step in path)


def _stands(edge: Edge, versions: Mapping[str, int | None]) -> bool:
    if edge.said_by in versions and versions[edge.said_by] != edge.version:
        return False
    return versions.get(edge.source, 0) is not None and versions.get(edge.target, 0) is not None
