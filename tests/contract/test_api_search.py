"""Searches over the real engine with the real model."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from search_api.graph.kinds import GRAPH_PARTS
from search_api.settings import SearchSettings
from tests.api import Service, principal, rewrite_documents, running_service, vault
from tests.conftest import Stack
from tests.ranked import recomputed

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ME = principal("acme")
FILLER = "\n".join(f"Filler line {n} about nothing in particular." for n in range(40))
SHIP = "시험선 가람호는 부산에서 출항했다."
NOTES = {
    "korean/trial.md": f"# 시험 기록\n\n{FILLER}\n\n{SHIP}\n\n{FILLER}\n",
    "codes/incident.md": (
        "---\ntags: [audit, Payments]\n---\n# Incident\n\nINC-2041 broke payment_retry with ORA-01555.\n"
    ),
    "codes/other.md": (
        "---\ntags: [audit]\ndoc_type: context\n---\n# Other\n\nINC-2042 and ORA-01556 in v1.2.3.\n"
    ),
    "ferry.md": (
        "---\nupdated: 2031-04-05\n---\n# The ferry Osprey\n\nThe ferry docks at pier nine each morning.\n"
    ),
    "boat.md": "# Vessels\n\nA ship that carries passengers across the river arrives at dawn.\n",
    "quota/operators.md": (
        '# Operators\n\nWords like AND OR NOT title:ferry (unbalanced " ~ * ? / are only words.\n'
    ),
} | {f"many/note-{n:02d}.md": f"# Note {n}\n\nThe harbour crane number {n} lifts cargo.\n" for n in range(23)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("search")
    root = vault(folder / "vault", NOTES)
    async with running_service(stack.opensearch_url, folder, vaults=[root], principals=[ME]) as running:
        yield running


async def pages(service: Service, size: int, **request: Any) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        answer = await service.search(ME, page_size=size, **request, **more)
        assert len(answer["hits"]) <= size
        hits += answer["hits"]
        cursor = answer["next_cursor"]
        if cursor is None:
            assert len(hits) == answer["candidates"]
            return hits


@pytest.mark.parametrize("query", ["부산", "가람호", "출항"])
async def test_c16_keywords_find_korean_words_with_particles_and_show_their_line(
    service: Service, query: str
) -> None:
    answer = await service.search(ME, query, parts=["keyword"])
    assert [hit["path"] for hit in answer["hits"]] == ["korean/trial.md"]
    [hit] = answer["hits"]
    assert SHIP in hit["excerpt"]["text"]
    assert hit["reasons"][0]["matched_terms"] == [query]


async def test_an_excerpt_is_the_files_text_at_its_offsets(service: Service) -> None:
    for hit in (await service.search(ME, "crane 부산 ferry INC-2041", page_size=50))["hits"]:
        excerpt = hit["excerpt"]
        assert NOTES[hit["path"]][excerpt["start"] : excerpt["end"]] == excerpt["text"]
        assert hit["stale_excerpt"] is None


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("INC-2041", "codes/incident.md"),
        ("inc-2042", "codes/other.md"),
        ("ORA-01555", "codes/incident.md"),
        ("v1.2.3", "codes/other.md"),
        ("payment_retry", "codes/incident.md"),
        ("docking ferries", "ferry.md"),
    ],
)
async def test_words_and_codes_are_found_first(service: Service, query: str, path: str) -> None:
    assert (await service.paths(ME, query, parts=["keyword"]))[0] == path
    assert (await service.paths(ME, query))[0] == path


async def test_every_keyword_hit_names_the_words_that_matched_and_their_fields(service: Service) -> None:
    for query in ("INC-2041", "the ferries docking", "payment_storm", "부산항", "audit", "codes note 07"):
        for hit in (await service.search(ME, query, parts=["keyword"], page_size=100))["hits"]:
            [reason] = hit["reasons"]
            assert reason["matched_terms"], (query, hit["path"])
            assert all(match["fields"] for match in reason["matches"])
    hits = (await service.search(ME, "INC-2041", parts=["keyword"]))["hits"]
    assert {hit["path"]: hit["reasons"][0]["matches"] for hit in hits} == {
        "codes/incident.md": [{"term": "inc-2041", "part_of": None, "fields": ["body"]}],
        "codes/other.md": [{"term": "inc", "part_of": "inc-2041", "fields": ["body"]}],
    }
    tagged = (await service.search(ME, "payments audit", parts=["keyword"]))["hits"][0]
    assert [(m["term"], m["fields"][0]) for m in tagged["reasons"][0]["matches"]] == [
        ("payments", "tags"),
        ("audit", "tags"),
    ]


async def test_a_whole_code_goes_far_before_its_parts(stack: Stack, tmp_path: Path) -> None:
    notes = {
        "whole.md": f"# Winter\n\n{FILLER}\n\nAll of it began with INC-2041.\n\n{FILLER}\n",
        "INC-2042.md": "---\ntags: [inc]\naliases: [INC 2041 cousin]\n---\n# INC-2042, an INC\n\nINC INC INC.\n",
        "INC-2043.md": "---\ntags: [inc]\n---\n# INC-2043, an INC\n\nINC.\n",
    }
    root = vault(tmp_path / "vault", notes)
    async with running_service(stack.opensearch_url, tmp_path, vaults=[root], principals=[ME]) as service:
        for parts in (["keyword"], ["keyword", "vector"]):
            hits = (await service.search(ME, "inc-2041", parts=parts))["hits"]
            assert hits[0]["path"] == "whole.md"
            words = [r["normalised"] for hit in hits for r in hit["reasons"] if r["part"] == "keyword"]
            # In a vault of three notes no word is rare enough for a 1.
            assert max(words[1:]) < 0.7 * words[0]


async def test_a_vector_that_is_made_and_one_that_is_known_find_the_same(service: Service) -> None:
    """The first is waited for beside the words' own request; with the second all goes in one."""
    first, second = [await service.search(ME, "who mends the tide gauge", explain=True) for _ in range(2)]
    assert [answer["trace"]["query_vector_cached"] for answer in (first, second)] == [False, True]
    # Not the factors: an age grows meanwhile.
    assert [(h["doc_id"], h["reasons"]) for h in first["hits"]] == [
        (h["doc_id"], h["reasons"]) for h in second["hits"]
    ]
    assert first["trace"]["lists"] == second["trace"]["lists"]
    assert first["trace"]["round_trips"] == second["trace"]["round_trips"]


