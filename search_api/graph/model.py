"""What the graph stage reads and says: seeds, rules, the edges around the seeds, and what was reached. Values.

Nodes are strings: a document is its id, a name is `name_node(label, key)`, so that equal names of the namespaces
that a principal may see are one node. No document id holds a line break, so the two can't be confused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from indexers.domain.identity import (
    SEPARATOR,
    DocumentId,
    NameId,
    link_id,
    mention_id,
    relation_id,
)
from indexers.opensearch.rows import Index
from search_api.graph.kinds import (
    FIELD_KINDS,
    GRAPH_PARTS,
    LINK_KINDS,
    EdgeKind,
    GraphPart,
    LinkKind,
    is_name,
    name_node,
)
from search_api.graph.rules import GraphRules

__all__ = [
    "FIELD_KINDS",
    "GRAPH_PARTS",
    "LINK_KINDS",
    "Edge",
    "EdgeContext",
    "EdgeKind",
    "GraphPart",
    "GraphRules",
    "LinkKind",
    "NameNode",
    "Reached",
    "SeedRow",
    "Seeds",
    "Step",
    "Subgraph",
    "is_name",
    "name_node",
]


class Edge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`source` says `target`. Of a link: from → to; of a mention: document → name; of a relation: subject → object.

    `session`: a turn → the next one. `tags`, `category`, `terms`: a seed → the document that is like it.
    """

    source: str
    target: str
    kind: EdgeKind
    #: 0..1.
    weight: float
    #: The document whose text says the edge, and its version that does; empty and 0 for computed edges.
    said_by: str = ""
    version: int = 0
    #: What makes the row's id beside document and version: target key, name id, or the relation's three parts.
    key: str = ""

    @property
    def index(self) -> Index | None:
        """Where its row is; None for computed edges."""
        if self.kind == "mention":
            return Index.MENTIONS
        if self.kind == "relation":
            return Index.RELATIONS
        return Index.LINKS if self.kind in LINK_KINDS else None

    @property
    def row_id(self) -> str:
        """Empty for computed edges. Made of the row's fields: reading ids costs the engine more than all columns."""
        doc_id = DocumentId(self.said_by)
        match self.index:
            case Index.MENTIONS:
                return mention_id(doc_id, NameId(self.key))
            case Index.RELATIONS:
                subject, relation_type, other = self.key.split(SEPARATOR)
                return relation_id(doc_id, NameId(subject), relation_type, NameId(other))
            case Index.LINKS:
                return link_id(doc_id, self.version, self.key, self.kind)
            case _:
                return ""


class NameNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A name of an entity, or all of its names that were seen: the canonical one's, where that was."""

    label: str
    key: str
    #: Of one of the namespaces that say the name.
    entity_id: str
    #: Documents that say it, as its rows count them.
    documents: int


class SeedRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Fields of a document row that say what it is like; what the recall has read needn't be read again."""

    version: int
    tags: tuple[str, ...] = ()
    category: str | None = None
    terms: tuple[str, ...] = ()
    session: str | None = None
    position: int | None = None
    #: Owner: turns of one session are neighbours only within it.
    agent_id: str = ""
    team_id: str | None = None
    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """Where the walks start. All values 0..1."""

    #: Recall scores r(doc), any number; each part takes its best few.
    documents: Mapping[str, float]
    #: Documents whose title or alias the question says.
    named: Mapping[str, float] = field(default_factory=dict)
    #: Name nodes that the question says.
    names: Mapping[str, float] = field(default_factory=dict)
    #: Of the entity rows found by the question's names: their other names are joined.
    entity_ids: tuple[str, ...] = ()
    #: Of those that are turns: the session, of one owner.
    sessions: Mapping[str, str] = field(default_factory=dict)
    #: Rows that are at hand already.
    rows: Mapping[str, SeedRow] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph:
    """Edges around the seeds, each once, in a fixed order; no blocked name, no link without a target."""

    edges: Sequence[Edge] = ()
    names: Mapping[str, NameNode] = field(default_factory=dict)
    #: Name node → the node of its entity, which edges lead to; of the names that were read and aren't blocked.
    nodes: Mapping[str, str] = field(default_factory=dict)
    #: Current versions of documents, where a row was read.
    versions: Mapping[str, int] = field(default_factory=dict)
    #: Documents that the principal may see: what idf counts against.
    documents: int = 0
    #: What caps left out, by cap: edges, names, documents; of `*_page` how many answers were full.
    truncated: Mapping[str, int] = field(default_factory=dict)
    #: Edges that were dropped since their document has moved on.
    stale: int = 0
    round_trips: int = 0


class Step(msgspec.Struct, frozen=True, gc=False):
    """One edge of a path, as walked; `backward`: against the way that it says."""

    edge: Edge
    backward: bool = False

    @property
    def kind(self) -> EdgeKind:
        return self.edge.kind

    @property
    def source(self) -> str:
        return self.edge.target if self.backward else self.edge.source

    @property
    def target(self) -> str:
        return self.edge.source if self.backward else self.edge.target

    @property
    def row_id(self) -> str:
        return self.edge.row_id


class Reached(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    doc_id: str
    part: GraphPart
    #: 0..1.
    value: float
    #: Before it was brought to 0..1; equal where nothing had to be.
    raw: float
    #: From a seed (a document, or a name that the question says). Empty: named by the question, or of pagerank,
    #: whose paths `paths.paths_to` finds for the documents that are shown.
    path: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeContext:
    """The sentence that says an edge, and the document and version whose text has it."""

    row_id: str
    said_by: str
    version: int
    #: A link's line, a mention's sentence, a relation's quote.
    text: str
    #: Of a mention: the name as the text has it.
    surface: str | None = None
