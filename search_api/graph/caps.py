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
    links = _strongest_first(edges)
    outgoing = _grouped([edge for edge in links if edge.source in asked], _SOURCE)
    incoming = _grouped([edge for edge in links if edge.target in asked], _TARGET)
    kept: dict[int, Edge] = {}
    for some in outgoing.values():
        kept |= {id(edge): edge for edge in some[: rules.links_from_max]}
    for some in incoming.values():
        near = [edge for edge in some if edge.source in known]
        far = [edge for edge in some if edge.source not in known]
        is_hub = 0 < rules.hub_links < len(some)
        ranked = near if is_hub else [*near, *far]
        kept |= {id(edge): edge for edge in ranked[: rules.links_to_max]}
    return [edge for edge in links if id(edge) in kept]


def cap_names_of_documents(edges: Iterable[Edge], rules: GraphRules) -> list[Edge]:
    """The most certain mentions of each document."""
    grouped = _grouped(_strongest_first(edges), _SOURCE)
    return [edge for some in grouped.values() for edge in some[: rules.names_per_document]]


def cap_documents_of_names(edges: Iterable[Edge], known: Container[str], rules: GraphRules) -> list[Edge]:
    """The most certain mentions of each name; those by known documents stay too."""
    grouped = _grouped(_strongest_first(edges), _TARGET)
    return [
        edge
        for some in grouped.values()
        for place, edge in enumerate(some)
        if place < rules.documents_per_name or edge.source in known
    ]


def _strongest_first(edges: Iterable[Edge]) -> list[Edge]:
    """By weight, equal ones by what they join: two stable sorts cost half of one whose keys Python makes."""
    return sorted(sorted(edges, key=_NAMED), key=_WEIGHT, reverse=True)


def _grouped(edges: Iterable[Edge], node: Callable[[Edge], str]) -> dict[str, list[Edge]]:
    found: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in edges:
        found[node(edge)].append(edge)
    return found