async def test_a_refused_cursor_costs_no_vector(service: Service) -> None:
    before = _vectors_asked(service)
    refused = await service.post(ME, {"query": "never asked before", "cursor": "bm90IGEgY3Vyc29y"})
    assert (refused.status_code, _vectors_asked(service)) == (422, before)


def _vectors_asked(service: Service) -> float:
    asked = [
        service.metrics.registry.get_sample_value("hopline_search_query_cache_total", {"outcome": outcome})
        for outcome in ("hit", "miss")
    ]
    return sum(value or 0.0 for value in asked)


async def test_an_answer_says_that_no_document_holds_a_word_of_the_query(service: Service) -> None:
    for query, parts, found in (
        ("zzyzx", ["keyword", "vector"], False),
        ("zzyzx", ["vector"], None),
        ("ferry", ["keyword", "vector"], True),
    ):
        assert (await service.search(ME, query, parts=parts))["words_found"] is found


async def test_meaning_finds_what_words_do_not(service: Service) -> None:
    query = "maritime transport for travellers"
    assert "boat.md" not in await service.paths(ME, query, parts=["keyword"])
    answer = await service.search(ME, query, parts=["vector"])
    hit = answer["hits"][0]
    assert hit["path"] == "boat.md"
    assert hit["reasons"][0]["heading_path"] == ["Vessels"]
    assert "passengers" in hit["excerpt"]["text"]


@pytest.mark.parametrize("parts", [["keyword"], ["vector"], ["keyword", "vector"]])
async def test_pages_follow_each_other_without_gaps_and_ranks_do_not_depend_on_their_size(
    service: Service, parts: list[str]
) -> None:
    request: dict[str, Any] = {"query": "harbour crane cargo ferry", "parts": parts}
    whole = await pages(service, 100, **request)
    assert len(whole) >= 23
    assert len({hit["doc_id"] for hit in whole}) == len(whole)
    for size in range(1, 8):
        assert await pages(service, size, **request) == whole


