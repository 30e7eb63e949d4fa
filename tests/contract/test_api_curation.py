"""Entities curated over HTTP, and labels set: commands are carried out by the link agent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from dirty_equals import IsPartialDict, IsStr
from prometheus_client.parser import text_string_to_metric_families

from search_api.app import openapi_document
from tests.api import NO_BROKER, bearer, running_service
from tests.conftest import Stack
from tests.entity_api import ADA, BODY_MAX_BYTES, CORA, UNKNOWN, EntityService, shared_and_team

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EntityService]:
    """Each test takes a label of its own."""
    async with shared_and_team(stack, tmp_path_factory.mktemp("curation")) as opened:
        yield opened


async def test_merge_and_unmerge_lead_both_ids_to_the_survivor_and_back(world: EntityService) -> None:
    await world.say("firm", f1=["Northwind", "Zephyr Lines"], f2=["Zephyr Lines"])
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
    assert merged[0] == world.line(
        "firm", "Zephyr Lines", 2,
        aliases=[{"name_id": north, "name": "Northwind", "mentions": 1}],
    )  # fmt: skip
    assert [e["name"] for e in (await world.get(ADA, "/v1/entities", label="firm"))["entities"]] == [
        "Zephyr Lines"
    ]
    assert (await world.get(ADA, "/v1/entities", q="northwind", label="firm"))["entities"] == [
        world.line("firm", "Zephyr Lines", 2, matched="Northwind")
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
    await world.say("unit", u1=["Settlement Service"], u2=["Settlement Servise"])
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
    await world.say("noise", n1=["Thursday", "Harbour"])
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
    await world.say("office", o1=[name for pair in pairs for name in pair])
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
    await world.say("ghost", g1=["Pale Rider", "Grey Lady"])
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


COMMANDS = ("merge", "unmerge", "rename", "block", "unblock")


async def test_without_a_curators_role_nothing_is_changed_or_told(world: EntityService) -> None:
    await world.say("lock", l1=["Long Lock"])
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
    ("name that can't be seen", "rename", {"name": "\u200b\u202e\ufeff"}, "body.name"),
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
    await world.say("gate", x1=["Sea Gate"])
    await world.say("door", x2=["Sea Gate"])
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
    await world.say("quay", q1=["East Quay", "West Dock"])
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
