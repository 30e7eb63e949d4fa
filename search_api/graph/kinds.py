"""Kinds of edges and parts, and how nodes are written."""

from __future__ import annotations

from typing import Final, Literal, get_args

GraphPart = Literal["named", "walk", "entities", "neighbours", "session", "session_mates", "pagerank", "hop"]
EdgeKind = Literal[
    "wikilink", "embed", "reference", "unlinked_mention", "mention", "relation", "session",
    "tags", "category", "terms",
]  # fmt: skip
LinkKind = Literal["wikilink", "embed", "reference", "unlinked_mention"]

GRAPH_PARTS: Final[tuple[GraphPart, ...]] = get_args(GraphPart)
LINK_KINDS: Final[frozenset[EdgeKind]] = frozenset(get_args(LinkKind))
FIELD_KINDS: Final[frozenset[EdgeKind]] = frozenset(("tags", "category", "terms"))
_NAME_MARK = "\n"


def name_node(label: str, key: str) -> str:
    return f"{label}{_NAME_MARK}{key}"


def is_name(node: str) -> bool:
    return _NAME_MARK in node


def label_and_key(name: str) -> tuple[str, str]:
    """Of a node that is a name's: what `name_node` was given."""
    label, _, key = name.partition(_NAME_MARK)
    return label, key