async def test_hits_are_ordered_by_score_then_id(service: Service) -> None:
    hits = await pages(service, 100, query="harbour crane")
    keys = [(-hit["score"], hit["doc_id"]) for hit in hits]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fusion": "rrf", "recency_weight": 0.7},
        {"keyword_weight": 3.0, "entities_weight": 0.0, "health_floor": 0.1, "graph": {"depth": 1}},
    ],
)
async def test_explain_gives_every_score_again(service: Service, options: dict[str, Any]) -> None:
    query = "the ferry at the harbour INC-2041 #audit in 2031"
    answer = await service.search(ME, query, page_size=100, explain=True, options=options)
    for hit in answer["hits"]:
        assert recomputed(hit, answer["trace"]["cosine_floor"]) == hit["score"]
    assert answer["trace"]["recognised"][:2] == [
        {"kind": "tag", "said": "audit", "effect": "boost"},
        {"kind": "time", "said": "in 2031", "effect": "boost"},
    ]


async def test_no_character_of_a_query_is_an_operator(service: Service) -> None:
    for query in (
        "title:ferry AND (",
        '"',
        "*",
        "ferry -ferry",
        "a~2^9 && || !",
        "{}[]\\/",
        "((((",
        "_exists_:path",
    ):
        assert (await service.post(ME, {"query": query})).status_code == 200
    assert await service.paths(ME, "ferry NOT osprey", parts=["keyword"]) != []


async def test_the_longest_queries_are_answered(service: Service) -> None:
    for query in (
        " ".join(f"w{n}" for n in range(399)),
        "가나다라마바사아자차카타파하" * 140,
        "x" * 2_000,
        "/".join("ab" for _ in range(660)),
        "🚢" * 1_000,
        "crane " * 330,
    ):
        response = await service.post(ME, {"query": query, "explain": True})
        assert response.status_code == 200, response.text


async def test_filters_narrow_both_parts(service: Service) -> None:
    async def found(parts: list[str], **filters: Any) -> set[str]:
        answer = await service.search(
            ME, "harbour ferry INC-2041", parts=parts, filters=filters, page_size=100
        )
        return {hit["path"] for hit in answer["hits"]}

    audit = {"codes/incident.md", "codes/other.md"}
    many = {path for path in NOTES if path.startswith("many/")}
    assert await found(["vector"], tags=["audit"]) == audit
    assert await found(["keyword"], tags=["Audit"]) <= audit
    assert await found(["vector"], tags=["payments", "nothing"]) == {"codes/incident.md"}
    assert await found(["vector"], tags=["audit"], doc_type=["context"]) == {"codes/other.md"}
    assert await found(["vector"], tags=["nothing"]) == set()
    assert await found(["keyword", "vector"], path_prefix="many/") == many
    assert await found(["vector"], updated_from="2031-01-01") == {"ferry.md"}
    assert await found(["vector"], updated_before="2031-01-01T00:00:00+09:00") == set(NOTES) - {"ferry.md"}
    assert await found(["keyword", "vector"], scope=["personal"]) == set()
    assert await found(["vector"], scope=["shared", "personal"]) == set(NOTES)


async def test_the_trace_accounts_for_every_stage(service: Service) -> None:
    trace = (await service.search(ME, "harbour crane", explain=True))["trace"]
    assert [stage["stage"] for stage in trace["stages"]] == [
        "current", "smooth", "normalise", "weigh", "fuse", *GRAPH_PARTS, "look_up",
        "health", "source", "recency", "validity", "boost", "rank",
    ]  # fmt: skip
    assert trace["round_trips"] <= 4
    for before, after in zip(trace["stages"], trace["stages"][1:], strict=False):
        assert before["candidates_out"] == after["candidates_in"]
    assert trace["stages"][0]["candidates_in"] == trace["keyword_hits"] + trace["vector_hits"]
    assert trace["embedding_model"] == "e5-small-enko-int8"
    assert set(trace["steps_ms"]) == {"filter", "embed", "recall", "graph", "look_up", "excerpts"}


async def test_a_query_in_nfd_finds_the_same(service: Service) -> None:
    composed = await service.search(ME, "부산 출항")
    decomposed = await service.search(ME, unicodedata.normalize("NFD", "부산 출항"))
    # The cursor has the second in which it was made.
    del composed["next_cursor"], decomposed["next_cursor"]
    assert composed == decomposed
    assert composed["hits"]


