"""What decides the order of hits: settings, the defaults of a tenant, and the options of a request alike.

Every number has an upper bound: together they keep a hit that was named exactly before any other (see
`search_api.retrieval.factors`).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from indexers.domain.scores import KEYWORD_FLOOR
from indexers.settings import Section
from search_api.graph.rules import GraphRules

#: How the parts are brought together; docs/explanation/scores.md.
Fusion = Literal["weighted", "rrf"]
#: Stages that an answer can do without.
SwitchableStage = Literal[
    "route", "smooth", "normalise", "weigh", "named", "walk", "entities", "neighbours", "session", "session_mates",
    "pagerank", "hop", "health", "source", "recency", "validity", "boost",
]  # fmt: skip

_RULES: Final = GraphRules()
Weight = Annotated[float, Field(ge=0, le=10)]
GraphWeight = Annotated[float, Field(ge=0, le=3)]
Share = Annotated[float, Field(ge=0, le=1)]
Boost = Annotated[float, Field(ge=0, le=0.5)]
#: A request may ask for no more: the walk runs between other requests, on one thread.
Cap = Annotated[int, Field(ge=0, le=200)]
Few = Annotated[int, Field(ge=0, le=100)]


class GraphRanking(Section):
    """The graph around the recall: docs/explanation/retrieval.md."""

    enabled: bool = Field(default=True, description="Whether the graph is walked at all.")
    depth: int = Field(_RULES.depth, ge=0, le=3, description="Round trips of the expansion, longest walk.")
    added_max: int = Field(
        30, ge=0, le=200, description="Documents that only names or the graph brought in; the best stay."
    )
    named_weight: GraphWeight = Field(0.3, description="Weight of a title that the query names.")
    walk_weight: GraphWeight = Field(0.0, description="Weight of the walk over links; 0: off.")
    entities_weight: GraphWeight = Field(0.0, description="Weight of hops over entities; 0: off.")
    neighbours_weight: GraphWeight = Field(0.0, description="Weight of equal tags, category, terms; 0: off.")
    session_weight: GraphWeight = Field(0.05, description="Weight of the turns around a found turn.")
    session_mates_weight: GraphWeight = Field(
        0.7, description="Weight of a session's best turns for all of its."
    )
    pagerank_weight: GraphWeight = Field(0.4, description="Weight of the random walk with restart.")
    hop_weight: GraphWeight = Field(1.0, description="Weight of the links of the best hits.")
    seeds: Cap = Field(_RULES.seeds, description="Hits from which the expansion starts.")
    edges_max: int = Field(_RULES.edges_max, ge=0, le=5_000, description="Edges read in one search.")
    frontier_max: Cap = Field(_RULES.frontier_max, description="Nodes whose edges a later hop reads.")
    names_max: Cap = Field(_RULES.names_max, description="Names whose edges a later hop reads.")
    links_from_max: Cap = Field(_RULES.links_from_max, description="Links of one document.")
    links_to_max: Cap = Field(_RULES.links_to_max, description="Links to one document.")
    names_per_document: Cap = Field(_RULES.names_per_document, description="Names of one document.")
    documents_per_name: Cap = Field(_RULES.documents_per_name, description="Documents of one name.")
    links_page: int = Field(_RULES.links_page, ge=1, le=2_000, description="Rows of links of one hop.")
    mentions_page: int = Field(
        _RULES.mentions_page, ge=1, le=2_000, description="Rows of mentions of one hop."
    )
    relations_page: int = Field(
        _RULES.relations_page, ge=1, le=2_000, description="Rows of relations of one hop."
    )
    hub_links: Cap = Field(_RULES.hub_links, description="Documents with more links to them are hubs.")
    wikilink: Share = Field(_RULES.wikilink, description="Weight of a wikilink's edge.")
    embed: Share = Field(_RULES.embed, description="Weight of an embed's edge.")
    reference: Share = Field(_RULES.reference, description="Weight of a Markdown link's edge.")
    unlinked_mention: Share = Field(_RULES.unlinked_mention, description="Weight of an unlinked mention.")
    relation: Share = Field(_RULES.relation, description="Weight of a written relation's edge.")
    decay: tuple[Share, Share, Share] = Field((1.0, 0.5, 0.25), description="Of the walk, by hop.")
    walk_backward: Share = Field(_RULES.walk_backward, description="A link against its direction (walk).")
    entity_decay: Share = Field(_RULES.entity_decay, description="Of one hop over an entity.")
    relation_decay: Share = Field(_RULES.relation_decay, description="Of a relation on the way.")
    neighbour_seeds: Few = Field(_RULES.neighbour_seeds, description="Hits whose neighbours are asked for.")
    neighbours_max: Few = Field(_RULES.neighbours_max, description="Neighbours of one hit.")
    shared_tags: int = Field(_RULES.shared_tags, ge=1, le=20, description="Tags that neighbours share.")
    shared_terms: int = Field(_RULES.shared_terms, ge=1, le=20, description="Terms that neighbours share.")
    tags_value: Share = Field(_RULES.tags_value, description="Of a neighbour by tags.")
    category_value: Share = Field(_RULES.category_value, description="Of a neighbour by category.")
    terms_value: Share = Field(_RULES.terms_value, description="Of a neighbour by terms.")
    session_seeds: Few = Field(_RULES.session_seeds, description="Hits whose turns around are asked for.")
    session_span: int = Field(_RULES.session_span, ge=0, le=10, description="Turns before and behind.")
    session_next: Share = Field(_RULES.session_next, description="Of the turn behind.")
    session_previous: Share = Field(_RULES.session_previous, description="Of the turn before.")
    session_best: int = Field(
        _RULES.session_best, ge=1, le=20, description="Turns that a session's worth is of."
    )
    restart: float = Field(_RULES.restart, gt=0, le=1, description="Chance that the walk starts anew.")
    backward: Share = Field(_RULES.backward, description="A link against its direction (random walk).")
    session_link: Share = Field(_RULES.session_link, description="A next turn as a link (random walk).")
    rounds: int = Field(_RULES.rounds, ge=1, le=100, description="Rounds of the random walk.")
    pagerank_seeds: Few = Field(_RULES.pagerank_seeds, description="Hits from which it starts.")
    mass_floor: Share = Field(
        _RULES.mass_floor,
        description="Mass from which on the heaviest document gets 1; below, the square of its share of this.",
    )
    seed_power: float = Field(_RULES.seed_power, ge=0, le=10, description="Power of their recall scores.")
    named_mass: Weight = Field(_RULES.named_mass, description="Start at a named title.")
    name_mass: Weight = Field(_RULES.name_mass, description="Start at a named entity.")
    link_share: Share = Field(_RULES.link_share, description="Share of a document's mass for its links.")
    hop_parents: Few = Field(_RULES.hop_parents, description="Best hits whose links are followed.")
    hop_fan: int = Field(_RULES.hop_fan, ge=1, le=1_000, description="Links of a hit that count whole.")
    hop_base: Share = Field(_RULES.hop_base, description="Of a link of a best hit.")
    hop_floor: Share = Field(_RULES.hop_floor, description="Share of it that needs no recall score.")


class RankingRules(Section):
    """Weights, depths and switches of one search: docs/reference/search.md gives the rules."""

    candidates: int = Field(
        100, ge=10, le=1_000, description="Candidates of each retrieval part, whatever the page."
    )
    vector_candidates: int = Field(
        300, ge=10, le=1_000, description="Chunks of each vector part: cheaper than rows, and turns are many."
    )
    fusion: Fusion = Field(
        "weighted", description="`weighted`: by normalised scores; `rrf`: by places (reciprocal rank fusion)."
    )
    documents_weight: Weight = Field(0.4, description="Share of the documents leg; 0: not asked.")
    session_summaries_weight: Weight = Field(
        0.3, description="Share of the session summaries' leg; 0: not asked."
    )
    entities_weight: Weight = Field(
        0.0, description="Share of the entities leg; 0: asked only without `keyword` and `vector`."
    )
    keyword_weight: Weight = Field(0.4, description="Share of BM25 within a leg.")
    vector_weight: Weight = Field(0.6, description="Share of k-NN within a leg.")
    turn_previous: Share = Field(0.3, description="Share of the previous turn's cosine in a turn's.")
    turn_next: Share = Field(0.3, description="Share of the next turn's cosine in a turn's.")
    keyword_floor: float = Field(
        KEYWORD_FLOOR, gt=0, le=1_000, description="BM25 scores are divided by max(best, floor)."
    )
    keyword_word_floor: float = Field(
        3.5,
        ge=0,
        le=1_000,
        description="That floor for each word of the query: what one word gives where it is found well. A list whose "
        "best holds few of the words (another language) is not lifted to 1.",
    )
    other_language_power: int = Field(
        5,
        ge=1,
        le=20,
        description="Power of a keyword score where one of document and query is English and the other Korean: there "
        "only names and loanwords can match. A score of 1 stays one; 1: off.",
    )
    names_floor: float = Field(
        1.0, gt=0, le=1_000, description="Scores of the entities leg are divided by max(best, floor)."
    )
    health_floor: Share = Field(0.5, description="What health 0 leaves of a score; 1: health counts nothing.")
    source_floor: Share = Field(0.9, description="What source rank 0 leaves of a score; 1: nothing.")
    recency_weight: Share = Field(0.0, description="Part of a score that age takes away; 0: off.")
    recency_half_life_days: float = Field(
        30.0, gt=0, le=36_500, description="Age that takes half of that part."
    )
    validity_factor: Share = Field(
        0.5, description="Of documents that are expired, superseded or not yet valid."
    )
    tag_boost: Boost = Field(0.1, description="More for a tag that the query says.")
    category_boost: Boost = Field(0.05, description="More for a category that the query says.")
    agent_boost: Boost = Field(0.05, description="More for documents of an agent that the query says.")
    time_boost: Boost = Field(0.2, description="More for documents of a time that the query says.")
    stages_off: tuple[SwitchableStage, ...] = Field((), description="Stages left out, by name.")
    graph: GraphRanking = GraphRanking()
