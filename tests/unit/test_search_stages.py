"""The stages of the retrieval as functions: nothing here needs an engine."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from search_api.cursor import SearchPosition
from search_api.retrieval.candidates import Candidate, DocumentView, Evidence, Ranking, Span
from search_api.retrieval.stages import (
    PLACE_RULE,
    STAGES,
    behind,
    is_stood_by,
    keep_current,
    position_of,
    run_stages,
)

#: Case C18's one constant: a hit alone in its part, or among equals, at or over the floor.
ALONE = 1.0
RANKING = Ranking(weights={"keyword": 0.5, "vector": 0.5}, keyword_floor=1.0, cosine_floor=0.75)


def document(doc_id: str, **changes: Any) -> DocumentView:
    values: dict[str, Any] = {
        "tenant_id": "acme",
        "agent_id": "ada",
        "team_id": None,
        "scope": "shared",
        "doc_id": doc_id,
        "path": f"{doc_id}.md",
        "title": doc_id,
        "abstract": "",
        "doc_type": "note",
        "source": "sync",
        "tags": [],
        "content_hash": "sha256:0",
        "size": 1,
        "left_out_bytes": 0,
        "no_vector_reason": None,
        "updated_at": None,
        "version": 1,
        "deleted": False,
    }
    return DocumentView(**(values | changes))


def by_words(doc_id: str, raw: float, **changes: Any) -> Candidate:
    evidence = Evidence(part="keyword", raw=raw, normalised=raw, version=1)
    return Candidate(doc_id=doc_id, document=document(doc_id, **changes), evidence=(evidence,))


def by_vector(doc_id: str, cosine: float, ordinal: int = 0, version: int = 1) -> Candidate:
    span = Span(ordinal=ordinal, start=0, end=9, heading_path=())
    evidence = Evidence(part="vector", raw=cosine, normalised=cosine, version=version, span=span)
    return Candidate(doc_id=doc_id, document=None, evidence=(evidence,))


RANKINGS = st.sampled_from([RANKING, replace(RANKING, fusion="rrf")])
candidates = st.lists(
    st.one_of(
        st.builds(by_words, st.sampled_from("abcdefgh"), st.floats(0, 50)),
        st.builds(by_vector, st.sampled_from("abcdefgh"), st.floats(-1, 1), st.integers(0, 5)),
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
        assert 0 <= candidate.score <= 1
        assert math.isclose(math.fsum(e.normalised * e.weight for e in candidate.evidence), candidate.score)


@given(candidates, st.integers(1, 9))
def test_pages_join_to_the_whole_list(found: list[Candidate], size: int) -> None:
    ranked, _ = run_stages(found, RANKING)
    joined: list[Candidate] = []
    after: SearchPosition | None = None
    while rest := behind(ranked, after):
        joined += rest[:size]
        after = position_of(rest[:size][-1])
    assert joined == ranked


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
    [asked_alone], _ = run_stages([by_words("a", 7.2)], replace(RANKING, weights={"keyword": 0.5}))
    assert math.isclose(alone.score * 2, asked_alone.score)


def test_filters_that_come_afterwards() -> None:
    ranked, _ = run_stages([by_words("a", 2), by_words("b", 1)], replace(RANKING, allowed=frozenset({"b"})))
    assert [c.doc_id for c in ranked] == ["b"]


def test_every_stage_is_recorded_and_optional_ones_can_be_off() -> None:
    ranking = replace(RANKING, off=frozenset({"weigh", "normalise", "rank", "current", "fuse"}))
    ranked, records = run_stages([by_words("a", 2.5), by_words("b", 3.5)], ranking)
    assert [(r.stage, r.on, r.candidates_in, r.candidates_out) for r in records] == [
        ("current", True, 2, 2),
        ("normalise", False, 2, 2),
        ("weigh", False, 2, 2),
        ("fuse", True, 2, 2),
        ("rank", True, 2, 2),
    ]
    assert [c.doc_id for c in ranked] == ["a", "b"]
    assert [stage.name for stage in STAGES if not stage.required] == ["normalise", "weigh"]


def test_no_weights_at_all_are_equal_weights() -> None:
    ranking = replace(RANKING, weights={"keyword": 0.0, "vector": 0.0})
    ranked, _ = run_stages([by_words("a", 9), by_vector("a", 0.99)], ranking)
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
    ranked, _ = run_stages(found, replace(RANKING, weights={"keyword": 2.0, "vector": 1.0}, fusion="rrf"))
    assert [
        (c.doc_id, [(e.part, e.normaliser, e.normalised, e.weight) for e in c.evidence]) for c in ranked
    ] == [
        ("a", [("keyword", PLACE_RULE, 1.0, 2 / 3), ("vector", PLACE_RULE, 61 / 62, 1 / 3)]),
        ("b", [("keyword", PLACE_RULE, 61 / 62, 2 / 3), ("vector", PLACE_RULE, 1.0, 1 / 3)]),
        ("c", [("vector", PLACE_RULE, 61 / 63, 1 / 3)]),
    ]
    assert [e.span.ordinal for c in ranked for e in c.evidence if e.span] == [3, 0, 0]
    assert PLACE_RULE == "61/(60+place)"
