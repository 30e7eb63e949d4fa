"""Entities over HTTP: found, and walked page by page. Rows are those that the link agent writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import chain
from typing import Any

import pytest
import pytest_asyncio

from indexers.domain.identity import EntityNamespace, relation_id
from indexers.opensearch.rows import EntityRow, Index, MentionRow, RelationRow, owner_fields
from search_api.cursor import ListPosition, encode_cursor
from search_api.paging import RowList, SortKey
from tests.conftest import Stack
from tests.entity_api import ADA, CORA, UNKNOWN, EntityService, shared_and_team

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EntityService]:
    """Each test takes a label of its own."""
    async with shared_and_team(stack, tmp_path_factory.mktemp("entities")) as opened:
        yield opened


async def test_an_entity_is_found_and_walked(world: EntityService) -> None:
    await world.say("crew", a=["Payments Team", "Ferry crew"], b=["Payments Team"])
    team = world.id_of("crew", "Payments Team")
    listed = await world.get(ADA, "/v1/entities", label="crew")
    assert listed == {
        "entities": [
            world.line("crew", "Payments Team", 2, matched=None),
            world.line("crew", "Ferry crew", 1, matched=None),
        ],
        "next_cursor": None,
    }
    assert await world.get(ADA, f"/v1/entities/{team}") == world.line("crew", "Payments Team", 2, aliases=[])
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
    await world.say("tug", **{f"t{n}": names for n in range(5)})
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
    await world.say("buoy", b1=["Buoy one", "Buoy two"], b2=["Buoy one"])
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
    await world.say("odd", odd1=[*names, "Other thing"], odd2=names)
    [found, *_] = (await world.get(ADA, "/v1/entities", q=name[:200], label="odd"))["entities"]
    assert found == world.line("odd", name, 2, matched=None)
    assert (await world.get(ADA, f"/v1/entities/{found['entity_id']}"))["name"] == name


async def test_the_very_name_comes_before_all_that_hold_its_words(world: EntityService) -> None:
    await world.say(
        "pier", p1=["North pier", *(f"North pier north pier {chr(97 + n) * 12}" for n in range(20))]
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
    await world.say("dock", **{f"d{n}": ["Long dock"] for n in range(8)})
    dock = world.id_of("dock", "Long dock")
    for n in range(6):
        await world.link.stored(f"d{n}.md")  # newer, and not extracted yet
    await world.link.stored("d6.md", deleted=True)
    pages = await world.pages(ADA, f"/v1/entities/{dock}/mentions", "mentions", page_size=1)
    assert [[m["document"]["path"] for m in page] for page in pages if page] == [["d7.md"]]
    newer, gone = (world.link.home.document(path).doc_id for path in ("d0.md", "d6.md"))
    assert await world.get(ADA, f"/v1/documents/{newer}/mentions") == {"mentions": [], "next_cursor": None}
    assert (await world.get(ADA, f"/v1/documents/{gone}/mentions", 404))["type"].endswith("not-found")


async def test_relations_are_walked_with_their_quotes(world: EntityService) -> None:
    await world.say("party", r1=["Alice Novak", "Crane Crew"], r2=["Crane Crew", "Billing Desk"])
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


@pytest.mark.parametrize("suffix", ["", "/mentions", "/relations", "/history"])
async def test_an_id_of_nothing_is_404_whatever_it_looks_like(world: EntityService, suffix: str) -> None:
    bodies = set()
    for entity_id in (UNKNOWN, "x", "a" * 3_000, "%00", UNKNOWN.replace("0", "A"), "한국"):
        answer = await world.service.get(ADA, f"/v1/entities/{entity_id}{suffix}", **{"x-request-id": "one"})
        assert answer.status_code == 404, entity_id
        bodies.add(answer.content)
    assert len(bodies) == 1


@pytest.mark.parametrize(
    "params", [{"q": ""}, {"q": " \t"}, {"q": "a\u0000"}, {"q": "x" * 201}, {"page_size": 201}]
)
async def test_a_wrong_question_is_refused(world: EntityService, params: dict[str, Any]) -> None:
    problem = await world.get(ADA, "/v1/entities", 422, **params)
    assert [error["field"] for error in problem["errors"]] == [f"query.{next(iter(params))}"]


async def test_c14_forgetting_one_of_two_documents_that_share_an_entity(world: EntityService) -> None:
    orla, wheel = "Orla Mint", "Tidewheel"
    await world.say("c14", c14a=[orla, wheel], c14b=[wheel])
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
