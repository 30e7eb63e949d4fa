"""Turns before and after a seed's, in the conversation that both belong to. Pure."""

from __future__ import annotations

import math
from collections import defaultdict

from search_api.graph.chains import best_few
from search_api.graph.model import GraphRules, Reached, Seeds, Step, Subgraph

#: Value, seed, and the step from it.
_Offer = tuple[float, str, Step]


def session(subgraph: Subgraph, seeds: Seeds, rules: GraphRules) -> list[Reached]:
    """The next turn gets the seed's score × `session_next`, the previous one × `session_previous`.

    The k-th turn on gets a k-th of that (the edge's weight). What several seeds give is added up, at most 1.
    Sorted by id.
    """
    starts = dict(best_few(seeds.documents, rules.session_seeds))
    offers: defaultdict[str, list[_Offer]] = defaultdict(list)
    for edge in subgraph.edges:
        if edge.kind != "session" or edge.source == edge.target:
            continue
        for step, share in (
            (Step(edge), rules.session_next),
            (Step(edge, backward=True), rules.session_previous),
        ):
            if (value := starts.get(step.source, 0.0) * share * edge.weight) > 0:
                offers[step.target].append((value, step.source, step))
    return [_reached(doc_id, some) for doc_id, some in sorted(offers.items())]


def _reached(doc_id: str, offers: list[_Offer]) -> Reached:
    offers.sort(key=lambda offer: (-offer[0], offer[1], offer[2].backward))
    raw = math.fsum(value for value, _, _ in offers)
    return Reached(doc_id=doc_id, part="session", value=min(1.0, raw), raw=raw, path=(offers[0][2],))
