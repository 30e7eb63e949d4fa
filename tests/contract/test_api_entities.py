"""Entities over HTTP: found, walked page by page, curated. Rows are those that the link agent writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from dirty_equals import IsPartialDict, IsStr
from prometheus_client.parser import text_string_to_metric_families

from indexers.domain.identity import EntityNamespace, relation_id
from indexers.opensearch.rows import EntityRow, Index, MentionRow, RelationRow, owner_fields
from search_api.app import openapi_document
from search_api.cursor import ListPosition, encode_cursor
from search_api.entities.paging import RowList, SortKey
from tests.agents import vault_root
from tests.api import NO_BROKER, bearer, principal, running_service
from tests.conftest import Stack
from tests.entity_api import BODY_MAX_BYTES, EntityService, curator, entity_service

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ADA = principal("acme")
CORA = curator(principal("acme", "cora", "ops"))
UNKNOWN = "00000000-0000-5000-8000-000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EntityService]:
    """Each test takes a label of its own."""
    folder = tmp_path_factory.mktemp("entities")
    roots = [
        vault_root(folder, "main"),
        vault_root(folder, "ops", agent="cora", scope="team", team="ops"),
    ]
    async with entity_service(stack, folder, roots, [ADA, CORA]) as opened:
        yield opened


async def say(world: EntityService, label: str, **texts: Sequence[str]) -> None:
    await world.say_once(label, {f"{path}.md": names for path, names in texts.items()})


def line(world: EntityService, label: str, name: str, documents: int, **more: Any) -> dict[str, Any]:
    return {
        "entity_id": world.id_of(label, name),
        "name": name,
        "label": label,
        "namespace": "shared",
        "mention_count": documents,
        "blocked": False,
    } | more


async def test_an_entity_is_found_and_walked(world: EntityService) -> None:
    await say(world, "crew", a=["Payments Team", "Ferry crew"], b=["Payments Team"])
    team = world.id_of("crew", "Payments Team")
    listed = await world.get(ADA, "/v1/entities", label="crew")
    assert listed == {
        "entities": [
            line(world, "crew", "Payments Team", 2, matched=None),
            line(world, "crew", "Ferry crew", 1, matched=None),
        ],
        "next_cursor": None,
    }
    assert await world.get(ADA, f"/v1/entities/{team}") == line(world, "crew", "Payments Team", 2, aliases=[])
    place = {"start": 0, "end": 13, "surface": "Payments Team", "weight": 0.9}
    mentions = (await world.get(ADA, f"/v1/entities/{team}/mentions"))["mentions"]
    assert sorted(mentions, key=lambda mention: mention["document"]["path"]) == [
        place
        | {
            "document": {"doc_id": world.link.home.document(path).doc_id, "title": "A", "path": path},
            "name_id": team,
            "sentence": f"Payments Team stands in {path}.",
            "count": 1,
            "source": "model",
            "places": [place | {"sentence": f"Payments Team stands in {path}."}],
        }
        for path in ("a.md", "b.md")
    ]
    doc_id = world.link.home.document("a.md").doc_id
    named = (await world.get(ADA, f"/v1/documents/{doc_id}/mentions"))["mentions"]
    assert {(m["entity"]["name"], m["sentence"]) for m in named} == {
        ("Payments Team", "Payments Team stands in a.md."),
        ("Ferry crew", "Ferry crew stands in a.md."),
    }


async def test_pages_of_equal_weight_and_count_end_and_repeat_nothing(world: EntityService) -> None:
    names = [f"Tug {letter * 9}" for letter in "abcdefg"]
    await say(world, "tug", **{f"t{n}": names for n in range(5)})
    whole = (await world.get(ADA, "/v1/entities", label="tug"))["entities"]
    assert len(whole) == 7
    pages = await world.pages(ADA, "/v1/entities", "entities", label="tug", page_size=2)
    assert ([len(page) for page in pages], list(chain(*pages))) == ([2, 2, 2, 1], whole)
    entity = f"/v1/entities/{whole[0]['entity_id']}/mentions"
    pages = await world.pages(ADA, entity, "mentions", page_size=2)
    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({mention["document"]["doc_id"] for page in pages for mention in page}) == 5
    document = f"/v1/documents/{world.link.home.document('t0.md').doc_id}/mentions"
    pages = await world.pages(ADA, document, "mentions", page_size=3)
    assert [len(page) for page in pages] == [3, 3, 1]
    assert {mention["entity"]["name"] for page in pages for mention in page} == set(names)


async def test_a_cursor_belongs_to_its_list_and_holds_what_the_engine_takes(world: EntityService) -> None:
    await say(world, "buoy", b1=["Buoy one", "Buoy two"], b2=["Buoy one"])
    cursor = (await world.get(ADA, "/v1/entities", label="buoy", page_size=1))["next_cursor"]
    assert await world.get(ADA, "/v1/entities", label="buoy", cursor=cursor)
    rows = RowList(
        name=("entities", "buoy", None, False),
        index=Index.ENTITIES,
        query={},
        sort=(SortKey(field="mention_count", kind="whole"), SortKey(field="name_id")),
    )
    bent = [
        encode_cursor(ListPosition(after=after), rows.fingerprint(ADA))
        for after in (["x", "y"], ["1e9999", "y"], ["9" * 30, "y"], ["1"], ["", ""])
    ]
    asked: list[dict[str, Any]] = [{"label": "buoy", "cursor": one} for one in (*bent, cursor[:-2], "%00")]
    asked += [{"label": "crew", "cursor": cursor}, {"label": "buoy", "blocked": "true", "cursor": cursor}]
    asked += [{"q": "buoy", "cursor": cursor}]
    for params in asked:
        problem = await world.get(ADA, "/v1/entities", 422, **params)
        assert [error["field"] for error in problem["errors"]] == ["query.cursor"], params


ODD_NAMES = [
    pytest.param("한국 물류 센터", id="korean"),
    pytest.param("מרכז הלוגיסטיקה חיפה", id="right to left"),
    pytest.param("Ferry 🛟 Rescue ⛴ Crew", id="emoji"),
    pytest.param("Δελφίνι Πορθμεία", id="greek"),
    pytest.param("Harbour " + "very " * 170 + "long", id="very long"),
    pytest.param('quote " <b> \\ {x} OR *', id="query syntax"),
]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_any_name_is_found_by_itself(world: EntityService, name: str) -> None:
    names = [str(case.values[0]) for case in ODD_NAMES]
    await say(world, "odd", odd1=[*names, "Other thing"], odd2=names)
    [found, *_] = (await world.get(ADA, "/v1/entities", q=name[:200], label="odd"))["entities"]
    assert found == line(world, "odd", name, 2, matched=None)
    assert (await world.get(ADA, f"/v1/entities/{found['entity_id']}"))["name"] == name


async def test_the_very_name_comes_before_all_that_hold_its_words(world: EntityService) -> None:
    await say(
        world, "pier", p1=["North pier", *(f"North pier north pier {chr(97 + n) * 12}" for n in range(20))]
    )
    [first, *others] = (await world.get(ADA, "/v1/entities", q="the north PIER", label="pier"))["entities"]
    assert (first["name"], len(others)) == ("North pier", 20)
    assert (await world.get(ADA, "/v1/entities", q="nothing like that", label="pier"))["entities"] == []
    hostile = "a1" * 100
    assert (await world.get(ADA, "/v1/entities", q=hostile, label="pier"))["entities"] == []


async def test_an_entity_of_very_many_names_is_walked_whole(world: EntityService) -> None:
    owner = EntityNamespace.of(world.link.home)
    names = [f"spelling{n}" for n in range(620)]
    version = await world.link.stored("many.md")
    doc_id = world.link.home.document("many.md").doc_id
    first = owner.name_id("many", names[0])
    entities: dict[str, Any] = {}
    mentions: dict[str, Any] = {}
    for n, name in enumerate(names):
        name_id = owner.name_id("many", name)
        entities[name_id] = EntityRow(
            **owner_fields(owner.namespace), name_id=name_id, likeness_id=name_id, entity_id=first,
            namespace=owner.owner, label="many", key=name, name=name, canonical=n == 0, mentions=1,
            mention_count=1 if n == 0 else 0, blocked=False, grams=[], block=None, length=len(name),
        )  # fmt: skip
        mentions[f"{name_id[:-1]}m"] = MentionRow(
            **owner_fields(world.link.home), doc_id=doc_id, path="many.md", name_id=name_id,
            namespace=owner.owner, label="many", key=name, surface=name, weight=0.5, start=n, end=n + 1,
            sentence=name, occurrences=[], count=1, source="model", version=version,
        )  # fmt: skip
    await world.write_rows(Index.ENTITIES, entities)
    await world.write_rows(Index.MENTIONS, mentions)
    assert len((await world.get(ADA, f"/v1/entities/{first}"))["aliases"]) == 100
    pages = await world.pages(ADA, f"/v1/entities/{first}/mentions", "mentions", page_size=200)
    assert sorted(m["surface"] for page in pages for m in page) == sorted(names)


async def test_edges_of_versions_left_behind_are_passed_over(world: EntityService) -> None:
    await say(world, "dock", **{f"d{n}": ["Long dock"] for n in range(8)})
    dock = world.id_of("dock", "Long dock")
    for n in range(6):
        await world.link.stored(f"d{n}.md")  # newer, and not extracted yet
    await world.link.stored("d6.md", deleted=True)
    pages = await world.pages(ADA, f"/v1/entities/{dock}/mentions", "mentions", page_size=1)
    assert [[m["document"]["path"] for m in page] for page in pages if page] == [["d7.md"]]
    newer, gone = (world.link.home.document(path).doc_id for path in ("d0.md", "d6.md"))
    assert await world.get(ADA, f"/v1/documents/{newer}/mentions") == {"mentions": [], "next_cursor": None}
    assert (await world.get(ADA, f"/v1/documents/{gone}/mentions", 404))["type"].endswith("not-found")


async def test_merge_and_unmerge_lead_both_ids_to_the_survivor_and_back(world: EntityService) -> None:
    await say(world, "firm", f1=["Northwind", "Zephyr Lines"], f2=["Zephyr Lines"])
    north, zephyr = world.id_of("firm", "Northwind"), world.id_of("firm", "Zephyr Lines")
    before = [await world.get(ADA, f"/v1/entities/{one}") for one in (north, zephyr)]
    answer = await world.post(
        CORA, f"/v1/entities/{zephyr}/merge", {"other_id": north, "reason": " renamed "}
    )
    event_id = answer.json()["event_id"]
    state = f"/v1/entities/commands/{event_id}"
    assert (answer.status_code, await world.get(ADA, state)) == (
        202,
        {"event_id": event_id, "state": "accepted"},
    )
    await world.carry_out()
    assert (await world.get(ADA, state))["state"] == "applied"
    merged = [await world.get(ADA, f"/v1/entities/{one}") for one in (north, zephyr)]
    assert merged[0] == merged[1]
    assert merged[0] == line(
        world, "firm", "Zephyr Lines", 2,
        aliases=[{"name_id": north, "name": "Northwind", "mentions": 1}],
    )  # fmt: skip
    assert [e["name"] for e in (await world.get(ADA, "/v1/entities", label="firm"))["entities"]] == [
        "Zephyr Lines"
    ]
    assert (await world.get(ADA, "/v1/entities", q="northwind", label="firm"))["entities"] == [
        line(world, "firm", "Zephyr Lines", 2, matched="Northwind")
    ]
    mentions = (await world.get(ADA, f"/v1/entities/{zephyr}/mentions"))["mentions"]
    assert {(m["surface"], m["document"]["path"]) for m in mentions} == {
        ("Northwind", "f1.md"), ("Zephyr Lines", "f1.md"), ("Zephyr Lines", "f2.md"),
    }  # fmt: skip
    [entry] = (await world.get(ADA, f"/v1/entities/{zephyr}/history"))["history"]
    assert entry == {
        "event_id": event_id, "kind": "merge", "names": ["zephyr lines", "northwind"], "name": None,
        "undoes": None, "by": "cora", "at": IsStr(), "reason": "renamed",
    }  # fmt: skip
    again = await world.post(CORA, f"/v1/entities/{zephyr}/merge", {"other_id": north})
    assert (again.status_code, again.json()["errors"][0]["field"]) == (422, "body.other_id")
    await world.command(CORA, f"{north}/unmerge", merge_event_id=event_id)
    assert [await world.get(ADA, f"/v1/entities/{one}") for one in (north, zephyr)] == before


async def test_an_alias_leaves_and_a_renamed_entity_is_found_by_what_notes_say(world: EntityService) -> None:
    await say(world, "unit", u1=["Settlement Service"], u2=["Settlement Servise"])
    whole = await world.get(ADA, f"/v1/entities/{world.id_of('unit', 'Settlement Servise')}")
    [alias] = whole["aliases"]
    await world.command(CORA, f"{whole['entity_id']}/rename", name="  The\tLedger ")
    assert (await world.get(ADA, f"/v1/entities/{alias['name_id']}"))["name"] == "The Ledger"
    for words in ("the ledger", whole["name"], alias["name"]):
        [first, *_] = (await world.get(ADA, "/v1/entities", q=words, label="unit"))["entities"]
        assert (first["entity_id"], first["name"]) == (whole["entity_id"], "The Ledger"), words
    await world.command(CORA, f"{whole['entity_id']}/unmerge", name_id=alias["name_id"])
    assert (await world.get(ADA, f"/v1/entities/{alias['name_id']}"))["entity_id"] == alias["name_id"]


async def test_a_blocked_entity_is_walked_no_more_until_it_is_unblocked(world: EntityService) -> None:
    await say(world, "noise", n1=["Thursday", "Harbour"])
    thursday = world.id_of("noise", "Thursday")
    doc_id = world.link.home.document("n1.md").doc_id

    async def seen() -> tuple[list[str], list[str], list[str], list[str]]:
        listed = await world.get(ADA, "/v1/entities", label="noise")
        named = await world.get(ADA, "/v1/entities", q="thursday", label="noise")
        blocked = await world.get(ADA, "/v1/entities", label="noise", blocked="true")
        mentions = await world.get(ADA, f"/v1/documents/{doc_id}/mentions")
        names = [[e["name"] for e in found["entities"]] for found in (listed, named, blocked)]
        return *(sorted(one) for one in names), sorted(m["entity"]["name"] for m in mentions["mentions"])  # type: ignore[return-value]

    both = ["Harbour", "Thursday"]
    assert await seen() == (both, ["Thursday"], [], both)
    await world.command(CORA, f"{thursday}/block", reason="a day")
    assert await seen() == (["Harbour"], [], ["Thursday"], ["Harbour"])
    assert (await world.get(ADA, f"/v1/entities/{thursday}"))["blocked"] is True
    assert len((await world.get(ADA, f"/v1/entities/{thursday}/mentions"))["mentions"]) == 1
    await world.command(CORA, f"{thursday}/unblock")
    assert await seen() == (both, ["Thursday"], [], both)


async def test_proposals_are_decided(world: EntityService) -> None:
    pairs = [
        ("Dike Protection Panel", "Dike Protections Panl"),
        ("Quay Inspection Board", "Quay Inspections Bord"),
    ]
    await say(world, "office", o1=[name for pair in pairs for name in pair])
    listed = (await world.get(ADA, "/v1/entities/proposals", label="office"))["proposals"]
    assert len(listed) == 2, listed
    pages = await world.pages(ADA, "/v1/entities/proposals", "proposals", label="office", page_size=1)
    assert list(chain(*pages)) == listed
    for decision, proposal in zip(("accept", "reject"), listed, strict=True):
        await world.command(CORA, f"proposals/{proposal['proposal_id']}/{decision}", reason="looked")
    entities = [
        [await world.get(ADA, f"/v1/entities/{p[side]['entity_id']}") for side in ("entity", "other")]
        for p in listed
    ]
    assert [len({one["entity_id"] for one in pair}) for pair in entities] == [1, 2]
    assert (await world.get(ADA, "/v1/entities/proposals", label="office"))["proposals"] == []
    gone = await world.post(CORA, f"/v1/entities/proposals/{listed[0]['proposal_id']}/accept", {})
    assert gone.status_code == 404


async def test_a_command_about_names_that_vanish_meanwhile_is_kept_for_when_they_return(
    world: EntityService,
) -> None:
    await say(world, "ghost", g1=["Pale Rider", "Grey Lady"])
    pale, grey = world.id_of("ghost", "Pale Rider"), world.id_of("ghost", "Grey Lady")
    answer = await world.post(CORA, f"/v1/entities/{pale}/merge", {"other_id": grey})
    await world.link.feed(await world.link.gone("g1.md", "ghost"))
    for method in ("", "/mentions", "/relations", "/history"):
        await world.get(ADA, f"/v1/entities/{pale}{method}", 404)
    refused = await world.post(CORA, f"/v1/entities/{pale}/merge", {"other_id": grey})
    assert refused.status_code == 404
    await world.carry_out()
    event_id = answer.json()["event_id"]
    assert (await world.get(ADA, f"/v1/entities/commands/{event_id}"))["state"] == "applied"
    await world.link.feed(await world.link.said("g2.md", {"ghost": ["Pale Rider", "Grey Lady"]}))
    ids = {(await world.get(ADA, f"/v1/entities/{one}"))["entity_id"] for one in (pale, grey)}
    assert len(ids) == 1


async def test_relations_are_walked_with_their_quotes(world: EntityService) -> None:
    await say(world, "party", r1=["Alice Novak", "Crane Crew"], r2=["Crane Crew", "Billing Desk"])
    home = world.link.home

    async def relation(path: str, subject: str, kind: str, obj: str, **more: Any) -> None:
        doc_id = home.document(path).doc_id
        [row] = [r for r in (await world.link.rows(Index.DOCUMENTS)).values() if r["doc_id"] == doc_id]
        ids = {side: world.id_of("party", name) for side, name in (("subject", subject), ("object", obj))}
        values: dict[str, Any] = {
            "doc_id": doc_id, "path": path, "namespace": "shared", "subject": subject, "subject_label": "party",
            "subject_id": ids["subject"], "relation_type": kind, "object": obj, "object_label": "party",
            "object_id": ids["object"], "quote": f"{subject} {kind} {obj}.", "start": 0, "end": 9,
            "version": row["version"],
        }  # fmt: skip
        row_id = relation_id(doc_id, ids["subject"], kind, ids["object"])  # type: ignore[arg-type]
        await world.write_rows(
            Index.RELATIONS, {row_id: RelationRow(**owner_fields(home), **(values | more))}
        )

    await relation("r1.md", "Alice Novak", "leads", "Crane Crew")
    await relation("r2.md", "Crane Crew", "owns", "Billing Desk")
    await relation("r2.md", "Crane Crew", "feeds", "Nobody Named")
    await relation("r2.md", "Crane Crew", "left", "Billing Desk", version=1)
    crew = world.id_of("party", "Crane Crew")

    async def walked() -> list[tuple[str, str, str, bool, str]]:
        pages = await world.pages(ADA, f"/v1/entities/{crew}/relations", "relations", page_size=1)
        return [
            (r["subject"]["name"], r["relation_type"], r["object"]["name"],
             r["object"]["entity_id"] is not None, r["document"]["path"])
            for page in pages
            for r in page
        ]  # fmt: skip

    owns = ("Crane Crew", "owns", "Billing Desk", True, "r2.md")
    feeds = ("Crane Crew", "feeds", "Nobody Named", False, "r2.md")
    leads = ("Alice Novak", "leads", "Crane Crew", True, "r1.md")
    assert await walked() == [feeds, leads, owns]
    desk = world.id_of("party", "Billing Desk")
    [one] = (await world.get(ADA, f"/v1/entities/{desk}/relations"))["relations"]
    assert (one["quote"], one["subject"]) == (
        "Crane Crew owns Billing Desk.",
        {"entity_id": crew, "name": "Crane Crew", "label": "party"},
    )
    await world.command(CORA, f"{desk}/block")
    assert await walked() == [feeds, leads]


COMMANDS = ("merge", "unmerge", "rename", "block", "unblock")


async def test_without_a_curators_role_nothing_is_changed_or_told(world: EntityService) -> None:
    await say(world, "lock", l1=["Long Lock"])
    known = world.id_of("lock", "Long Lock")
    answers = []
    for entity_id in (known, UNKNOWN):
        bodies: dict[str, Any] = {"merge": {"other_id": known}, "rename": {"name": "x"}}
        for command in COMMANDS:
            path = f"/v1/entities/{entity_id}/{command}"
            answers.append(await world.post(ADA, path, bodies.get(command, {})))
        answers += [
            await world.post(ADA, f"/v1/entities/proposals/{entity_id}/{decision}", {})
            for decision in ("accept", "reject")
        ]
    answers += [
        await world.put(ADA, f"/v1/namespaces/{owner}/labels", {"labels": []})
        for owner in ("shared", "team:ops", "nonsense")
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert len({json.dumps({**a.json(), "request_id": ""}) for a in answers}) == 1
    assert await world.rig.arrived(world.rig.config.topics.mentions) == []


@pytest.mark.parametrize("suffix", ["", "/mentions", "/relations", "/history"])
async def test_an_id_of_nothing_is_404_whatever_it_looks_like(world: EntityService, suffix: str) -> None:
    bodies = set()
    for entity_id in (UNKNOWN, "x", "a" * 3_000, "%00", UNKNOWN.replace("0", "A"), "한국"):
        answer = await world.service.get(ADA, f"/v1/entities/{entity_id}{suffix}", **{"x-request-id": "one"})
        assert answer.status_code == 404, entity_id
        bodies.add(answer.content)
    assert len(bodies) == 1


REFUSED: list[tuple[str, str, Any, str]] = [
    ("no other", "merge", {}, "body.other_id"),
    ("other of another type", "merge", {"other_id": 7}, "body.other_id"),
    ("itself", "merge", {"other_id": "SELF"}, "body.other_id"),
    ("of another label", "merge", {"other_id": "OTHER_LABEL"}, "body.other_id"),
    ("unknown field", "merge", {"other_id": "SELF", "force": True}, "body.force"),
    ("neither", "unmerge", {}, "body"),
    ("both", "unmerge", {"merge_event_id": "x", "name_id": "SELF"}, "body"),
    ("no merge", "unmerge", {"merge_event_id": "nothing"}, "body.merge_event_id"),
    ("NUL", "unmerge", {"merge_event_id": "a\u0000"}, "body.merge_event_id"),
    ("its own name", "unmerge", {"name_id": "SELF"}, "body.name_id"),
    ("a stranger's name", "unmerge", {"name_id": "OTHER_LABEL"}, "body.name_id"),
    ("no id", "unmerge", {"name_id": "x"}, "body.name_id"),
    ("no name", "rename", {}, "body.name"),
    ("blank name", "rename", {"name": " \u00a0 "}, "body.name"),
    ("escape in a name", "rename", {"name": "a\u001b[2J"}, "body.name"),
    ("surrogate in a name", "rename", {"name": "a\ud800"}, "body.name"),
    ("long name", "rename", {"name": "x" * 201}, "body.name"),
    ("long reason", "block", {"reason": "x" * 501}, "body.reason"),
    ("control in a reason", "block", {"reason": "a\u0007"}, "body.reason"),
    ("reason of another type", "unblock", {"reason": ["x"]}, "body.reason"),
]


@pytest.mark.parametrize(
    ("command", "body", "where"), [pytest.param(c, b, f, id=n) for n, c, b, f in REFUSED]
)
async def test_a_wrong_command_is_refused_by_its_field(
    world: EntityService, command: str, body: Any, where: str
) -> None:
    await say(world, "gate", x1=["Sea Gate"])
    await say(world, "door", x2=["Sea Gate"])
    ids = {"SELF": world.id_of("gate", "Sea Gate"), "OTHER_LABEL": world.id_of("door", "Sea Gate")}
    sent = json.dumps(body)
    for name, one in ids.items():
        sent = sent.replace(name, one)
    answer = await world.service.http.post(
        f"/v1/entities/{ids['SELF']}/{command}",
        content=sent,
        headers={**bearer(CORA), "content-type": "application/json"},
    )
    assert (answer.status_code, [e["field"] for e in answer.json()["errors"]]) == (422, [where])


@pytest.mark.parametrize(
    "params", [{"q": ""}, {"q": " \t"}, {"q": "a\u0000"}, {"q": "x" * 201}, {"page_size": 201}]
)
async def test_a_wrong_question_is_refused(world: EntityService, params: dict[str, Any]) -> None:
    problem = await world.get(ADA, "/v1/entities", 422, **params)
    assert [error["field"] for error in problem["errors"]] == [f"query.{next(iter(params))}"]


async def test_a_large_body_and_another_media_type_are_refused(world: EntityService) -> None:
    large = await world.post(CORA, f"/v1/entities/{UNKNOWN}/block", {"reason": "x" * BODY_MAX_BYTES})
    text = await world.service.http.post(
        f"/v1/entities/{UNKNOWN}/block", content=b"{}", headers={**bearer(CORA), "content-type": "text/plain"}
    )
    labels = await world.put(CORA, "/v1/namespaces/shared/labels", {"labels": ["x" * BODY_MAX_BYTES]})
    assert [answer.status_code for answer in (large, text, labels)] == [413, 415, 413]


async def test_with_the_broker_away_nothing_is_accepted(
    world: EntityService, stack: Stack, tmp_path: Path
) -> None:
    await say(world, "quay", q1=["East Quay", "West Dock"])
    east, west = world.id_of("quay", "East Quay"), world.id_of("quay", "West Dock")
    prefix = world.rig.config.prefix
    async with running_service(
        stack.opensearch_url, tmp_path, principals=[ADA, CORA], prefix=prefix, keep=True
    ) as service:
        merge = await service.http.post(
            f"/v1/entities/{east}/merge", json={"other_id": west}, headers=bearer(CORA)
        )
        labels = {"labels": [{"name": "ship"}]}
        put = await service.http.put("/v1/namespaces/team:ops/labels", json=labels, headers=bearer(CORA))
        assert (await service.get(ADA, f"/v1/entities/{east}")).status_code == 200
    for answer in (merge, put):
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:hopline:problem:broker-unavailable")
        assert "nothing was accepted" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) >= 1
        assert NO_BROKER not in answer.text
    assert (await world.get(CORA, "/v1/namespaces/team:ops/labels"))["version"] == 0


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "body.labels"),
        ({"labels": {}}, "body.labels"),
        ({"labels": [{"name": "ship", "threshold": "high"}]}, "body.labels.0.threshold"),
        ({"labels": [{"name": "a"}, {"name": "ship", "threshold": 0.01}]}, "body.labels.1.threshold"),
        ({"labels": [{"name": "a"}, {"name": "ship", "prompt": "<<x>>"}]}, "body.labels.1.prompt"),
        ({"labels": [{"prompt": "ship"}]}, "body.labels.0.name"),
        ({"labels": [{"name": "ship", "colour": 1}]}, "body.labels.0.colour"),
        ({"labels": [{"name": "two words"}]}, "body.labels"),
        ({"labels": [{"name": "ship"}, {"name": "SHIP"}]}, "body.labels"),
        ({"labels": [{"name": f"l{n}"} for n in range(41)]}, "body.labels"),
        ({"labels": [], "patterns": [{"label": "hull", "pattern": "("}]}, "body.patterns.0.pattern"),
        ({"labels": [], "patterns": [{"label": "hull", "pattern": "a*"}]}, "body.patterns.0.pattern"),
        ({"labels": [], "patterns": [{"label": "hull", "pattern": ""}]}, "body.patterns.0.pattern"),
        ({"labels": [], "version": "3"}, "body.version"),
    ],
)  # fmt: skip
async def test_wrong_labels_are_refused_by_their_field(
    world: EntityService, body: dict[str, Any], where: str
) -> None:
    answer = await world.put(CORA, "/v1/namespaces/team:ops/labels", body)
    assert (answer.status_code, [e["field"] for e in answer.json()["errors"]]) == (422, [where])
    assert all(error["message"] for error in answer.json()["errors"])


async def test_labels_are_changed_once_and_extracted_with_progress(world: EntityService) -> None:
    route = "/v1/namespaces/shared/labels"
    text = "# Berth\n\nThe vessel HULL-77 lay at the quay. Alice Novak leads the harbour team.\n"
    await world.rig.feed(world.rig.saved("berth.md", text))
    await world.rig.extract_records(await world.rig.announced())
    await world.carry_out()
    before = await world.get(ADA, route)
    wanted = {
        "labels": [{"name": "person"}],
        "patterns": [{"label": "hull", "pattern": r" ?HULL-\d+"}],
        "version": before["version"],
    }
    stored = await world.put(CORA, route, wanted)
    assert stored.status_code == 200, stored.text
    after = stored.json()
    assert (after["version"], after["updated_by"], after["patterns"]) == (
        before["version"] + 1, "cora", wanted["patterns"],
    )  # fmt: skip
    assert after["problem"] is None
    assert "team" in after["retired"]
    assert after["progress"]["done"] < after["progress"]["total"]
    again = await world.put(CORA, route, wanted)
    assert (again.status_code, again.json()["version"]) == (200, after["version"])
    other = await world.put(CORA, route, wanted | {"patterns": []})
    assert (other.status_code, other.json()["type"]) == (409, "urn:hopline:problem:labels-conflict")
    await world.rig.extract_asked()
    await world.carry_out()
    await world.rig.gate.refresh()
    progress = (await world.get(ADA, route))["progress"]
    assert progress["done"] >= 1
    doc_id = world.rig.home.document("berth.md").doc_id
    mentions = (await world.get(ADA, f"/v1/documents/{doc_id}/mentions"))["mentions"]
    assert ("hull", "HULL-77", "pattern") in {
        (m["entity"]["label"], m["surface"].strip(), m["source"]) for m in mentions
    }
    assert "team" not in {m["entity"]["label"] for m in mentions}


@pytest.mark.parametrize(
    "owner", ["team:ops", "agent:cora", "agent:bob", "team:", "nowhere", "shared:x", "%00"]
)
async def test_a_namespace_of_others_does_not_exist(world: EntityService, owner: str) -> None:
    problem = await world.get(ADA, f"/v1/namespaces/{owner}/labels", 404)
    assert problem["detail"] == "No such namespace, or not one that this key may see."
    mine = await world.get(
        CORA, f"/v1/namespaces/{'team:ops' if owner == 'team:ops' else 'agent:cora'}/labels"
    )
    assert mine == IsPartialDict(version=0, retired=[])


async def test_c14_forgetting_one_of_two_documents_that_share_an_entity(world: EntityService) -> None:
    orla, wheel = "Orla Mint", "Tidewheel"
    await say(world, "c14", c14a=[orla, wheel], c14b=[wheel])
    ids = {name: world.id_of("c14", name) for name in (orla, wheel)}
    home = world.link.home
    doc_id = home.document("c14a.md").doc_id
    [document] = [r for r in (await world.link.rows(Index.DOCUMENTS)).values() if r["doc_id"] == doc_id]
    row = RelationRow(
        **owner_fields(home), doc_id=doc_id, path="c14a.md", namespace="shared", subject=orla,
        subject_label="c14", subject_id=ids[orla], relation_type="repaired", object=wheel,
        object_label="c14", object_id=ids[wheel], quote="Orla Mint repaired the Tidewheel.", start=0, end=33,
        version=document["version"],
    )  # fmt: skip
    await world.write_rows(Index.RELATIONS, {f"{ids[orla][:-1]}r": row})
    assert len((await world.get(ADA, f"/v1/entities/{ids[wheel]}/relations"))["relations"]) == 1

    await world.link.feed(await world.link.gone("c14a.md", "c14"))
    for suffix in ("", "/mentions", "/relations", "/history"):
        await world.get(ADA, f"/v1/entities/{ids[orla]}{suffix}", 404)
    await world.get(ADA, f"/v1/documents/{doc_id}/mentions", 404)
    assert (await world.get(ADA, "/v1/entities", q="orla mint", label="c14"))["entities"] == []
    kept = await world.get(ADA, f"/v1/entities/{ids[wheel]}")
    mentions = await world.get(ADA, f"/v1/entities/{ids[wheel]}/mentions")
    relations = await world.get(ADA, f"/v1/entities/{ids[wheel]}/relations")
    assert (kept["mention_count"], relations["relations"]) == (1, [])
    assert [mention["document"]["path"] for mention in mentions["mentions"]] == ["c14b.md"]
    assert "c14a" not in json.dumps([kept, mentions, relations])

    await world.link.feed(await world.link.said("c14c.md", {"c14": [wheel]}))
    assert (await world.get(ADA, f"/v1/entities/{ids[wheel]}"))["mention_count"] == 2


async def test_c16_korean_names_come_without_their_particles(world: EntityService) -> None:
    root = world.rig.config.roots[1]
    filler = [f"Filler line {n} of the log.\n" for n in range(80)]
    said = "시험선 가람호는 부산에서 출항했다."
    text = "".join([*filler[:40], f"\n{said}\n\n", *filler[40:]])
    await world.rig.feed(world.rig.saved("c16.md", text, root=root))
    await world.rig.extract_records(await world.rig.announced())
    await world.carry_out()
    doc_id = root.namespace.document("c16.md").doc_id
    mentions = (await world.get(CORA, f"/v1/documents/{doc_id}/mentions"))["mentions"]
    korean = [mention for mention in mentions if mention["sentence"] == said]
    assert {mention["surface"] for mention in korean} <= {"부산", "가람호", "시험선", "시험선 가람호", "출항"}
    assert all(text[mention["start"] : mention["end"]] == mention["surface"] for mention in korean)


async def test_every_status_of_these_routes_is_in_the_description(world: EntityService) -> None:
    await world.get(ADA, f"/v1/entities/{UNKNOWN}", 404)
    await world.put(ADA, "/v1/namespaces/shared/labels", {"labels": []})
    document = openapi_document()
    text = (await world.service.http.get("/metrics")).text
    seen = {
        (sample.labels["route"], sample.labels["status"])
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "hopline_http_request_seconds_count" and sample.labels["route"] in document["paths"]
    }
    assert seen >= {("/v1/entities/{entity_id}", "404"), ("/v1/namespaces/{namespace}/labels", "403")}
    for route, status in seen:
        described = {code for method in document["paths"][route].values() for code in method["responses"]}
        assert status in described, (route, status)
