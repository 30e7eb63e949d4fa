"""Depths, caps and weights of the graph stage."""

from __future__ import annotations

from dataclasses import dataclass

from search_api.graph.kinds import GraphPart, LinkKind


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
    #: Rows of one request's part: those of the least connected nodes come first (`queries`).
    links_page: int = 800
    mentions_page: int = 1_000
    relations_page: int = 200
    #: Of one document: its links and the links to it, strongest kinds first; its mentions, most certain first.
    links_from_max: int = 40
    links_to_max: int = 40
    names_per_document: int = 20
    #: Of one name: documents that say it, most certain first.
    documents_per_name: int = 10
    #: What more documents link to is a hub: of the links to it only those of documents already known are walked.
    #: 0: only what doesn't fit on a page beside others; of the rest the first `links_to_max` are walked.
    hub_links: int = 60

    # Weights of edges, 0..1
    wikilink: float = 1.0
    embed: float = 1.0
    reference: float = 1.0
    unlinked_mention: float = 0.9
    relation: float = 1.0

    # walk: per edge of the path; against the direction of a link
    decay: tuple[float, ...] = (1.0, 0.5, 0.25)
    walk_backward: float = 1.0
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
    #: Best turns whose mean is what a session is worth.
    session_best: int = 2
    # pagerank; `backward`: against the direction of a link; `session_link`: of the next turn, as a link
    restart: float = 0.4
    backward: float = 0.5
    session_link: float = 0.0
    rounds: int = 15
    pagerank_seeds: int = 20
    #: Mass of the heaviest document from which on it gives 1; below it gives the square of its share of this.
    mass_floor: float = 0.2
    seed_power: float = 2.0
    #: Mass of a title or an entity that the question names, beside a recall score of 1.
    named_mass: float = 1.0
    name_mass: float = 1.0
    #: Share of a document's mass that goes over its links; the rest goes over its names.
    link_share: float = 0.5
    # hop: up to hop_base × (hop_floor + (1 − hop_floor) × own recall score) × the parent's share × weight of the edge,
    # and less for one of many links
    hop_parents: int = 4
    #: Links of a parent that each count whole; of more each counts less.
    hop_fan: int = 3
    hop_base: float = 1.0
    hop_floor: float = 0.6

    def is_on(self, part: GraphPart) -> bool:
        return part not in self.off

    def link_weight(self, kind: LinkKind) -> float:
        weight: float = getattr(self, kind)
        return weight
