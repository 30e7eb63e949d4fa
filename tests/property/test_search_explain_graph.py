"""What an answer says of what the graph gave, and of turns, gives its score again: random graphs, random weights."""

from __future__ import annotations

import random
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from search_api.graph.model import GRAPH_PARTS, Subgraph
from search_api.ranking_settings import GraphRanking
from search_api.retrieval.candidates import Candidate, DocumentView, Ranking
from search_api.retrieval.graphing import (
    GraphRun,
    best_new,
    brought_in,
    graph_rules,
    part_weights,
    run_parts,
    seeds_of,
    unit_of,
    with_graph,
)
from search_api.retrieval.recall import Recalled
from search_api.retrieval.stages import FUSION, ORDER, run_stages
from tests.graphs import DOCUMENTS, subgraphs
from tests.property.test_search_explain import CANDIDATES, FACTS, IDS, NUMBERS, QUERIES, shown
from tests.ranked import COSINE_FLOOR, by_vector, by_words, document, ranking, recomputed

WEIGHTS: Final = {name: st.floats(0, 3) for name in GraphRanking.model_fields if name.endswith("_weight")}
RULES = st.fixed_dictionaries(
    {"graph": st.fixed_dictionaries({}, optional=WEIGHTS)},
    optional={
        **NUMBERS,
        "fusion": st.sampled_from(["weighted", "rrf"]),
        "turn_previous": st.floats(0, 1),
        "turn_next": st.floats(0, 1),
        "stages_off": st.lists(st.sampled_from(["smooth", "normalise", *GRAPH_PARTS]), max_size=4).map(tuple),
    },
)
NAMED = st.dictionaries(st.sampled_from(DOCUMENTS), st.floats(0, 1), max_size=2)


def walked(graph: Subgraph, fused: list[Candidate], named: dict[str, float], used: Ranking) -> GraphRun:
    weights = part_weights(used.rules)
    recalled = Recalled(candidates=fused, found={}, named=named)
    seeds = seeds_of(fused, recalled, unit_of(used.weights))
    run = GraphRun(
        subgraph=graph,
        seeds=seeds,
        rules=graph_rules(used.rules, weights),
        asked=weights,
        unit=unit_of(used.weights),
    )
    return run_parts(run, fused)


def ranked(run: GraphRun, fused: list[Candidate], used: Ranking) -> list[Candidate]:
    views: dict[str, DocumentView] = {doc_id: document(doc_id) for doc_id in DOCUMENTS}
    every = [*with_graph(run, fused), *brought_in(run, best_new(run, fused, 30), views)]
    return run_stages(every, used, ORDER)[0]


@settings(deadline=None, max_examples=60)
@given(subgraphs(), CANDIDATES, NAMED, RULES, QUERIES)
def test_explain_gives_the_score_of_what_the_graph_gave(
    graph: Subgraph, found: list[Candidate], named: dict[str, float], rules: dict[str, Any], query: str
) -> None:
    used = ranking(query, **rules)
    fused, _ = run_stages(found, used, FUSION)
    run = walked(graph, fused, named, used)
    hits = ranked(run, fused, used)
    assert {c.doc_id for c in hits} == {c.doc_id for c in fused} | {
        doc_id for some in run.reached.values() for doc_id in some
    }
    for candidate in hits:
        hit = shown(candidate, used)
        assert recomputed(hit, COSINE_FLOOR) == hit["score"] == candidate.score
        told = {reason["part"]: reason for reason in hit["reasons"] if reason["leg"] == "graph"}
        assert {part: reason["normalised"] for part, reason in told.items()} == {
            part: some[candidate.doc_id].value
            for part, some in run.reached.items()
            if candidate.doc_id in some
        }
        assert all(0 < reason["normalised"] <= 1 for reason in told.values())
        assert not told.keys() & set(used.rules.stages_off)


@settings(deadline=None)
@given(CANDIDATES, RULES, QUERIES)
def test_explain_gives_the_cosine_of_a_turn(
    found: list[Candidate], rules: dict[str, Any], query: str
) -> None:
    used = ranking(query, **rules)
    previous, following = used.rules.turn_previous, used.rules.turn_next
    for candidate in run_stages(found, used)[0]:
        for reason in shown(candidate, used)["reasons"]:
            assert not (reason["turns"] and "smooth" in used.rules.stages_off)
            if reason["turns"]:
                own, before, behind = reason["turns"]
                mixed = (own + before * previous + behind * following) / (1 + previous + following)
                assert (reason["part"], reason["raw_score"]) == ("vector", mixed)


@settings(deadline=None, max_examples=50)
@given(subgraphs(), CANDIDATES, NAMED)
def test_hop_lifts_up_to_the_best_and_no_further(
    graph: Subgraph, found: list[Candidate], named: dict[str, float]
) -> None:
    """With the weight that it has by default, in units of the documents leg."""
    used = ranking()
    assert used.rules.graph.hop_weight == 1.0
    fused, _ = run_stages(found, used, FUSION)
    run = walked(graph, fused, named, used)
    for doc_id, one in run.reached["hop"].items():
        assert one.value == one.raw - run.shares.get(doc_id, 0.0) > 0
        assert one.raw <= 1 + 1e-12


def rows_of(facts: dict[str, dict[str, Any]], scores: list[tuple[str, float, bool]]) -> list[Candidate]:
    """Rows of one document say the same of it."""
    return [
        by_words(doc_id, score, **facts.get(doc_id, {}))
        if is_keyword
        else by_vector(doc_id, score / 60, number, **facts.get(doc_id, {}))
        for number, (doc_id, score, is_keyword) in enumerate(scores)
    ]


@settings(deadline=None)
@given(
    st.dictionaries(IDS, FACTS),
    st.lists(st.tuples(IDS, st.floats(0, 60), st.booleans()), max_size=12),
    RULES,
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_rows_changes_nothing(
    facts: dict[str, dict[str, Any]],
    scores: list[tuple[str, float, bool]],
    rules: dict[str, Any],
    rnd: random.Random,
) -> None:
    used, rows = ranking("yesterday", **rules), rows_of(facts, scores)
    mixed = rnd.sample(rows, len(rows))
    assert [(c.doc_id, c.score) for c in run_stages(mixed, used)[0]] == [
        (c.doc_id, c.score) for c in run_stages(rows, used)[0]
    ]
