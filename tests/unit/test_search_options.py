"""What decides the order: settings, a tenant's defaults, the options of a request."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from pydantic import ValidationError

from search_api.graph.rules import GraphRules
from search_api.overlays import overlaid
from search_api.ranking_settings import GraphRanking, RankingRules
from search_api.requests import SearchRequest
from search_api.retrieval.legs import list_weights
from search_api.settings import SearchSettings
from tests.ranked import EVEN


def options(**given: Any) -> Any:
    return SearchRequest.model_validate({"query": "a", "options": given}).options


def test_every_rule_of_the_graph_is_a_setting_with_its_default() -> None:
    rules, settings = GraphRules(), GraphRanking()
    names = {field.name for field in dataclasses.fields(GraphRules)} - {"off"}
    assert {name: getattr(settings, name) for name in names} == {name: getattr(rules, name) for name in names}


def test_the_request_overrides_the_tenant_and_the_tenant_the_settings() -> None:
    settings = SearchSettings.model_validate(
        {"keyword_weight": 0.1, "tenants": {"acme": {"vector_weight": "0.2", "graph": {"depth": 1}}}}
    )
    rules = overlaid(
        settings, settings.tenants["acme"], options(vector_weight=0.3, graph={"decay": [1, 0.1, 0]})
    )
    assert (rules.keyword_weight, rules.vector_weight) == (0.1, 0.3)
    assert (rules.graph.depth, rules.graph.decay, rules.graph.rounds) == (1, (1.0, 0.1, 0.0), 15)
    assert rules.candidates == 100


def test_what_says_nothing_changes_nothing() -> None:
    settings = SearchSettings()
    assert overlaid(settings, None, options(), options(candidates=None, graph={})) == settings
    assert overlaid(settings, None) is settings


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"colour": 1}, "colour"),
        ({"keyword_weight": -0.1}, "keyword_weight"),
        ({"keyword_weight": 11}, "keyword_weight"),
        ({"keyword_weight": "0.5"}, "keyword_weight"),
        ({"keyword_weight": float("nan")}, "keyword_weight"),
        ({"keyword_weight": float("inf")}, "keyword_weight"),
        ({"candidates": 10_000}, "candidates"),
        ({"candidates": 50.5}, "candidates"),
        ({"fusion": "best"}, "fusion"),
        ({"stages_off": ["rank"]}, "stages_off.0"),
        ({"stages_off": "route"}, "stages_off"),
        ({"graph": {"depth": 4}}, "graph.depth"),
        ({"graph": {"edges_max": 1_000_000}}, "graph.edges_max"),
        ({"graph": {"decay": [1, 1]}}, "graph.decay.2"),
        ({"graph": {"restart": 0}}, "graph.restart"),
        ({"graph": {"hub": 1}}, "graph.hub"),
        ({"page_size": 5}, "page_size"),
        ({"source_ranks": {"sync": 9}}, "source_ranks"),
        ({"tenants": {}}, "tenants"),
    ],
)
def test_options_outside_their_bounds_and_unknown_ones_are_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        options(**given)
    assert [".".join(map(str, error["loc"])) for error in caught.value.errors()] == [f"options.{field}"]


def test_lists_that_are_not_asked_give_their_share_to_the_others() -> None:
    def weights(parts: set[Any], **given: Any) -> dict[str, float]:
        found = list_weights(RankingRules(**(EVEN | given)), frozenset(parts))
        return {f"{leg}/{part}": round(share, 9) for (leg, part), share in found.items()}

    no_summaries = {"session_summaries_weight": 0.0}
    assert weights({"keyword", "vector"}, **no_summaries) == {
        "documents/keyword": 0.5,
        "documents/vector": 0.5,
    }
    assert weights({"keyword"}) == {
        "documents/keyword": 0.571428571,
        "session_summaries/keyword": 0.428571429,
    }
    assert weights({"keyword", "names"}, **no_summaries, keyword_weight=9.0) == {
        "documents/keyword": 0.571428571,
        "entities/names": 0.428571429,
    }
    assert weights({"graph"}) == {}
    assert weights({"names", "graph"}) == {"entities/names": 1.0}
    off = {"entities_weight": 0.0}
    assert weights({"names"}, **off) == weights({"names", "graph"}, **off) == {"entities/names": 1.0}
    assert weights({"vector", "names"}, **no_summaries, **off) == {"documents/vector": 1.0}
