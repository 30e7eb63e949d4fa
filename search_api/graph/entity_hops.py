"""Memory → name → memory, over at most one relation between two names. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from search_api.graph.chains import starting_documents, starting_names
from search_api.graph.idf import idf
from search_api.graph.model import Edge, GraphRules, Reached, Seeds, Step, Subgraph


class _Source(msgspec.Struct, frozen=True, gc=False):
    """What a name is worth, and by which seed: a document, or the name itself where the question says it."""

    value: float
    seed: str
    steps: tuple[Step, ...]


class _Offer(msgspec.Struct, frozen=True, gc=False):
    value: float
    steps: tuple[Step, ...]


def entity_hops(subgraph: Subgraph, seeds: Seeds, rules: GraphRules) -> list[Reached]:
    """Of each name: value = seed × weight of its mention × idf of the name × weight of the other mention × decay.

    A name that the question says is a seed itself. The names that lead to a document are independent evidence:
    1 − Π(1 − value). The path is the strongest name's. No document is reached from itself. Sorted by id.
    """
    mentions = [edge for edge in subgraph.edges if edge.kind == "mention"]
    relations = [e for e in subgraph.edges if e.kind == "relation" and e.source != e.target]
    sources = _sources(subgraph, mentions, seeds, rules)
    _add_related(sources, relations, rules)
    offers: defaultdict[str, list[_Offer]] = defaultdict(list)
    for name, edges in _strongest(mentions, rules).items():
        node = subgraph.names.get(name)
        telling = 0.0 if node is None else idf(node.documents, subgraph.documents)
        for edge in edges if telling > 0 else ():
            source = next((one for one in sources.get(name, ()) if one.seed != edge.source), None)
            if (
                source is not None
                and (value := source.value * telling * edge.weight * rules.entity_decay) > 0
            ):
                offers[edge.source].append(_Offer(value, (*source.steps, Step(edge, backward=True))))
    found = [_reached(doc_id, some) for doc_id, some in sorted(offers.items())]
    # Evidence too small for a float's 1 − value is none.
    return [one for one in found if one.value > 0]


def _sources(
    subgraph: Subgraph, mentions: Iterable[Edge], seeds: Seeds, rules: GraphRules
) -> dict[str, list[_Source]]:
    """Name → its best two sources of different seeds, best first: a document is reached from the other one."""
    starts = starting_documents(seeds, rules)
    found: defaultdict[str, list[_Source]] = defaultdict(list)
    for name, weight in starting_names(subgraph, seeds, rules).items():
        found[name].append(_Source(weight, name, ()))
    for edge in mentions:
        if (score := starts.get(edge.source)) is not None:
            found[edge.target].append(_Source(score * edge.weight, edge.source, (Step(edge),)))
    return {name: _best_two(some) for name, some in found.items()}


def _add_related(sources: dict[str, list[_Source]], relations: Iterable[Edge], rules: GraphRules) -> None:
    """Both ways over one relation, from what the names are worth by themselves."""
    added: defaultdict[str, list[_Source]] = defaultdict(list)
    for edge in relations:
        for step in (Step(edge), Step(edge, backward=True)):
            for source in sources.get(step.source, ()):
                value = source.value * rules.relation_decay * edge.weight
                added[step.target].append(_Source(value, source.seed, (*source.steps, step)))
    for name, some in added.items():
        sources[name] = _best_two([*sources.get(name, ()), *some])


def _best_two(some: Iterable[_Source]) -> list[_Source]:
    ranked = sorted(some, key=lambda one: (-one.value, len(one.steps), one.seed, _passed(one.steps)))
    first = ranked[0]
    return [first, *[one for one in ranked if one.seed != first.seed][:1]]


def _strongest(mentions: Iterable[Edge], rules: GraphRules) -> Mapping[str, list[Edge]]:
    """Name → its strongest mentions, one more than the cap: one of them may be the seed's own."""
    found: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in mentions:
        found[edge.target].append(edge)
    for name, edges in found.items():
        if len(edges) > rules.documents_per_name + 1:
            edges.sort(key=lambda edge: (-edge.weight, edge.source, edge.key))
            found[name] = edges[: rules.documents_per_name + 1]
    return found


def _reached(doc_id: str, offers: list[_Offer]) -> Reached:
    offers.sort(key=lambda offer: (-offer.value, _passed(offer.steps)))
    value = 1.0 - math.prod(1.0 - min(1.0, offer.value) for offer in offers)
    return Reached(doc_id=doc_id, part="entities", value=value, raw=value, path=offers[0].steps)


def _passed(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(step.target for step in steps)
