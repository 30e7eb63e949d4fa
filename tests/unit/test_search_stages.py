"""The stages of the retrieval as functions: nothing here needs an engine."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from search_api.cursor import SearchPosition
from search_api.retrieval.candidates import Candidate, Ranking
from search_api.retrieval.normalising import PLACE_RULE
from search_api.retrieval.stages import FUSION, ORDER, behind, is_stood_by, joined, keep_current, run_stages
from tests.ranked import (
    DOCUMENTS_ALONE,
    PLAIN,
    by_names,
    by_vector,
    by_words,
    document,
    exact,
    ranking,
)

#: Case C18's one constant: a hit alone in its part, or among equals, at or over the floor.
ALONE = 1.0
RANKING = ranking(**DOCUMENTS_ALONE)
THREE_LEGS = ranking(**PLAIN)


RANKINGS = st.sampled_from(
    [RANKING, ranking(**DOCUMENTS_ALONE, fusion="rrf"), THREE_LEGS, ranking("#ops by ada in 2031")]
)
candidates = st.lists(
    st.one_of(
        st.builds(by_words, st.sampled_from("abcdefgh"), st.floats(0, 50)),
        st.builds(by_vector, st.sampled_from("abcdefgh"), st.floats(-1, 1), st.integers(0, 5)),
        st.builds(by_names, st.sampled_from("abcdefgh"), st.floats(0, 3)),
    ),
    max_size=30,
)


@given(candidates, st.randoms(), RANKINGS)
def test_the_order_does_not_depend_on_the_order_of_arrival(
    found: list[Candidate], rnd: Any, ranking: Ranking
) -> None:
    ranked, _ = run_stages(found, ranking)
    again, _ = run_stages(rnd.sample(found, len(found)), ranking)
    assert [(c.doc_id, c.score) for c in ranked] == [(c.doc_id, c.score) for c in again]


@given(candidates, RANKINGS)
def test_each_document_once_scores_within_0_and_1_and_the_factors_give_them(
    found: list[Candidate], ranking: Ranking
) -> None:
    ranked, _ = run_stages(found, ranking)
    assert [c.doc_id for c in ranked] == sorted(
        {c.doc_id for c in found}, key=lambda d: next((-c.score, d) for c in ranked if c.doc_id == d)
    )
    for candidate in ranked:
        assert 0 <= candidate.score <= 1.3
        assert all(0 <= e.normalised <= 1 for e in candidate.evidence)
        assert candidate.recall_score == math.fsum(e.normalised * e.weight for e in candidate.evidence)


@given(candidates, st.integers(1, 9))
def test_pages_join_to_the_whole_list(found: list[Candidate], size: int) -> None:
    ranked, _ = run_stages(found, RANKING)
    joined_pages: list[Candidate] = []
    after: SearchPosition | None = None
    while rest := behind(ranked, after):
        joined_pages += rest[:size]
        after = SearchPosition(score=joined_pages[-1].score, doc_id=joined_pages[-1].doc_id)
    assert joined_pages == ranked


def test_a_document_counts_with_its_best_chunk_and_the_first_of_equals() -> None:
    found = [by_vector("a", 0.8, 0), by_vector("a", 0.95, 2), by_vector("a", 0.95, 1), by_vector("b", 0.9)]
    ranked, _ = run_stages(found, RANKING)
    spans = [e.span.ordinal for c in ranked for e in c.evidence if e.span]
    assert ([c.doc_id for c in ranked], spans) == (["a", "b"], [1, 0])


def test_equal_scores_go_by_id() -> None:
    ranked, _ = run_stages([by_words(doc_id, 3.0) for doc_id in "cab"], RANKING)
    assert [c.doc_id for c in ranked] == ["a", "b", "c"]


def test_chunks_older_than_the_newest_known_of_their_document_are_dropped() -> None:
    found = [
        by_words("both", 3, version=2),
        by_vector("both", 0.9, version=1),
        by_vector("chunks", 0.95, 0, version=1),
        by_vector("chunks", 0.8, 1, version=2),
        by_vector("alone", 0.9, version=1),
    ]
    found[0] = structs.replace(found[0], evidence=(structs.replace(found[0].evidence[0], version=2),))
    kept = keep_current(found, RANKING)
    assert [(c.doc_id, c.evidence[0].part, c.evidence[0].version) for c in kept] == [
        ("both", "keyword", 2),
        ("chunks", "vector", 2),
        ("alone", "vector", 1),
    ]


def test_a_hit_is_stood_by_when_its_document_lives_and_has_the_text_of_the_evidence() -> None:
    hit = by_vector("a", 0.9)
    assert not is_stood_by(hit)
    for changes, expected in (({}, True), ({"version": 2}, False), ({"deleted": True}, False)):
        assert is_stood_by(structs.replace(hit, document=document("a", **changes))) is expected


def test_a_part_that_found_nothing_takes_only_its_share() -> None:
    [alone], _ = run_stages([by_words("a", 7.2)], RANKING)
    [asked_alone], _ = run_stages([by_words("a", 7.2)], ranking(**(DOCUMENTS_ALONE | {"vector_weight": 0.0})))
    assert math.isclose(alone.score * 2, asked_alone.score)


def allowed(*doc_ids: str) -> Ranking:
    return replace(RANKING, allowed=frozenset(doc_ids))


def test_filters_that_come_afterwards() -> None:
    ranked, _ = run_stages([by_words("a", 2), by_words("b", 1)], allowed("b"))
    assert [c.doc_id for c in ranked] == ["b"]


OPTIONAL = ("smooth", "normalise", "weigh", "health", "source", "recency", "validity", "boost")


def test_every_stage_is_recorded_and_optional_ones_can_be_off() -> None:
    found = [by_words("a", 2.5), by_words("b", 3.5)]
    ranked, records = run_stages(found, ranking(stages_off=OPTIONAL))
    assert [(r.stage, r.on, r.candidates_in, r.candidates_out) for r in records] == [
        ("current", True, 2, 2),
        ("smooth", False, 2, 2),
        ("normalise", False, 2, 2),
        ("weigh", False, 2, 2),
        ("fuse", True, 2, 2),
        *((name, False, 2, 2) for name in OPTIONAL[3:]),
        ("rank", True, 2, 2),
    ]
    assert [(c.doc_id, c.score) for c in ranked] == [("b", 3.5), ("a", 2.5)]
    assert tuple(stage.name for stage in (*FUSION, *ORDER) if not stage.required) == OPTIONAL


@pytest.mark.parametrize("stage", OPTIONAL)
def test_each_switch_changes_what_its_stage_does_and_nothing_else(stage: str) -> None:
    found = [
        by_words("sick", 9.0, health=0.5, tags=["ops"], updated_at="2030-01-01", source="unknown"),
        by_words("old", 8.0, expires_at="2031-01-01", source="memory_tool"),
        by_vector("near", 0.9, session="talk", position=1),
        by_vector("next", 0.8, session="talk", position=2),
    ]
    rules: dict[str, Any] = {"recency_weight": 0.5}
    with_it, _ = run_stages(found, ranking("ops of the crew", **rules))
    without, _ = run_stages(found, ranking("ops of the crew", **rules, stages_off=(stage,)))
    assert {c.doc_id: c.score for c in with_it} != {c.doc_id: c.score for c in without}
    assert {c.doc_id for c in with_it} == {c.doc_id for c in without} == {"sick", "old", "near", "next"}


def test_a_stage_that_ran_twice_is_counted_as_one() -> None:
    _, once = run_stages([by_words("a", 1), by_words("b", 1)], RANKING, ORDER)
    _, more = run_stages([by_words("c", 1)], RANKING, ORDER[-1:])
    assert [(r.stage, r.candidates_in) for r in joined(once, more)] == [
        *((stage.name, 2) for stage in ORDER[:-1]),
        ("rank", 3),
    ]


def test_what_is_named_exactly_stands_before_everything_however_unhealthy() -> None:
    best = [by_words("best", 50), by_vector("best", 1.0), by_names("best", 3)]
    sick = exact("sick", health=0.0, superseded_by="other", source="unknown", updated_at="1970-01-01")
    configurations: tuple[dict[str, Any], ...] = (
        {},
        {"health_floor": 0.0, "validity_factor": 0.0, "source_floor": 0.0, "recency_weight": 1.0},
        {"stages_off": ("weigh", "normalise")},
        {"fusion": "rrf"},
        {"documents_weight": 10.0, "tag_boost": 0.5},
    )
    for rules in configurations:
        ranked, _ = run_stages([*best, sick], ranking("best", **rules))
        assert [c.doc_id for c in ranked] == ["sick", "best"]


def test_c18_an_absent_leg_takes_only_its_own_share_and_lifts_no_other() -> None:
    assert {f"{leg}/{part}": share for (leg, part), share in THREE_LEGS.weights.items()} == {
        "documents/keyword": 0.2,
        "documents/vector": 0.2,
        "session_summaries/keyword": 0.15,
        "session_summaries/vector": 0.15,
        "entities/names": 0.3,
    }
    alone, _ = run_stages([by_words("d", 7.2)], THREE_LEGS)
    among, _ = run_stages([by_words("d", 7.2), by_words("s", 9, leg="session_summaries")], THREE_LEGS)
    assert [c.score for c in alone] == [c.score for c in among if c.doc_id == "d"] == [0.2 * ALONE]


def test_c18_odd_lists_through_the_stages() -> None:
    found = [
        by_words("d1", 7.2),
        *(by_names(doc_id, 0.41) for doc_id in ("e2", "e1", "e3")),
    ]
    ranked, _ = run_stages(found, ranking(**PLAIN, names_floor=0.3))
    assert [(c.doc_id, c.score) for c in ranked] == [("e1", 0.3), ("e2", 0.3), ("e3", 0.3), ("d1", 0.2)]
    weak = [
        by_words("weak", 0.003),
        by_words("none", 0.0),
        by_words("strong", 12.0, leg="session_summaries"),
        by_words("next", 11.0, leg="session_summaries"),
    ]
    ranked, _ = run_stages(weak, THREE_LEGS)
    assert [c.doc_id for c in ranked] == ["strong", "next", "weak", "none"]
    odd = [by_names("nan", math.nan), by_names("minus", -3.0), by_names("good", 4.0), by_names("half", 2.0)]
    ranked, _ = run_stages(odd, THREE_LEGS)
    assert [(c.doc_id, c.score) for c in ranked] == [("good", 0.3), ("half", 0.15), ("minus", 0), ("nan", 0)]


def test_a_list_that_holds_few_words_of_a_query_is_not_lifted_for_being_the_best_there_is() -> None:
    """Four words at 2.5 each: what holds one of them is no good match, whatever others hold."""
    rules = ranking(**DOCUMENTS_ALONE, keyword_word_floor=2.5)
    [of_one], _ = run_stages([by_words("a", 5.0)], replace(rules, words=1))
    [of_four], _ = run_stages([by_words("a", 5.0)], replace(rules, words=4))
    assert (of_one.score, of_four.score) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("asked", "written", "expected"),
    [
        ("en", "ko", 0.5**5), ("ko", "en", 0.5**5), ("ko", "other", 0.5), ("other", "en", 0.5),
        ("en", "en", 0.5), ("ko", "ko", 0.5), (None, "ko", 0.5), ("en", None, 0.5),
    ],
)  # fmt: skip
def test_words_count_little_in_a_document_of_another_language(
    asked: str | None, written: str | None, expected: float
) -> None:
    found = [by_words("a", 10.0, language=written), by_words("b", 5.0, language=written)]
    values = {
        power: [
            c.evidence[0].normalised
            for c in run_stages(
                found, ranking(language=asked, other_language_power=power, **DOCUMENTS_ALONE)
            )[0]
        ]
        for power in (1, 5)
    }
    assert values == {1: [1.0, 0.5], 5: [1.0, expected]}


def test_the_best_of_a_list_in_another_language_that_holds_few_of_the_words_counts_little() -> None:
    """4 words · 2.5: half of the floor."""
    rules = ranking(language="en", **DOCUMENTS_ALONE, keyword_word_floor=2.5)
    [best], _ = run_stages([by_words("a", 5.0, language="ko")], replace(rules, words=4))
    assert best.evidence[0].normalised == 0.5**5


def test_a_place_in_a_list_is_of_no_language() -> None:
    found = [by_words("a", 10.0, language="ko"), by_words("b", 5.0, language="ko")]
    ranked, _ = run_stages(found, ranking(language="en", **DOCUMENTS_ALONE, fusion="rrf"))
    assert [c.evidence[0].normaliser for c in ranked] == [PLACE_RULE, PLACE_RULE]


def test_no_weights_at_all_are_equal_weights() -> None:
    none = ranking(**(DOCUMENTS_ALONE | {"keyword_weight": 0.0, "vector_weight": 0.0}))
    ranked, _ = run_stages([by_words("a", 9), by_vector("a", 0.99)], none)
    assert [e.weight for e in ranked[0].evidence] == [0.5, 0.5]


def test_c18_a_single_hit_an_empty_part_and_equal_hits_give_the_constant() -> None:
    [alone], _ = run_stages([by_words("a", 7.2)], RANKING)
    assert alone.score == 0.5 * ALONE
    equal, _ = run_stages([by_vector(doc_id, 0.9) for doc_id in "cab"], RANKING)
    assert [(c.doc_id, c.score) for c in equal] == [(doc_id, 0.5 * ALONE) for doc_id in "abc"]


def test_c18_a_weak_hit_is_not_lifted_for_being_its_parts_best() -> None:
    found = [
        by_words("weak", 0.003),
        by_words("none", 0.0),
        by_vector("strong", 0.96),
        by_vector("next", 0.95),
    ]
    ranked, _ = run_stages(found, RANKING)
    assert [c.doc_id for c in ranked] == ["strong", "next", "weak", "none"]
    assert [c.score for c in ranked[2:]] == [0.5 * 0.003, 0.0]


def test_c18_a_score_that_is_none_or_negative_ranks_last_with_0() -> None:
    found = [by_words("nan", math.nan), by_words("minus", -3.0), by_words("good", 4.0), by_words("half", 2.0)]
    ranked, _ = run_stages(found, RANKING)
    assert [(c.doc_id, c.score) for c in ranked] == [
        ("good", 0.5),
        ("half", 0.25),
        ("minus", 0.0),
        ("nan", 0.0),
    ]


def test_rank_fusion_counts_places_and_a_document_takes_one_whatever_its_chunks() -> None:
    found = [
        by_words("a", 9.0),
        by_words("b", 1.0),
        by_vector("b", 0.95, 0),
        by_vector("b", 0.94, 1),
        by_vector("a", 0.80, 0),
        by_vector("a", 0.90, 3),
        by_vector("c", 0.1),
    ]
    ranked, _ = run_stages(
        found, ranking(**(DOCUMENTS_ALONE | {"keyword_weight": 2.0, "vector_weight": 1.0, "fusion": "rrf"}))
    )
    assert [
        (c.doc_id, [(e.part, e.normaliser, e.normalised, e.scale, e.weight) for e in c.evidence])
        for c in ranked
    ] == [
        ("a", [("keyword", PLACE_RULE, 1.0, 1, 2 / 3), ("vector", PLACE_RULE, 61 / 62, 2, 1 / 3)]),
        ("b", [("keyword", PLACE_RULE, 61 / 62, 2, 2 / 3), ("vector", PLACE_RULE, 1.0, 1, 1 / 3)]),
        ("c", [("vector", PLACE_RULE, 61 / 63, 3, 1 / 3)]),
    ]
    assert [e.span.ordinal for c in ranked for e in c.evidence if e.span] == [3, 0, 0]
    assert PLACE_RULE == "61/(60+place)"
