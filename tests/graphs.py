"""Subgraphs for the walks' tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from search_api.graph.model import Edge, EdgeKind, NameNode, Seeds, Step, Subgraph, name_node

DOCUMENTS = tuple("abcdefgh")
NAMES = tuple(name_node("system", key) for key in ("copper", "ledger", "quay", "tide"))
KINDS: tuple[EdgeKind, ...] = ("wikilink", "reference", "unlinked_mention")

weights = st.floats(0.0, 1.0).map(lambda value: round(value, 3))


def link(
    source: str, target: str, kind: EdgeKind = "wikilink", weight: float = 1.0, version: int = 1
) -> Edge:
    return Edge(
        source=source,
        target=target,
        kind=kind,
        weight=weight,
        said_by=source,
        version=version,
        key=f"{target}.md",
    )


def mention(doc_id: str, name: str, weight: float = 1.0, version: int = 1) -> Edge:
    return Edge(
        source=doc_id, target=name, kind="mention", weight=weight, said_by=doc_id, version=version, key=name
    )


def relation(source: str, target: str, said_by: str = "a", weight: float = 1.0) -> Edge:
    return Edge(
        source=source,
        target=target,
        kind="relation",
        weight=weight,
        said_by=said_by,
        version=1,
        key=f"{source}\x1ffeeds\x1f{target}",
    )


def turn(earlier: str, later: str, weight: float = 1.0) -> Edge:
    return Edge(source=earlier, target=later, kind="session", weight=weight)


def like(seed: str, other: str, kind: EdgeKind, weight: float) -> Edge:
    return Edge(source=seed, target=other, kind=kind, weight=weight)


def subgraph(edges: Iterable[Edge], counts: Mapping[str, int] | None = None, **changes: Any) -> Subgraph:
    """Names with how many documents say each; by default all that edges lead to, in one document of 100."""
    edges = tuple(edges)
    mentioned = {node for edge in edges for node in (edge.source, edge.target) if "\n" in node}
    known = dict.fromkeys(mentioned, 1) if counts is None else counts
    names = {
        node: NameNode(
            label=node.split("\n")[0], key=node.split("\n")[1], entity_id=node, documents=documents
        )
        for node, documents in known.items()
    }
    return Subgraph(edges=edges, names=names, nodes={node: node for node in names}, documents=100, **changes)


def is_a_path(steps: tuple[Step, ...], start: set[str], end: str) -> bool:
    """From one of the starts to the end, each step where the one before ended, no node twice."""
    nodes = [steps[0].source, *(step.target for step in steps)]
    joined = all(one.target == following.source for one, following in pairwise(steps))
    return joined and nodes[0] in start and nodes[-1] == end and len(set(nodes)) == len(nodes)


@st.composite
def subgraphs(draw: st.DrawFn) -> Subgraph:
    """Links, mentions, relations and turns in any shape: cycles, loops, names that nothing says."""
    documents, names = st.sampled_from(DOCUMENTS), st.sampled_from(NAMES)
    edges = draw(
        st.lists(
            st.one_of(
                st.builds(link, documents, documents, st.sampled_from(KINDS), weights),
                st.builds(mention, documents, names, weights),
                st.builds(relation, names, names, documents, weights),
                st.builds(turn, documents, documents, weights),
            ),
            max_size=40,
        )
    )
    unique = {(edge.kind, edge.source, edge.target): edge for edge in edges}
    counts = {name: draw(st.integers(0, 120)) for name in NAMES}
    return subgraph(unique.values(), counts)


@st.composite
def all_seeds(draw: st.DrawFn) -> Seeds:
    scores = st.one_of(weights, st.just(1e-12))
    return Seeds(
        documents=draw(st.dictionaries(st.sampled_from(DOCUMENTS), scores, max_size=5)),
        named=draw(st.dictionaries(st.sampled_from(DOCUMENTS), scores, max_size=2)),
        sessions=draw(
            st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from(["monday", "friday"]), max_size=4)
        ),
        names=draw(st.dictionaries(st.sampled_from(NAMES), scores, max_size=2)),
    )
