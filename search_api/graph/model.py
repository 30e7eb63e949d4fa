"""What the graph stage reads and says: seeds, rules, the edges around the seeds, and what was reached. Values.

Nodes are strings: a document is its id, a name is `name_node(label, key)`, so that equal names of the namespaces
that a principal may see are one node. No document id holds a line break, so the two can't be confused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

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

GraphPart = Literal["named", "walk", "entities", "neighbours", "session", "pagerank", "hop"]
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
    #: As people read it; the key where no row of the name was at hand.
    name: str
    #: Of one of the namespaces that say the name; None: not known.
    entity_id: str | None = None
    #: Documents that say it, as far as the principal sees, 0: not known.
    documents: int = 0


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
    #: Rows that are at hand already.
    rows: Mapping[str, SeedRow] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRules:
    """Depths, decays, caps and switches. `search.graph_*` and the options of a request make it."""

    off: frozenset[GraphPart] = frozenset()
    #: Round trips of the expansion, and the longest walk in edges. 0..3
    depth: int = 2
    #: Documents and titles from which the expansion and every part but pagerank start, best first.
    seeds: int = 20

    # What the expansion reads
    edges_max: int = 3_000
    #: Documents and names whose edges the second and third hop read.
    frontier_max: int = 40
    names_max: int = 80
    #: Of one document: its links (strongest kinds first), links to it; mentions (most certain first).
    links_from_max: int = 40
    links_to_max: int = 40
    names_per_document: int = 20
    #: Of one name: documents that say it, most certain first.
    documents_per_name: int = 10
    #: What more documents say than this is no entity to walk over; 0: no bound.
    name_documents_max: int = 0

    # Weights of edges, 0..1
    wikilink: float = 1.0
    embed: float = 1.0
    reference: float = 1.0
    unlinked_mention: float = 0.9
    relation: float = 1.0

    # walk
    decay: tuple[float, ...] = (1.0, 0.5, 0.25)
    #: Against the direction of a link, in walk and pagerank.
    backward: float = 0.5
    # entities: of one entity hop (memory → name → memory), and of a relation between two names on the way
    entity_decay: float = 1.0
    relation_decay: float = 0.5
    # neighbours
    neighbour_seeds: int = 5
    neighbours_max: int = 10
    shared_tags: int = 2
    shared_terms: int = 3
    tags_value: float = 1.0
    category_value: float = 0.7
    terms_value: float = 0.5
    # session: values of the next and the previous turn; of the k-th divided by k
    session_seeds: int = 20
    session_span: int = 1
    session_next: float = 1.0
    session_previous: float = 0.5
    # pagerank
    restart: float = 0.3
    rounds: int = 15
    pagerank_seeds: int = 20
    seed_power: float = 2.0
    #: Mass of a title or an entity that the question names, beside a recall score of 1.
    named_mass: float = 1.0
    name_mass: float = 1.0
    #: Share of a document's mass that goes over its links; the rest goes over its names.
    link_share: float = 0.5
    # hop: value = hop_base × (hop_floor + (1 − hop_floor) × own recall score) × parent's share
    hop_parents: int = 4
    hop_base: float = 0.9
    hop_floor: float = 0.5

    def is_on(self, part: GraphPart) -> bool:
        return part not in self.off

    def link_weight(self, kind: LinkKind) -> float:
        weight: float = getattr(self, kind)
        return weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph:
    """Edges around the seeds, each once, in a fixed order; no blocked name, no link without a target."""

    edges: Sequence[Edge] = ()
    names: Mapping[str, NameNode] = field(default_factory=dict)
    #: Current versions of documents, where a row was read.
    versions: Mapping[str, int] = field(default_factory=dict)
    #: Documents that the principal may see: what idf counts against.
    documents: int = 0
    #: Rows or nodes that a cap left out, by cap.
    truncated: Mapping[str, int] = field(default_factory=dict)
    #: Edges that were dropped since their document has moved on.
    stale: int = 0
    round_trips: int = 0


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One edge of a path, as walked: from `source` to `target`. `backward`: the edge says the opposite way."""

    kind: EdgeKind
    source: str
    target: str
    backward: bool = False
    row_id: str = ""


class Reached(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    doc_id: str
    part: GraphPart
    #: 0..1.
    value: float
    #: Before it was brought to 0..1; equal where nothing had to be.
    raw: float
    #: From a seed, empty where the document is one itself or is named by the question.
    path: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRef:
    """A row that a shown path goes over."""

    index: Index
    row_id: str
    said_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeContext:
    """The sentence that says an edge, and the document and version whose text has it."""

    row_id: str
    said_by: str
    version: int
    text: str
