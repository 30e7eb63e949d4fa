"""Which names are one node: equal ones of several namespaces, and those of one entity. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping

from indexers.domain.identity import SEPARATOR
from search_api.graph.columns import NameColumns
from search_api.graph.kinds import EdgeKind, name_node
from search_api.graph.model import Edge, NameNode

#: One edge of a kind between two nodes.
EdgeKey = tuple[EdgeKind, str, str]
_OVER_NAMES = ("mention", "relation")


def join_names(rows: Iterable[NameColumns]) -> tuple[dict[str, NameNode], dict[str, str], set[str]]:
    """Nodes by id; name node → node of its entity; ids of the names that may be walked (read, and not blocked).

    The node is the canonical name's, where its row is at hand. `documents` adds up the names' counts: a document
    that says two of them is counted twice.
    """
    usable = sorted((row for row in rows if not row.blocked[0]), key=lambda row: row.name_id)
    entities: dict[str, set[str]] = {}
    for row in usable:
        node = name_node(row.label[0], row.key[0])
        _unite(entities, f"entity {row.entity_id[0]}", node)
    groups: defaultdict[int, list[NameColumns]] = defaultdict(list)
    for row in usable:
        groups[id(entities[name_node(row.label[0], row.key[0])])].append(row)
    names: dict[str, NameNode] = {}
    nodes: dict[str, str] = {}
    for group in groups.values():
        first = min(group, key=lambda row: (not row.canonical[0], -row.mentions[0], row.label, row.key))
        node = name_node(first.label[0], first.key[0])
        names[node] = NameNode(
            label=first.label[0],
            key=first.key[0],
            entity_id=first.entity_id[0],
            documents=sum(row.mentions[0] for row in group),
        )
        nodes |= {name_node(row.label[0], row.key[0]): node for row in group}
    return dict(sorted(names.items())), dict(sorted(nodes.items())), {row.name_id[0] for row in usable}


def rank_of(edge: Edge) -> tuple[int, float, str, str]:
    """Smaller is better: the newest, then the strongest, then by its row."""
    return -edge.version, -edge.weight, edge.said_by, edge.key


def _name_ids(edge: Edge) -> tuple[str, ...]:
    if edge.kind == "mention":
        return (edge.key,)
    if edge.kind == "relation":
        subject, _, other = edge.key.split(SEPARATOR)
        return subject, other
    return ()


def unread_names(edges: Iterable[Edge], names: Container[str]) -> int:
    """Names of which it can't be told if they are blocked: no row of theirs was asked for."""
    return len({name_id for edge in edges for name_id in _name_ids(edge) if name_id not in names})


def with_joined_names(edges: Iterable[Edge], nodes: Mapping[str, str], allowed: set[str]) -> tuple[Edge, ...]:
    """With joined names as one node, in the order of kind and nodes; without the names that may not be walked."""
    found: dict[EdgeKey, Edge] = {}
    for edge in edges:
        if edge.kind not in _OVER_NAMES:
            found[edge.kind, edge.source, edge.target] = edge
            continue
        if not allowed.issuperset(_name_ids(edge)):
            continue
        source, target = nodes.get(edge.source, edge.source), nodes.get(edge.target, edge.target)
        key = (edge.kind, source, target)
        known = found.get(key)
        if source != target and (known is None or rank_of(edge) < rank_of(known)):
            unmoved = source == edge.source and target == edge.target
            found[key] = edge if unmoved else _moved(edge, source, target)
    return tuple(found[key] for key in sorted(found))


def _moved(edge: Edge, source: str, target: str) -> Edge:
    return Edge(
        source=source,
        target=target,
        kind=edge.kind,
        weight=edge.weight,
        said_by=edge.said_by,
        version=edge.version,
        key=edge.key,
    )


def _unite(groups: dict[str, set[str]], one: str, other: str) -> None:
    joined = groups.get(one, {one}) | groups.get(other, {other})
    for member in joined:
        groups[member] = joined
