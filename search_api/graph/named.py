"""Documents whose title or alias the question says. Pure."""

from __future__ import annotations

from search_api.graph.model import GraphRules, Reached, Seeds, Subgraph


def named(_subgraph: Subgraph, seeds: Seeds, _rules: GraphRules) -> list[Reached]:
    """value: as found by the recall. Sorted by id."""
    return [
        Reached(doc_id=doc_id, part="named", value=min(1.0, value), raw=value)
        for doc_id, value in sorted(seeds.named.items())
        if value > 0
    ]
