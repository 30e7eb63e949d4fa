"""Generations as the cluster tells of them, which model a process takes, and how alike two lists are. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from indexers.domain.identity import TenantId
from indexers.errors import ConfigurationError
from indexers.opensearch.generations import Generations, MadeBy, generations_of, require_space
from indexers.opensearch.names import EVERY, IndexNames
from indexers.opensearch.rows import Index
from indexers.opensearch.templates import VectorSpace
from indexers.planning import IndexVersions
from indexers.settings import EmbedderSettings
from indexers.taken_embedder import taken
from streams.reindex.comparing import Compared, mean
from streams.reindex.status import state_of
from tests.store import gate_row

NAMES = IndexNames(prefix="h", dedicated_tenants={"umbra": "big"})
OLD: dict[str, Any] = {
    "model_id": "e5-small-enko-int8",
    "chunker": "c/old/128",
    "backend": "onnx",
    "model": None,
    "precision": "fp32",
}
NEW: dict[str, Any] = OLD | {"model_id": "other-int8", "chunker": "c/new/128", "model": "/models/other"}


def entry(alias: tuple[str, ...], pair: str, **meta: Any) -> dict[str, Any]:
    known = {"pair_id": pair, "dimension": 3, "cosine_floor": 0.7, "schema_version": 4}
    return {"aliases": {name: {} for name in alias}, "mappings": {"_meta": known | meta}}


def two(*, live: int = 1) -> Generations:
    answer = {
        "h-chunks-v1": entry(("h-chunks@1",), "intfloat/multilingual-e5-small", made_by=OLD),
        "h-chunks-v1@2": entry(
            ("h-chunks@2",), "other", made_by=NEW, fed=True, counts=[["c/old/128", OLD["model_id"]]]
        ),
        "h-chunks-big-v1": entry(("h-chunks-big@1",), "intfloat/multilingual-e5-small", made_by=OLD),
        "h-chunks-big-v1@2": entry(("h-chunks-big@2",), "other", made_by=NEW, fed=True),
    }
    suffix = "" if live == 1 else f"@{live}"
    answer[f"h-chunks-v1{suffix}"]["aliases"]["h-chunks"] = {}
    answer[f"h-chunks-big-v1{suffix}"]["aliases"]["h-chunks-big"] = {}
    return generations_of(answer, NAMES)


def test_generations_are_read_off_names_aliases_and_meta() -> None:
    known = two()
    assert [(one.number, one.live, one.fed) for one in known.all] == [(1, True, False), (2, False, True)]
    assert known.all[1].indices == {None: "h-chunks-v1@2", "big": "h-chunks-big-v1@2"}
    assert known.all[1].aliased == {None, "big"}
    assert (known.old, known.fed, known.live) == (known.all[0], known.all[1], known.all[0])
    assert [state_of(two(live=number)) for number in (1, 2)] == ["building", "swapped"]
    assert state_of(Generations(known.all[1:])) == "closing"
    assert Generations(known.all[1:]).old == known.all[1]
    assert state_of(Generations(known.all[:1])) == "none"
    assert Generations().live is None


def test_names_mean_one_generation_or_all() -> None:
    meant = {
        chunks: IndexNames(prefix="h", chunks=chunks).meant(Index.CHUNKS, "big")
        for chunks in (None, 2, EVERY)
    }
    assert meant == {None: "h-chunks-big", 2: "h-chunks-big@2", EVERY: "h-chunks-big,h-chunks-big@*"}
    assert IndexNames(prefix="h", chunks=2).alias(Index.LINKS, TenantId("t")) == "h-links"
    assert NAMES.generation_of("h-chunks-big-v1@12", "big") == 12
    assert NAMES.generation_of("h-chunks-big-v1@12", None) is None
    assert NAMES.generation_of("h-chunks-v1@x", None) is None


def test_what_was_carried_over_counts_as_ones_own_and_nothing_else_does() -> None:
    old, new = ("c/old/128", OLD["model_id"]), ("c/new/128", "other-int8")
    finished = Generations(two(live=2).all[1:])
    assert finished.alike(new) == finished.alike(old) == {old, new}
    third = ("c/third/128", "third")
    assert finished.alike(third) == {third}
    versions = IndexVersions(
        parser="p", chunker=new[0], model_id=new[1], health="h", alike=finished.alike(new)
    )
    carried = gate_row(versions=f"p|{old[0]}|{old[1]}|h")
    assert versions.settled(carried).versions == versions.fingerprint
    for other in (f"q|{old[0]}|{old[1]}|h", f"p|{third[0]}|{third[1]}|h"):
        assert versions.settled(gate_row(versions=other)).versions == other
    assert versions.chunkers == {old[0], new[0]}


def test_a_process_takes_what_the_index_says_of_models_that_it_knows() -> None:
    own, known = EmbedderSettings(threads=3), two()
    assert taken(own, known, known.old) is own
    found = taken(own, known, known.fed)
    assert (found.model, found.threads) == ("/models/other", 3)
    finished = Generations(known.all[1:])
    assert taken(own, finished, finished.fed).model == "/models/other"
    assert taken(own, Generations(), None) is own


def test_a_model_that_the_index_knows_nothing_of_is_refused_and_told_the_right_one() -> None:
    finished = Generations(two(live=2).all[1:])
    with pytest.raises(
        ConfigurationError, match="set HOPLINE_EMBEDDER__MODEL to /models/other, or embed all anew"
    ):
        require_space(finished, "h-chunks-v1@2", VectorSpace(pair_id="third", dimension=3), rebuild="…")
    require_space(two(), "h-chunks-v1", VectorSpace(pair_id="other", dimension=3), rebuild="…")


@pytest.mark.parametrize(
    ("old", "new", "overlap", "correlation"),
    [
        ("abc", "abc", 1, 1),
        ("abc", "cba", 1, -1),
        ("abcd", "abxy", 0.5, 1),
        ("ab", "xy", 0, None),
        ("", "", 1, None),
        ("a", "", 0, None),
    ],
)
def test_overlap_and_rank_correlation(old: str, new: str, overlap: float, correlation: float | None) -> None:
    one = Compared("q", tuple(old), tuple(new))
    assert (one.overlap, one.rank_correlation) == (overlap, correlation)


def test_a_mean_is_of_what_is_known() -> None:
    assert mean([1.0, None, 0.0]) == 0.5
    assert mean([None]) is None


def test_made_by_says_its_cut() -> None:
    assert MadeBy(**NEW).cut == ("c/new/128", "other-int8")
