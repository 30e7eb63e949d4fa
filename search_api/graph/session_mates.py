"""Turns of the sessions that speak of what is asked: what one turn says, those around it often mean. Pure."""

from __future__ import annotations

from collections import defaultdict

from search_api.graph.model import GraphRules, Reached, Seeds, Subgraph


def session_mates(_subgraph: Subgraph, seeds: Seeds, rules: GraphRules) -> list[Reached]:
    """value: mean of the session's best `session_best` recall scores, absent ones as 0. Sorted by id.

    Of documents that the recall has found itself: a session's other turns are `session`'s to bring in.
    """
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for doc_id, session in seeds.sessions.items():
        scores[session].append(seeds.documents.get(doc_id, 0.0))
    worth = {
        session: sum(sorted(some, reverse=True)[: rules.session_best]) / rules.session_best
        for session, some in scores.items()
    }
    return [
        Reached(doc_id=doc_id, part="session_mates", value=min(1.0, worth[session]), raw=worth[session])
        for doc_id, session in sorted(seeds.sessions.items())
        if worth[session] > 0
    ]
