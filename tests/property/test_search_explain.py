"""What an answer says of a hit gives its score again, exactly: random candidates, random configurations."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from search_api.ranking_settings import RankingRules
from search_api.retrieval.answers import hit_answer
from search_api.retrieval.candidates import Candidate, DocumentView, Ranking
from search_api.retrieval.factors import FACTORS
from search_api.retrieval.stages import run_stages
from tests.ranked import COSINE_FLOOR, by_names, by_vector, by_words, exact, ranking, recomputed

IDS = st.sampled_from("abcdef")
DATES = st.sampled_from(
    [None, "2031-04-08", "2030-01-01T00:00:00+09:00", "1999-12-31", "no date", "2040-01-01"]
)
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "health": st.floats(0, 1),
        "source": st.sampled_from(["sync", "memory_tool", "unknown", "else"]),
        "updated_at": DATES,
        "created_at": DATES,
        "valid_from": DATES,
        "expires_at": DATES,
        "superseded_by": st.sampled_from([None, "x"]),
        "session": st.sampled_from(["talk", "log"]),
        "position": st.integers(0, 3),
    },
)
ROW = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.sampled_from([["ops"], ["team/ferry"], []]),
        "category": st.sampled_from([None, "harbour"]),
        "agent_id": st.sampled_from(["ada", "ben"]),
        "language": st.sampled_from([None, "en", "ko", "other"]),
    },
)


def merged(make: Any) -> Any:
    return lambda doc_id, raw, leg, facts, row: make(doc_id, raw, leg=leg, **facts, **row)


LEGS = st.sampled_from(["documents", "session_summaries"])
CANDIDATES = st.lists(
    st.one_of(
        st.builds(merged(by_words), IDS, st.floats(-1, 60), LEGS, FACTS, ROW),
        st.builds(
            lambda doc_id, cosine, ordinal, leg, facts: by_vector(doc_id, cosine, ordinal, leg=leg, **facts),
            IDS, st.floats(-1, 1), st.integers(0, 3), LEGS, FACTS,
        ),
        st.builds(lambda doc_id, raw, facts: by_names(doc_id, raw, **facts), IDS, st.floats(0, 5), FACTS),
        st.builds(lambda doc_id, facts: exact(doc_id, **facts), IDS, FACTS),
    ),
    min_size=1,
    max_size=12,
)  # fmt: skip
NUMBERS = {
    name: st.floats(low, high)
    for name, low, high in (
        ("documents_weight", 0, 10), ("session_summaries_weight", 0, 10), ("entities_weight", 0, 10),
        ("keyword_weight", 0, 10), ("vector_weight", 0, 10), ("keyword_floor", 0.01, 100),
        ("names_floor", 0.01, 100), ("health_floor", 0, 1), ("source_floor", 0, 1), ("recency_weight", 0, 1),
        ("recency_half_life_days", 0.1, 1_000), ("validity_factor", 0, 1), ("tag_boost", 0, 0.5),
        ("category_boost", 0, 0.5), ("agent_boost", 0, 0.5), ("time_boost", 0, 0.5),
    )
}  # fmt: skip
OFF = st.lists(
    st.sampled_from(["normalise", "weigh", "health", "source", "recency", "validity", "boost"]), max_size=4
)
QUERIES = st.sampled_from(["the ferry #ops of ada", "harbour in 2030", "yesterday", "nothing"])
CONFIGURATIONS = st.fixed_dictionaries(
    {},
    optional={
        **NUMBERS,
        "fusion": st.sampled_from(["weighted", "rrf"]),
        "stages_off": OFF.map(tuple),
        "other_language_power": st.integers(1, 20),
    },
)


def shown(candidate: Candidate, used: Ranking) -> dict[str, Any]:
    """The hit as JSON, as it goes over the wire."""
    row = candidate.document or DocumentView.from_source({**ROWLESS, "doc_id": candidate.doc_id})
    answer = hit_answer(replace(candidate, document=row), row, None, None, (), used, explain=True)
    hit: dict[str, Any] = json.loads(answer.model_dump_json())
    return hit


ROWLESS: dict[str, Any] = {
    "tenant_id": "acme", "agent_id": "ada", "team_id": None, "scope": "shared", "path": "a.md", "title": "a",
    "abstract": "", "doc_type": "note", "source": "sync", "tags": ["ops"], "content_hash": "sha256:0",
    "size": 1, "left_out_bytes": 0, "no_vector_reason": None, "version": 1, "deleted": False,
}  # fmt: skip


@settings(deadline=None)
@given(CANDIDATES, CONFIGURATIONS, QUERIES, st.sampled_from([None, "en", "ko"]))
def test_explain_gives_the_score_exactly(
    found: list[Candidate], rules: dict[str, Any], query: str, language: str | None
) -> None:
    used = ranking(query, language=language, **rules)
    ranked, _ = run_stages(found, used)
    assert [(-c.score, c.doc_id) for c in ranked] == sorted((-c.score, c.doc_id) for c in ranked)
    for candidate in ranked:
        hit = shown(candidate, used)
        assert recomputed(hit, COSINE_FLOOR) == hit["score"] == candidate.score
        assert [one["name"] for one in hit["factors"]] == (
            []
            if any(reason["part"] == "exact" for reason in hit["reasons"])
            else [name for name in FACTORS if name not in used.rules.stages_off]
        )


def test_an_exact_hit_stays_one_beside_a_negative_score_that_was_not_normalised() -> None:
    used = ranking(health_floor=0.0, stages_off=("normalise",))
    found = [exact("b", health=0.5), by_words("b", -1.0, health=0.5), by_vector("b", -1.0, health=0.5)]
    [ranked], _ = run_stages(found, used)
    assert shown(ranked, used)["factors"] == []
    assert ranked.score == ranked.recall_score


def test_the_bounds_of_the_settings_keep_exact_documents_first() -> None:
    """`hop` lifts to at most three times the best that all others give."""
    graph = sum(3.0 for name in RankingRules().graph.__class__.model_fields if name.endswith("_weight"))
    boosts = 1.5 ** sum(name.endswith("_boost") for name in RankingRules.model_fields)
    assert (1 + graph) * 3 * boosts < 1_000
