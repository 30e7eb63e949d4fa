"""What is compared, as requests."""

from __future__ import annotations

import pytest

from hopline.evaluation.configurations import chosen, configurations
from indexers.errors import WrongUsage
from search_api.graph.kinds import GRAPH_PARTS
from search_api.requests import SearchRequest
from search_api.settings import SearchSettings

KNOWN = configurations(SearchSettings())


def test_the_baselines_and_each_part_of_the_graph_alone() -> None:
    assert [configuration.name for configuration in KNOWN] == [
        "grep",
        "bm25",
        "vector",
        "hybrid",
        "hybrid+names",
        *(f"hybrid+{part}" for part in GRAPH_PARTS),
        "default",
    ]


@pytest.mark.parametrize(
    "name", [configuration.name for configuration in KNOWN if configuration.name != "grep"]
)
def test_every_body_is_a_request_of_the_service(name: str) -> None:
    (found,) = chosen(KNOWN, name)
    SearchRequest.model_validate({"query": "x", **found.body})


def test_a_part_alone_has_weight_and_no_other_part_has() -> None:
    (walk,) = chosen(KNOWN, "hybrid+walk")
    weights = {
        name: value for name, value in walk.body["options"]["graph"].items() if name.endswith("_weight")
    }
    assert [name for name, weight in weights.items() if weight] == ["walk_weight"]
    assert len(weights) == len(GRAPH_PARTS)


def test_configurations_are_chosen_by_name() -> None:
    assert chosen(KNOWN, None) == KNOWN
    assert [c.name for c in chosen(KNOWN, "default, bm25,default")] == ["default", "bm25"]
    with pytest.raises(WrongUsage, match="bm26 is no configuration; there are: grep, bm25, vector, hybrid"):
        chosen(KNOWN, "bm25,bm26")
    with pytest.raises(WrongUsage, match="nothing is no configuration"):
        chosen(KNOWN, ",")
