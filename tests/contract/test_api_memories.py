"""Memories written over HTTP, carried out by the agents, found by everybody who may see them."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from dirty_equals import IsPartialDict, IsStr

from indexers.domain.frontmatter import read_frontmatter
from tests.conftest import Stack
from tests.memory_api import ADA, ADMIN, BOB, EVE, READER, UNKNOWN, MemoryService, memory_service

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MemoryService]:
    async with memory_service(stack, tmp_path_factory.mktemp("memories")) as opened:
        yield opened


async def test_a_memory_becomes_a_file_and_is_found_by_word_meaning_and_name(world: MemoryService) -> None:
    answer = await world.write(
        ADA, "The ferry Aldebaran leaves Kraków harbour at dusk. Ask Alice Novak about PAY-4711.",
        title="Ferry times", tags=["Harbour"], session="s-1", speaker="Ada", position=2, scope="shared",
    )  # fmt: skip
    doc_id, event_id = answer["doc_id"], answer["event_id"]
    assert answer == {
        "doc_id": IsStr,
        "event_id": IsStr,
        "path": IsStr(regex=r"memories/\d{4}/ferry-times-[0-9a-f]{8}\.md"),
        "version": answer["event"]["version"],
        "replayed": False,
        "event": IsPartialDict(state="accepted", kind="write", failure=None),
    }
    assert [one["stage"] for one in answer["event"]["stages"]] == ["accepted"]
    await world.ingest()
    assert await world.state(ADA, event_id) == "ingested"
    text = world.file(answer, "acme/shared/ada").read_text()
    assert read_frontmatter(text, max_bytes=65_536).speaker == "Ada"
    assert doc_id in await world.found(BOB, "ferry dusk", parts=["keyword"])
    await world.follow_on()
    assert await world.stages(BOB, event_id) == ["accepted", "ingested", "embedded", "extracted", "linked"]
    assert await world.state(ADA, event_id) == "linked"
    assert doc_id in await world.found(ADA, "when does the boat sail in the evening", parts=["vector"])
    assert doc_id in await world.found(ADA, "what about PAY-4711", parts=["names"])


async def test_a_second_tenant_and_another_agent_see_neither_event_nor_document(world: MemoryService) -> None:
    mine = await world.written(ADA, "my own marigold")
    unknown = {"doc_id": UNKNOWN, "event_id": UNKNOWN}
    for who in (EVE, BOB):
        for path, key in (("/v1/events/{}", "event_id"), ("/v1/documents/{}", "doc_id")):
            answers = [await world.call(who, "GET", path.format(one[key])) for one in (mine, unknown)]
            assert [a.status_code for a in answers] == [404, 404]
            bodies = [{**a.json(), "request_id": None} for a in answers]
            assert bodies[0] == bodies[1]
        for method, path, body in (
            ("PUT", "/v1/memories/{}", {"content": "x"}),
            ("DELETE", "/v1/documents/{}", None),
        ):
            answers = [
                await world.call(who, method, path.format(one["doc_id"]), body) for one in (mine, unknown)
            ]
            assert [a.status_code for a in answers] == [404, 404]
        refused = await world.call(
            who, "POST", "/v1/memories", {"content": "x", "supersedes": mine["doc_id"]}
        )
        assert refused.status_code == 404
    assert await world.found(EVE, "marigold") == []


async def test_a_session_summary_feeds_its_leg(world: MemoryService) -> None:
    answer = await world.written(
        ADA, "We agreed on quokka migrations.", doc_type="session_summary", session="s-9"
    )
    [hit] = (await world.service.search(ADA, "quokka", parts=["keyword"]))["hits"]
    assert (hit["doc_id"], {reason["leg"] for reason in hit["reasons"]}) == (
        answer["doc_id"],
        {"session_summaries"},
    )


async def test_what_supersedes_ranks_above_what_it_supersedes(world: MemoryService) -> None:
    old = await world.written(ADA, "The walrus budget is 40 euros.", title="Budget")
    new = await world.written(ADA, "The walrus budget is 50 euros.", title="Budget", supersedes=old["doc_id"])
    hits = (await world.service.search(ADA, "walrus budget"))["hits"]
    assert [(hit["doc_id"], hit["invalid"]) for hit in hits[:2]] == [
        (new["doc_id"], None),
        (old["doc_id"], "superseded"),
    ]
    assert new["event"]["kind"] == "supersede"
    found = read_frontmatter(world.file(old).read_text(), max_bytes=65_536)
    assert (found.title, found.superseded_by) == ("Budget", new["doc_id"])


async def test_an_update_keeps_id_path_and_what_it_does_not_name(world: MemoryService) -> None:
    first = await world.written(ADA, "platypus one", title="Platypus", tags=["a"], category="animals")
    update = await world.ok(
        ADA, "PUT", f"/v1/memories/{first['doc_id']}", {"content": "platypus two", "category": None}
    )
    assert (update["doc_id"], update["path"]) == (first["doc_id"], first["path"])
    assert update["version"] > first["version"]
    await world.carry_out()
    assert await world.state(ADA, update["event_id"]) == "linked"
    document = await world.ok(ADA, "GET", f"/v1/documents/{first['doc_id']}")
    assert document == IsPartialDict(title="Platypus", tags=["a"], category=None, version=update["version"])
    assert await world.found(ADA, "platypus two", parts=["keyword"]) == [first["doc_id"]]
    assert world.file(first).read_text().endswith("---\nplatypus two\n")


async def test_an_update_may_follow_its_write_at_once(world: MemoryService) -> None:
    first = await world.write(ADA, "numbat one", title="Numbat")
    update = await world.ok(ADA, "PUT", f"/v1/memories/{first['doc_id']}", {"content": "numbat two"})
    await world.carry_out()
    states = [await world.state(ADA, one["event_id"]) for one in (first, update)]
    assert states == ["overtaken", "linked"]
    assert await world.found(ADA, "numbat two", parts=["keyword"]) == [first["doc_id"]]
    assert (await world.ok(ADA, "GET", f"/v1/documents/{first['doc_id']}"))["title"] == "Numbat"


async def test_what_is_forgotten_is_in_no_index_and_a_person_can_take_it_back(world: MemoryService) -> None:
    memory = await world.written(ADA, "axolotl lagoon [[nowhere]] of Alice Novak", title="Axolotl")
    assert set(await world.rows_with(memory["doc_id"])) >= {"documents", "chunks", "links", "gate"}
    forgotten = await world.ok(ADA, "DELETE", f"/v1/documents/{memory['doc_id']}")
    assert forgotten["event"] == IsPartialDict(kind="forget", state="accepted")
    await world.carry_out()
    assert await world.rows_with(memory["doc_id"]) == {}
    assert await world.state(ADA, forgotten["event_id"]) == "linked"
    file = world.file(memory)
    kept = world.folder / "acme/personal/ada/.hopline/forgotten" / memory["path"]
    assert (file.exists(), kept.read_text().endswith("axolotl lagoon [[nowhere]] of Alice Novak\n")) == (
        False,
        True,
    )
    assert (await world.call(ADA, "GET", f"/v1/documents/{memory['doc_id']}")).status_code == 404
    assert (await world.call(ADA, "DELETE", f"/v1/documents/{memory['doc_id']}")).status_code == 404


async def test_a_batch_is_accepted_whole_or_not_at_all(world: MemoryService) -> None:
    texts = ["capybara one", "capybara two", "capybara three"]
    done = await world.ok(ADA, "POST", "/v1/memories/batch", {"memories": [{"content": t} for t in texts]})
    refused = await world.call(
        ADA, "POST", "/v1/memories/batch", {"memories": [{"content": "capybara four"}, {"content": " "}]}
    )
    assert (refused.status_code, [e["field"] for e in refused.json()["errors"]]) == (
        422,
        ["body.memories.1.content"],
    )
    await world.carry_out()
    found = await world.found(ADA, "capybara", parts=["keyword"])
    assert sorted(found) == sorted(one["doc_id"] for one in done["memories"])


async def test_an_idempotency_key_stands_for_one_write(world: MemoryService) -> None:
    body = {"content": "okapi", "title": "Okapi", "relations": []}
    first = await world.ok(ADA, "POST", "/v1/memories", body, headers={"idempotency-key": "k-1"})
    again = await world.ok(ADA, "POST", "/v1/memories", {**body, "idempotency_key": "k-1"})
    assert (again["doc_id"], again["event_id"], again["version"], again["replayed"]) == (
        first["doc_id"],
        first["event_id"],
        first["version"],
        True,
    )
    others = await world.ok(BOB, "POST", "/v1/memories", body, headers={"idempotency-key": "k-1"})
    assert (others["replayed"], others["doc_id"] == first["doc_id"]) == (False, False)
    conflict = await world.call(ADA, "POST", "/v1/memories", {"content": "other", "idempotency_key": "k-1"})
    assert (conflict.status_code, conflict.json()["type"]) == (
        409,
        "urn:hopline:problem:idempotency-conflict",
    )
    differ = await world.call(
        ADA, "POST", "/v1/memories", {**body, "idempotency_key": "k-2"}, headers={"idempotency-key": "k-1"}
    )
    assert [e["field"] for e in differ.json()["errors"]] == ["body.idempotency_key"]
    await world.carry_out()
    assert await world.found(ADA, "okapi", parts=["keyword"]) == [first["doc_id"]]
    assert len(list(world.file(first).parent.glob("okapi-*.md"))) == 1


async def test_a_repetition_is_answered_though_what_it_supersedes_is_gone(world: MemoryService) -> None:
    old = await world.write(ADA, "dugong of old")
    await world.ingest()
    body = {"content": "dugong anew", "supersedes": old["doc_id"], "idempotency_key": "dugong"}
    first = await world.ok(ADA, "POST", "/v1/memories", body)
    await world.ingest()
    await world.ok(ADA, "DELETE", f"/v1/documents/{old['doc_id']}")
    await world.ingest()
    again = await world.ok(ADA, "POST", "/v1/memories", body)
    assert (again["event_id"], again["event"]["kind"], again["replayed"]) == (
        first["event_id"],
        "supersede",
        True,
    )
    other = await world.call(ADA, "POST", "/v1/memories", {**body, "content": "another"})
    fresh = await world.call(ADA, "POST", "/v1/memories", {**body, "idempotency_key": "dugong-2"})
    assert (other.status_code, fresh.status_code) == (409, 404)
    await world.carry_out()
    assert await world.found(ADA, "dugong", parts=["keyword"]) == [first["doc_id"]]


async def test_a_key_that_stands_for_two_of_a_batch_is_refused_before_anything_is_stored(
    world: MemoryService,
) -> None:
    key = "numbat/2"  # what the header's key would be for the third
    memories = [{"content": "one", "idempotency_key": key}, {"content": "two"}, {"content": "one"}]
    refused = await world.call(
        ADA, "POST", "/v1/memories/batch", {"memories": memories}, headers={"idempotency-key": "numbat"}
    )
    assert (refused.status_code, [e["field"] for e in refused.json()["errors"]]) == (
        422,
        ["body.memories.2.idempotency_key"],
    )
    alone = await world.ok(ADA, "POST", "/v1/memories", memories[0])
    assert alone["replayed"] is False


async def test_names_of_any_script_become_files(world: MemoryService) -> None:
    titles = ["결제 지연 🧭", unicodedata.normalize("NFD", "Überfällige Zahlung"), "שלום"]
    for title in titles:
        answer = await world.written(ADA, f"gerenuk of {title}", title=title)
        document = await world.ok(ADA, "GET", f"/v1/documents/{answer['doc_id']}")
        assert document["title"] == unicodedata.normalize("NFC", title)
        assert world.file(answer).is_file()
    content = await world.ok(ADA, "GET", f"/v1/documents/{answer['doc_id']}/content")
    assert "gerenuk of שלום" in content["text"]


async def test_relations_of_a_memory_stand_with_their_quote(world: MemoryService) -> None:
    relation = {
        "subject": "Payments", "subject_label": "team", "type": "owns",
        "object": "Ledger", "object_label": "service", "quote": "Payments owns the Ledger",
    }  # fmt: skip
    answer = await world.written(ADA, "Payments owns\nthe Ledger since May.", relations=[relation])
    assert (await world.rows_with(answer["doc_id"]))["relations"] == 1
    wrong = [{**relation, "quote": "Ledger owns Payments"}, {**relation, "type": "Owns It"}]
    refused = [
        await world.call(
            ADA, "POST", "/v1/memories", {"content": "Payments owns the Ledger", "relations": [r]}
        )
        for r in wrong
    ]
    assert [(r.status_code, [e["field"] for e in r.json()["errors"]]) for r in refused] == [
        (422, ["body.relations.0.quote"]),
        (422, ["body.relations.0.type"]),
    ]


async def test_who_may_write_what(world: MemoryService) -> None:
    shared = await world.written(ADA, "shared tapir", scope="shared")
    team = await world.written(BOB, "sales tapir", scope="team", team="sales")
    assert world.file(team, "acme/team/sales/bob").is_file()
    update = {"content": "changed"}
    statuses = {
        "a reader writes": await world.call(READER, "POST", "/v1/memories", {"content": "x"}),
        "a reader updates": await world.call(READER, "PUT", f"/v1/memories/{shared['doc_id']}", update),
        "another's": await world.call(BOB, "PUT", f"/v1/memories/{shared['doc_id']}", update),
        "another team's": await world.call(ADA, "DELETE", f"/v1/documents/{team['doc_id']}"),
        "no team named": await world.call(BOB, "POST", "/v1/memories", {"content": "x", "scope": "team"}),
        "a foreign team": await world.call(
            BOB, "POST", "/v1/memories", {"content": "x", "scope": "team", "team": "hr"}
        ),
        "an admin": await world.call(ADMIN, "PUT", f"/v1/memories/{shared['doc_id']}", update),
        "the only team": await world.call(ADA, "POST", "/v1/memories", {"content": "x", "scope": "team"}),
        "erase": await world.call(ADA, "DELETE", f"/v1/documents/{shared['doc_id']}", erase="perhaps"),
    }
    assert {name: answer.status_code for name, answer in statuses.items()} == {
        "a reader writes": 403,
        "a reader updates": 403,
        "another's": 403,
        "another team's": 404,
        "no team named": 422,
        "a foreign team": 422,
        "an admin": 202,
        "the only team": 202,
        "erase": 422,
    }
    await world.carry_out()


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        pytest.param({}, ["body.content"], id="nothing"),
        pytest.param({"content": " \n"}, ["body.content"], id="blank"),
        pytest.param({"content": "x", "tags": ["a"] * 51}, ["body.tags"], id="tags"),
        pytest.param({"content": "x", "tags": ["a" * 65, ""]}, ["body.tags.0", "body.tags.1"], id="each tag"),
        pytest.param({"content": "x", "doc_type": "poem"}, ["body.doc_type"], id="type"),
        pytest.param({"content": "x", "position": 2**31}, ["body.position"], id="position"),
        pytest.param({"content": "x", "position": "1"}, ["body.position"], id="position as text"),
        pytest.param({"content": "x", "valid_from": "soon"}, ["body.valid_from"], id="time"),
        pytest.param(
            {"content": "x", "valid_from": "2031-01-02", "expires_at": "2031-01-01"}, ["body"], id="times"
        ),
        pytest.param({"content": "x", "tenant": "rival"}, ["body.tenant"], id="another tenant"),
        pytest.param({"content": "x", "team": "ops"}, ["body.team"], id="a team without its scope"),
        pytest.param(
            {"content": "x", "title": "a\u0000b", "speaker": "\t"},
            ["body.title", "body.speaker"],
            id="controls",
        ),
        pytest.param({"content": "a\u0000b"}, ["body.content"], id="NUL"),
        pytest.param({"content": "x" * 200_001}, ["body.content"], id="long"),
    ],
)
async def test_each_wrong_field_is_named(
    world: MemoryService, body: dict[str, object], fields: list[str]
) -> None:
    answer = await world.call(ADA, "POST", "/v1/memories", body)
    assert (answer.status_code, sorted(e["field"] for e in answer.json()["errors"])) == (422, sorted(fields))


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        pytest.param(b'{"content": "' + b"x" * 6_000_000 + b'"}', 413, id="six megabytes"),
        pytest.param(b'{"content": "a\\ud800b"}', 422, id="a lone surrogate"),
        pytest.param(b'{"content": "a", "title": "\\udfff"}', 422, id="a lone surrogate in the title"),
        pytest.param(b'{"content": "\xff"}', 422, id="no UTF-8"),
        pytest.param(b'{"content": ' + b"[" * 50_000, 422, id="nested"),
        pytest.param(b"[]", 422, id="a list"),
    ],
)
async def test_no_body_is_a_fault_of_the_service(world: MemoryService, raw: bytes, status: int) -> None:
    from tests.api import bearer

    headers = bearer(ADA) | {"content-type": "application/json"}
    answer = await world.service.http.post("/v1/memories", content=raw, headers=headers)
    assert answer.status_code == status, answer.text


async def test_a_wait_ends_with_the_milestone_or_the_time(world: MemoryService) -> None:
    short = await world.ok(
        ADA, "POST", "/v1/memories", {"content": "pangolin"}, wait_for="ingested", timeout_seconds="0.1"
    )
    assert short["event"]["state"] == "accepted"
    await world.carry_out()
    event = await world.ok(
        ADA, "GET", f"/v1/events/{short['event_id']}", wait_for="linked", timeout_seconds="5"
    )
    assert event["state"] == "linked"
    refused = await world.call(ADA, "GET", f"/v1/events/{UNKNOWN}", wait_for="soon", timeout_seconds="9")
    assert sorted(e["field"] for e in refused.json()["errors"]) == ["query.timeout_seconds", "query.wait_for"]
