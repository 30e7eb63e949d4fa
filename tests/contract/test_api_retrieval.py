"""The whole pipeline over the real engine: legs, exact look-ups, factors, the graph with its paths, options."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from indexers.domain.identity import EntityNamespace, mention_id
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import Index, OwnedRow
from search_api.graph.kinds import GRAPH_PARTS
from search_api.settings import SearchSettings
from tests.api import Service, principal, rewrite_documents, running_service, vault
from tests.conftest import Stack
from tests.entity_rows import entity_row, mention_row
from tests.ranked import EVEN, recomputed

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ME = principal("acme")
#: Every part, from every hit, wherever the defaults rank it.
GRAPH_ALL: dict[str, dict[str, Any]] = {
    "graph": {f"{part}_weight": 0.3 for part in GRAPH_PARTS}
    | {"seeds": 100, "session_seeds": 100, "hop_parents": 100, "hop_floor": 1.0}
}
NOTES = {
    "quay.md": "# Saltmarsh quay\n\nThe quay is mended by [[crew roster]] each spring.\n",
    "crew roster.md": "# Crew roster\n\nSee [[wages/ledger]] for what each of them earns.\n",
    "wages/ledger.md": "# Wages ledger\n\nNumbers and more numbers, in rows.\n",
    "cycle/a.md": "# Windmill\n\nIt turns. [[cycle/b]]\n",
    "cycle/b.md": "# Sails\n\nOf linen. [[cycle/a]]\n",
    "guild one.md": "# Spring meeting\n\nThe Copper Guild met.\n",
    "guild two.md": "# Autumn meeting\n\nLike the last one.\n",
    "sessions/day.md": "---\ndoc_type: session_summary\n---\n# Talk of the lighthouse lamp\n\nThe lamp was bought.\n",
    "lamp.md": "# Lighthouse lamp\n\nA lamp with three lenses.\n",
    **{
        f"talk/{n}.md": f"---\nsession: talk\nposition: {n}\n---\n# Turn {n}\n\n{text}\n"
        for n, text in enumerate(("Hello there.", "Where is the zeppelin moored?", "At the northern mast."))
    },
    "old plan.md": "---\nsuperseded_by: new plan.md\n---\n# Barley plan\n\nBarley in the east field.\n",
    "new plan.md": "---\ntags: [harvest]\n---\n# Barley plan two\n\nBarley in the east field.\n",
    "gone by.md": "---\nexpires_at: 2001-01-01\n---\n# Barley of old\n\nBarley in the east field.\n",
    "x.md": "---\ndoc_type: memory\n---\n# Zq\n\nx\n",
    "many/index.md": "# Kestrel\n\n" + " ".join(f"[[many/{n:02d}]]" for n in range(25)) + "\n",
    **{f"many/{n:02d}.md": f"# Feather {n}\n\nA kestrel feather, number {n}.\n" for n in range(25)},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("retrieval")
    root = vault(folder / "vault", NOTES)
    async with running_service(stack.opensearch_url, folder, vaults=[root], principals=[ME]) as running:
        await say(running, "copper guild", {"guild one.md": 0.9, "guild two.md": 0.8}, root.namespace)
        yield running


async def say(service: Service, key: str, documents: dict[str, float], home: Any) -> None:
    """Mentions of one name, as link writes them."""
    names = EntityNamespace.of(home)
    name_id = names.name_id("crew", key)
    row = {"namespace": names.owner, "label": "crew", "key": key}
    count = len(documents)
    ids = {"name_id": name_id, "entity_id": name_id, "likeness_id": name_id}
    rows: list[tuple[Index, str, OwnedRow]] = [
        (Index.ENTITIES, name_id, entity_row(names.namespace, **row, **ids, name=key.title(), mentions=count))
    ]
    for path, weight in documents.items():
        doc_id = service.ids["vault", path]
        told = {"surface": key.title(), "sentence": f"{key.title()} in {path}."}
        mention = mention_row(home, **row, **told, doc_id=doc_id, path=path, name_id=name_id, weight=weight)
        rows.append((Index.MENTIONS, mention_id(doc_id, name_id), mention))  # type: ignore[arg-type]
    writes = [
        RowWrite(principal=home.principal, index=index, row_id=row_id, action="index", row=row, version=1)
        for index, row_id, row in rows
    ]
    assert {result.status for result in await service.gate.write(writes)} == {"applied"}
    await service.gate.refresh()


async def explained(service: Service, query: str, **request: Any) -> dict[str, Any]:
    """Every answer of these tests recomputes, and stands in the order of its scores."""
    answer = await service.search(ME, query, explain=True, **({"page_size": 100} | request))
    order = [(-hit["score"], hit["doc_id"]) for hit in answer["hits"]]
    assert order == sorted(order)
    for hit in answer["hits"]:
        assert recomputed(hit, answer["trace"]["cosine_floor"]) == hit["score"]
    return answer


def hit_of(answer: dict[str, Any], path: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [hit for hit in answer["hits"] if hit["path"] == path]
    assert len(found) == 1
    return found[0]


def reason_of(hit: dict[str, Any], part: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [reason for reason in hit["reasons"] if reason["part"] == part]
    assert len(found) == 1
    return found[0]


async def test_session_summaries_are_a_leg_of_their_own(service: Service) -> None:
    answer = await explained(service, "lighthouse lamp", parts=["keyword", "vector"], options=EVEN)
    summary, note = hit_of(answer, "sessions/day.md"), hit_of(answer, "lamp.md")
    assert {r["leg"] for r in summary["reasons"]} == {"session_summaries"}
    assert {r["leg"] for r in note["reasons"]} == {"documents"}
    assert [r["weight"] for r in note["reasons"]] == [pytest.approx(0.2 / 0.7)] * 2
    assert answer["trace"]["lists"]["session_summaries/vector"] == 1
    without = await explained(service, "lighthouse lamp", options={"session_summaries_weight": 0})
    assert "sessions/day.md" not in [hit["path"] for hit in without["hits"]]
    only = await explained(service, "lighthouse lamp", filters={"doc_type": ["session_summary"]})
    assert [hit["path"] for hit in only["hits"]] == ["sessions/day.md"]


async def test_the_entities_leg_finds_documents_by_the_names_that_they_say(service: Service) -> None:
    query = "when did the Copper Guild meet?"
    answer = await explained(service, query, parts=["names"])
    assert [hit["path"] for hit in answer["hits"]] == ["guild one.md", "guild two.md"]
    reason = reason_of(answer["hits"][0], "names")
    [said] = reason["names"]
    assert (said["name"], said["documents"], said["weight"]) == ("Copper Guild", 2, pytest.approx(0.9))
    assert reason["raw_score"] == said["idf"] * said["weight"]
    assert {"kind": "name", "said": "Copper Guild", "effect": "boost"} in answer["trace"]["recognised"]
    assert await service.paths(ME, query, parts=["names"], filters={"path_prefix": "guild t"}) == [
        "guild two.md"
    ]


@pytest.mark.parametrize("query", ["x.md", '"Zq"', "the id {id} of it", "barley or x.md?"])
async def test_an_exact_id_path_or_quoted_title_comes_first_however_unhealthy(
    service: Service, query: str
) -> None:
    answer = await explained(service, query.format(id=service.ids["vault", "x.md"]))
    first = answer["hits"][0]
    assert first["path"] == "x.md"
    assert first["health"] < 0.6
    assert reason_of(first, "exact")["contribution"] == 1_000.0
    assert first["factors"] == []


async def test_health_validity_and_what_the_query_says_lower_and_lift_and_hide_nothing(
    service: Service,
) -> None:
    answer = await explained(service, "barley in the east field #harvest", parts=["keyword"])
    paths = [hit["path"] for hit in answer["hits"]]
    assert paths[0] == "new plan.md"
    assert {"old plan.md", "gone by.md"} < set(paths)
    told = {
        hit["path"]: (hit["invalid"], {f["name"]: f["value"] for f in hit["factors"]})
        for hit in answer["hits"]
    }
    assert told["old plan.md"][0] == "superseded"
    assert told["gone by.md"][0] == "expired"
    assert (told["gone by.md"][1]["validity"], told["new plan.md"][1]["validity"]) == (0.5, 1.0)
    assert (told["new plan.md"][1]["boost"], told["gone by.md"][1]["boost"]) == (1.1, 1.0)


async def test_what_the_graph_brings_in_tells_its_path_with_sentences(service: Service) -> None:
    options = {"graph": {"walk_weight": 0.5, "depth": 2}}
    request = {"parts": ["keyword", "graph"], "options": options}
    answer = await explained(service, "saltmarsh quay", **request)
    hit = hit_of(answer, "wages/ledger.md")
    assert {reason["leg"] for reason in hit["reasons"]} == {"graph"}
    path = reason_of(hit, "walk")["path"]
    assert [
        (step["kind"], step["from"]["title"], step["to"]["title"], step["backward"]) for step in path
    ] == [
        ("wikilink", "Saltmarsh quay", "Crew roster", False),
        ("wikilink", "Crew roster", "Wages ledger", False),
    ]
    assert "mended by" in path[0]["context"]
    assert reason_of(hit, "pagerank")["path"] == path
    assert hit["excerpt"] is not None
    plain = await service.search(ME, "saltmarsh quay", **request, page_size=100)
    assert reason_of(hit_of(plain, "wages/ledger.md"), "walk")["path"] == path


async def test_over_a_name_from_one_document_to_another(service: Service) -> None:
    options = {"graph": {"entities_weight": 0.5}}
    answer = await explained(service, "spring meeting", parts=["keyword", "graph"], options=options)
    path = reason_of(hit_of(answer, "guild two.md"), "entities")["path"]
    assert [(s["kind"], s["from"]["title"], s["to"]["title"], s["context"]) for s in path] == [
        ("mention", "Spring meeting", "Copper Guild", "Copper Guild in guild one.md."),
        ("mention", "Copper Guild", "Autumn meeting", "Copper Guild in guild two.md."),
    ]


async def test_the_next_turn_of_a_conversation_is_found_by_the_one_before(service: Service) -> None:
    answer = await explained(service, "where is the zeppelin moored", parts=["keyword", "graph"])
    hit = hit_of(answer, "talk/2.md")
    [step] = reason_of(hit, "session")["path"]
    assert (step["kind"], step["from"]["path"], step["backward"], step["context"]) == (
        "session",
        "talk/1.md",
        False,
        None,
    )
    assert (
        reason_of(hit, "session")["raw_score"]
        > reason_of(hit_of(answer, "talk/0.md"), "session")["raw_score"]
    )


@pytest.mark.parametrize("part", GRAPH_PARTS)
async def test_every_part_of_the_graph_has_its_switch(service: Service, part: str) -> None:
    def parts(answer: dict[str, Any]) -> set[str]:
        return {r["part"] for hit in answer["hits"] for r in hit["reasons"] if r["leg"] == "graph"}

    query = "the Kestrel, the crew roster and the zeppelin of the Spring meeting"
    off = await explained(service, query, options=GRAPH_ALL | {"stages_off": [part]})
    assert parts(off) == set(GRAPH_PARTS) - {part} - {"neighbours"}
    zero = await explained(service, query, options={"graph": GRAPH_ALL["graph"] | {f"{part}_weight": 0}})
    assert [(h["doc_id"], h["score"]) for h in zero["hits"]] == [
        (h["doc_id"], h["score"]) for h in off["hits"]
    ]
    for answer in (off, zero):
        states = {stage["stage"]: stage["on"] for stage in answer["trace"]["stages"]}
        assert {name: states[name] for name in GRAPH_PARTS} == {name: name != part for name in GRAPH_PARTS}


async def test_without_the_graph_nothing_of_it_is_asked(service: Service) -> None:
    for request in ({"parts": ["keyword", "vector", "names"]}, {"options": {"graph": {"enabled": False}}}):
        answer = await explained(service, "saltmarsh quay", **request)
        assert answer["trace"]["graph"] is None
        assert answer["trace"]["round_trips"] <= 2
        assert {r["leg"] for hit in answer["hits"] for r in hit["reasons"]} <= {
            "documents",
            "session_summaries",
        }


@pytest.mark.parametrize(("depth", "most"), [(0, 2), (1, 3), (2, 4), (3, 5)])
async def test_round_trips_by_depth(service: Service, depth: int, most: int) -> None:
    for query in (
        "saltmarsh quay",
        "the Copper Guild",
        "kestrel",
        "where is the zeppelin moored",
        "nothing zzz",
    ):
        options = {"graph": GRAPH_ALL["graph"] | {"depth": depth}}
        for page_size in (3, 10):
            answer = await explained(service, query, options=options, page_size=page_size)
            assert answer["trace"]["round_trips"] <= most, (query, answer["trace"])


async def test_pages_have_no_gap_and_scores_do_not_depend_on_their_size(service: Service) -> None:
    async def pages(size: int) -> list[tuple[str, float]]:
        found: list[tuple[str, float]] = []
        cursor: dict[str, Any] = {}
        while True:
            answer = await service.search(
                ME, "kestrel of the Copper Guild", page_size=size, options=GRAPH_ALL, **cursor
            )
            found += [(hit["doc_id"], hit["score"]) for hit in answer["hits"]]
            if answer["next_cursor"] is None:
                assert len(found) == answer["candidates"]
                return found
            cursor = {"cursor": answer["next_cursor"]}

    whole = await pages(100)
    assert len(whole) > 25
    assert len({doc_id for doc_id, _ in whole}) == len(whole)
    assert [(-score, doc_id) for doc_id, score in whole] == sorted((-s, d) for d, s in whole)
    for size in (1, 4, 7):
        assert await pages(size) == whole


async def test_a_cycle_is_harmless_and_a_walk_stays_within_its_depth(service: Service) -> None:
    options = {"graph": {"walk_weight": 0.5, "depth": 3}}
    answer = await explained(service, "windmill", parts=["keyword", "graph"], options=options)
    assert {hit["path"] for hit in answer["hits"]} == {"cycle/a.md", "cycle/b.md"}


async def test_a_cursor_belongs_to_its_options(service: Service) -> None:
    first = await service.search(ME, "kestrel", page_size=2)
    for options in ({"recency_weight": 0.1}, {"graph": {"depth": 1}}):
        body = {"query": "kestrel", "cursor": first["next_cursor"], "options": options}
        assert (await service.post(ME, body)).status_code == 422
    again = await service.search(
        ME, "kestrel", page_size=2, cursor=first["next_cursor"], options={"graph": {}}
    )
    assert not {h["doc_id"] for h in first["hits"]} & {h["doc_id"] for h in again["hits"]}


async def test_options_that_are_none_are_refused_by_their_field(service: Service) -> None:
    for options, field in (
        ({"graph": {"depth": 9}}, "body.options.graph.depth"),
        ({"colour": 1}, "body.options.colour"),
        ({"keyword_weight": -1}, "body.options.keyword_weight"),
        ("fast", "body.options"),
    ):
        answer = await service.post(ME, {"query": "a", "options": options})
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_a_path_over_a_document_that_has_moved_on_is_shown_to_nobody(
    stack: Stack, tmp_path: Path
) -> None:
    root = vault(tmp_path / "vault", {p: NOTES[p] for p in ("quay.md", "crew roster.md", "wages/ledger.md")})
    async with running_service(stack.opensearch_url, tmp_path, vaults=[root], principals=[ME]) as own:
        request: dict[str, Any] = {"parts": ["keyword", "graph"], "options": {"graph": {"walk_weight": 0.5}}}
        assert "wages/ledger.md" in await own.paths(ME, "saltmarsh quay", **request)
        for changes in ({"version": 2}, {"version": 3, "deleted": True}):
            await rewrite_documents(own, ME, root.name, {"crew roster.md": changes})
            answer = await explained(own, "saltmarsh quay", **request)
            assert "wages/ledger.md" not in [hit["path"] for hit in answer["hits"]]
            assert "Wages ledger" not in str(answer)


async def test_a_tenants_defaults_are_its_own(stack: Stack, tmp_path: Path) -> None:
    settings = SearchSettings.model_validate(
        {"tenants": {"acme": {"graph": {"enabled": False}, "candidates": 20}}}
    )
    other = principal("other")
    async with running_service(
        stack.opensearch_url, tmp_path, principals=[ME, other], search=settings
    ) as own:
        mine = (await own.search(ME, "a", explain=True))["trace"]
        theirs = (await own.search(other, "a", explain=True))["trace"]
        assert (mine["candidate_depth"], mine["graph"]) == (20, None)
        assert (theirs["candidate_depth"], theirs["graph"] is None) == (100, False)
        asked = (await own.search(ME, "a", explain=True, options={"candidates": 30}))["trace"]
        assert asked["candidate_depth"] == 30