async def test_changed_and_missing_files_keep_their_hit_and_say_why_there_is_no_excerpt(
    stack: Stack, tmp_path: Path
) -> None:
    notes = {
        name: f"# {name}\n\nheliotrope in {name}\n"
        for name in ("kept.md", "changed.md", "grown.md", "gone.md")
    }
    root = vault(tmp_path / "vault", notes)
    async with running_service(stack.opensearch_url, tmp_path, vaults=[root], principals=[ME]) as service:
        (root.path / "changed.md").write_text(notes["changed.md"].replace("heliotrope", "heliotropE"))
        with (root.path / "grown.md").open("a") as file:
            file.write("more")
        (root.path / "gone.md").unlink()
        hits = (await service.search(ME, "heliotrope"))["hits"]
        assert {hit["path"]: hit["stale_excerpt"] for hit in hits} == {
            "kept.md": None,
            "changed.md": "changed",
            "grown.md": "changed",
            "gone.md": "gone",
        }
        assert all((hit["excerpt"] is None) == (hit["path"] != "kept.md") for hit in hits)


async def test_chunks_of_an_older_version_and_of_deleted_documents_are_dropped_and_the_page_is_filled(
    stack: Stack, tmp_path: Path
) -> None:
    notes = {f"n{n}.md": f"# N{n}\n\nmarigold number {n}\n" for n in range(6)}
    root = vault(tmp_path / "vault", notes)
    settings = SearchSettings(candidates=10)
    async with running_service(
        stack.opensearch_url, tmp_path, vaults=[root], principals=[ME], search=settings
    ) as service:
        await rewrite_documents(
            service, ME, root.name, {"n0.md": {"version": 2}, "n1.md": {"version": 2, "deleted": True}}
        )
        assert set(await service.paths(ME, "marigold", parts=["vector"])) == {f"n{n}.md" for n in range(2, 6)}
        assert len(await service.paths(ME, "marigold", parts=["vector"], page_size=4)) == 4
        both = await service.search(ME, "marigold", parts=["keyword", "vector"])
        assert {hit["path"] for hit in both["hits"]} == {"n0.md", *(f"n{n}.md" for n in range(2, 6))}
        [n0] = [hit for hit in both["hits"] if hit["path"] == "n0.md"]
        assert [reason["part"] for reason in n0["reasons"]] == ["keyword"]


@pytest.mark.parametrize(("most", "mode"), [(1, "afterwards"), (2, "ids")])
async def test_the_trace_says_how_the_vector_part_was_filtered(
    stack: Stack, tmp_path: Path, most: int, mode: str
) -> None:
    root = vault(tmp_path / "vault", NOTES)
    # Fewer than the setting allows: the same road with two notes instead of hundreds.
    settings = SearchSettings().model_copy(update={"filter_ids_max": most})
    async with running_service(
        stack.opensearch_url, tmp_path, vaults=[root], principals=[ME], search=settings
    ) as small:
        answer = await small.search(ME, "what broke", filters={"tags": ["audit"]}, explain=True)
        assert sorted(hit["path"] for hit in answer["hits"]) == ["codes/incident.md", "codes/other.md"]
        assert answer["trace"]["filter_mode"] == mode
        free = await small.search(ME, "what broke", explain=True)
        assert free["trace"]["filter_mode"] == "none"


async def test_rank_fusion_is_a_setting_and_its_reasons_add_up(stack: Stack, tmp_path: Path) -> None:
    root = vault(tmp_path / "vault", NOTES)
    settings = SearchSettings(fusion="rrf")
    async with running_service(
        stack.opensearch_url, tmp_path, vaults=[root], principals=[ME], search=settings
    ) as by_places:
        request: dict[str, Any] = {
            "page_size": 30,
            "parts": ["keyword", "vector"],
            "options": {"session_summaries_weight": 0, "stages_off": ["source"]},
        }
        hits = (await by_places.search(ME, "ferry at pier nine", **request))["hits"]
        assert hits[0]["path"] == "ferry.md"
        assert hits[0]["score"] == 1.0
        for hit in hits:
            assert {reason["normaliser"] for reason in hit["reasons"]} == {"61/(60+place)"}
            parts = [reason["normalised"] * reason["weight"] for reason in hit["reasons"]]
            assert parts == [reason["contribution"] for reason in hit["reasons"]]
            assert math.fsum(parts) == hit["score"]
