"""At most so many edges of one node, the strongest: a crowd must not drown what the query found. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter

from search_api.graph.model import Edge, GraphRules

_SOURCE, _TARGET, _WEIGHT = attrgetter("source"), attrgetter("target"), attrgetter("weight")
_NAMED = attrgetter("source", "target", "kind", "key")


def cap_links(
    edges: Iterable[Edge], documents: Sequence[str], known: Container[str], rules: GraphRules
) -> list[Edge]:
    """Links from and to these documents: an edge stays that either of its ends keeps.

    A document keeps its own first links by weight, then target; of the links to it likewise by weight, then source,
    those of known documents before all others. Of a hub only known documents' links are kept.
    """
    asked = set(documents)
    links = list(edges)
    outgoing = _grouped([edge for edge in links if edge.source in asked], _SOURCE)
    incoming = _grouped([edge for edge in links if edge.target in asked], _TARGET)
    kept: set[int] = set()
    for some in outgoing.values():
        kept.update(map(id, _strongest(some, rules.links_from_max)))
    for some in incoming.values():
        near = [edge for edge in some if edge.source in known]
        is_hub = 0 < rules.hub_links < len(some)
        far = [] if is_hub else [edge for edge in some if edge.source not in known]
        first = _strongest(near, rules.links_to_max)
        kept.update(map(id, first))
        kept.update(map(id, _strongest(far, rules.links_to_max - len(first))))
    return [edge for edge in links if id(edge) in kept]


def cap_names_of_documents(edges: Iterable[Edge], rules: GraphRules) -> list[Edge]:
    """The most certain mentions of each document."""
    grouped = _grouped(edges, _SOURCE)
    return [edge for some in grouped.values() for edge in _strongest(some, rules.names_per_document)]


def cap_documents_of_names(edges: Iterable[Edge], known: Container[str], rules: GraphRules) -> list[Edge]:
    """The most certain mentions of each name; those by known documents stay too."""
    kept: list[Edge] = []
    for some in _grouped(edges, _TARGET).values():
        first = _strongest(some, rules.documents_per_name)
        kept += first
        if len(first) < len(some):
            chosen = set(map(id, first))
            kept += [edge for edge in some if edge.source in known and id(edge) not in chosen]
    return kept


def _strongest(edges: list[Edge], size: int) -> list[Edge]:
    """By weight, equal ones by what they join: two stable sorts cost half of one whose keys Python makes.

    Most nodes have fewer: those keep theirs as they came, since what is taken in has no order.
    """
    if len(edges) <= size:
        return edges
    return sorted(sorted(edges, key=_NAMED), key=_WEIGHT, reverse=True)[:size]


def _grouped(edges: Iterable[Edge], node: Callable[[Edge], str]) -> dict[str, list[Edge]]:
    found: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in edges:
        found[node(edge)].append(edge)
    return found
