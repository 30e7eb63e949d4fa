"""Erasures, from the request to the receipt: every store is looked through, and replays bring nothing back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from indexers.control import change_labels, read_labels
from indexers.domain.entities.labels import EntityLabel, NamespaceLabels, PatternRule
from indexers.domain.identity import INSTALLATION, AgentId, EntityNamespace, Principal, TenantId
from indexers.erasures import Erasure, read_erasure, restore_fences
from indexers.open_erasures import note_closed, note_open, open_notes
from indexers.opensearch.rows import REBUILT, Index
from indexers.settings import VaultRoot
from search_api.erasure import service as erasure_service
from search_api.settings import ApiSettings
from streams.agents.ingest.plan import utc_now
from streams.batch import Record
from streams.event_fields import new_event_fields
from streams.events import RelationWritten, encode
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.api import Service, bearer, principal, running_service
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ADA, BOB = principal("acme"), principal("acme", "bob")
ADMIN = Principal(tenant_id=ADA.tenant_id, agent_id=AgentId("dan"), roles=("admin",))
READER = Principal(tenant_id=ADA.tenant_id, agent_id=AgentId("eve"), roles=("reader",))
OTHERS = principal("bolt")
LEAVER = Principal(tenant_id=TenantId("leaver"), agent_id=AgentId("ada"), roles=("admin",))
OPERATOR = Principal(tenant_id=INSTALLATION, agent_id=AgentId("root"), roles=("admin",))
ORLA = "---\nsession: s1\n---\nOrla Mint repaired the Tidewheel. See [[d2]].\n"
WHEEL = "The Tidewheel turns at noon.\n"


class World:
    """The agents, driven by hand, and the service over the same indices."""

    def __init__(self, rig: Rig, service: Service) -> None:
        self.rig = rig
        self.http = service.http
        self.service = service
        self.fed: list[Record] = []

    async def carry_out(self, *records: Record) -> None:
        self.fed += records
        await self.rig.feed(*records)
        words = await self.rig.announced()
        await self.rig.embed_records(words)
        await self.rig.extract_records(words)
        await self.rig.link_all()

    async def ask(self, who: Principal, method: str, path: str, **more: Any) -> httpx2.Response:
        return await self.http.request(method, path, headers=bearer(who), timeout=20, **more)

    async def erase(self, who: Principal, **body: Any) -> dict[str, Any]:
        return await self.worked("POST", "/v1/erasures", who, json=body)

    async def worked(self, method: str, path: str, who: Principal, **more: Any) -> dict[str, Any]:
        """The answer to a request while the agents work; of an erasure, once it is complete, however slow they are."""
        answer = await self._answered(method, path, who, **more)
        while answer.get("state") == "pending":
            followed = ("POST", path) if path.startswith("/v1/admin") else ("GET", _erasure(answer))
            answer = await self._answered(*followed, who)
        return answer

    async def _answered(self, method: str, path: str, who: Principal, **more: Any) -> dict[str, Any]:
        call = asyncio.create_task(self.ask(who, method, path, **more))
        while not call.done():
            await self.work()
            await asyncio.sleep(0.05)
        answer = await call
        assert answer.status_code in (200, 202), answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def work(self) -> int:
        """What was sent to ingest since the last call."""
        records = await self.rig.arrived(self.rig.config.topics.memory_writes)
        if records:
            await self.carry_out(*records)
        return len(records)

    async def shown(self) -> tuple[float, float]:
        """What /metrics says after a look: erasures under way, and seconds since the oldest was asked for."""
        await self.service.services.open_erasures.look()
        value = self.service.metrics.registry.get_sample_value
        pending, oldest = value("hopline_erasures_pending"), value("hopline_erasure_oldest_pending_seconds")
        assert pending is not None
        assert oldest is not None
        return pending, oldest

    async def where(self, *words: str, root: VaultRoot | None = None) -> list[str]:
        """Indices that still say one of the words in any row, and files of the vault."""
        await self.rig.gate.refresh()
        found = []
        for index in Index:
            found_rows = await self.rig.rows(index, None if root is None else root.tenant)
            rows = json.dumps(found_rows, ensure_ascii=False).lower()
            found += [index.value for word in words if word.lower() in rows]
        files = [p for p in (root or self.rig.root).path.rglob("*") if p.is_file()]
        texts = [(p, p.read_bytes().decode().lower() + p.as_posix().lower()) for p in files]
        return found + [p.name for p, text in texts for word in words if word.lower() in text]

    def id_of(self, path: str) -> str:
        return self.rig.home.document(path).doc_id


def _erasure(answer: dict[str, Any]) -> str:
    return f"/v1/erasures/{answer['erasure_id']}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    tmp_path = tmp_path_factory.mktemp("erasure")
    config = agent_config(
        stack,
        f"t{os.urandom(6).hex()}",
        [vault_root(tmp_path), vault_root(tmp_path, "leaving", tenant="leaver")],
        memories=tmp_path / "memories",
    )
    async with contextlib.AsyncExitStack() as held:
        rig = await held.enter_async_context(opened_rig(config))
        service = await held.enter_async_context(
            running_service(
                stack.opensearch_url,
                tmp_path,
                vaults=config.roots,
                principals=[ADA, BOB, OTHERS, ADMIN, READER, LEAVER, OPERATOR],
                memories=tmp_path / "memories",
                api=ApiSettings(key_cache_seconds=0.01),
                prefix=config.prefix,
                kafka_servers=stack.kafka_servers,
                keep=True,
            )
        )
        await name_crew(rig)
        yield World(rig, service)


@pytest_asyncio.fixture(loop_scope="module")
async def world(shared: World) -> AsyncIterator[World]:
    """What a test leaves is erased before the next one begins."""
    shared.fed.clear()
    yield shared
    await shared.erase(ADMIN, agent="ada")


async def name_crew(rig: Rig) -> None:
    """Two names that are found for certain."""
    owner = EntityNamespace.of(rig.home)
    [before] = (await read_labels(rig.gate, [owner])).values()
    rules = (PatternRule(label="crew", pattern="[A-Z]rla Mint|Tidewheel"),)
    wanted = NamespaceLabels(labels=(EntityLabel(name="person"),), patterns=rules)
    await change_labels(rig.gate, before, wanted, settled=True, by="ada", at="2026-11-30T00:00:00Z")


def relation(rig: Rig, path: str) -> Record:
    event = RelationWritten(
        **new_event_fields(rig.home),
        version=rig.clock.next(),
        path=path,
        kind="related",
        subject="Orla Mint",
        subject_label="crew",
        relation_type="repaired",
        object="Tidewheel",
        object_label="crew",
        quote="Orla Mint repaired the Tidewheel.",
        by="ada",
    )
    return rig.record(encode(event), topic=rig.config.topics.memory_writes)


async def counts_of(world: World, name: str) -> list[int]:
    answer = await world.ask(ADA, "GET", f"/v1/entities?q={name}&label=crew")
    return [e["mention_count"] for e in answer.json()["entities"] if e["name"] == name]


async def test_c14_one_of_two_documents_that_share_an_entity_is_erased(world: World) -> None:
    rig = world.rig
    await world.carry_out(rig.saved("d1-orla.md", ORLA), rig.saved("d2.md", WHEEL))
    await world.carry_out(relation(rig, "d1-orla.md"))
    assert await counts_of(world, "Tidewheel") == [2]
    erased = await world.erase(ADA, doc_ids=[world.id_of("d1-orla.md")])
    receipt = erased["receipt"]
    removed = {name: count for name, count in receipt["removed"].items() if count}
    assert removed.keys() == {
        "files", "names", "documents", "chunks", "links", "mentions", "relations", "extractions", "gate",
    }  # fmt: skip
    assert (removed["files"], removed["mentions"] >= 2, removed["relations"]) == (1, True, 1)
    assert set(receipt["remaining"].values()) == {0}
    assert await world.where("Orla", "d1-orla") == []
    assert await counts_of(world, "Tidewheel") == [1]
    assert await counts_of(world, "Orla Mint") == []
    await world.carry_out(rig.saved("d3.md", "Tidewheel again.\n"))
    assert await counts_of(world, "Tidewheel") == [2]
    again = (await world.erase(ADA, doc_ids=[world.id_of("d1-orla.md")]))["receipt"]
    assert set(again["removed"].values()) == {0}
    genuine = await world.ask(ADA, "POST", "/v1/erasures/check", json=receipt)
    forged = await world.ask(ADA, "POST", "/v1/erasures/check", json=receipt | {"doc_ids": []})
    assert (genuine.json(), forged.json()) == ({"genuine": True}, {"genuine": False})
    assert (await rig.verified()) == {}


async def test_replaying_every_topic_brings_nothing_back(world: World) -> None:
    rig = world.rig
    first = rig.saved("d1-orla.md", ORLA)
    await world.carry_out(first, rig.saved("d2.md", WHEEL))
    edited = rig.saved("d1-orla.md", ORLA + "Orla came twice.\n")
    await world.carry_out(edited)
    words = list(world.fed)
    await world.erase(ADA, doc_ids=[world.id_of("d1-orla.md")])
    # The watcher's echo of the file's end, newer than the erasure: what is left stays without a name.
    await world.carry_out(rig.change("d1-orla.md", kind="deleted"))
    assert await world.where("Orla", "d1-orla") == []
    rig.inbox.clear()
    await rig.consumer.seek_to_beginning()
    told = {
        topic: await rig.arrived(topic) for topic in (rig.config.topics.documents, rig.config.topics.mentions)
    }
    for record in words:
        await rig.feed(record)
    await rig.embed_records(told[rig.config.topics.documents])
    await rig.extract_records(told[rig.config.topics.documents])
    await rig.link_records(told[rig.config.topics.mentions])
    await rig.link_all()
    assert await world.where("Orla", "d1-orla") == []
    # A rebuild drops the fences with all else, and has to bring them back.
    await rig.gate.drop_indices(REBUILT)
    model = rig.embed.model.embedder
    await rig.gate.ensure_indices(dimension=model.dimension, pair_id=model.pair_id)
    assert await restore_fences(rig.gate, ADA.tenant_id, days=45, now=utc_now()) >= 1
    await rig.feed(*words)
    assert await world.where("Orla", "d1-orla") == []


async def test_a_forgotten_document_is_erased_with_its_copies_and_its_former_names(world: World) -> None:
    rig = world.rig
    await world.carry_out(rig.saved("orla-first.md", ORLA))
    await world.carry_out(*rig.moved("orla-first.md", "orla-then.md", ORLA))
    await asyncio.to_thread(rig.ingest.vaults.files.get(rig.home).set_aside, "orla-then.md")  # type: ignore[union-attr]
    await world.carry_out(rig.change("orla-then.md", kind="deleted"))
    assert await world.where("orla-then") != []
    erased = await world.erase(ADA, doc_ids=[world.id_of("orla-then.md")])
    assert await world.where("Orla") == []
    assert erased["receipt"]["removed"]["files"] == 1


async def test_by_session_agent_and_subject(world: World) -> None:
    rig = world.rig
    texts = {
        "a.md": ORLA,
        "b.md": "---\nsession: s1\n---\nNobody.\n",
        "c.md": "Orla Mint sails.\n",
        "d.md": WHEEL,
    }
    await world.carry_out(*(rig.saved(path, text) for path, text in texts.items()))
    by_session = await world.erase(ADA, session="s1")
    assert sorted(by_session["receipt"]["doc_ids"]) == sorted(map(world.id_of, ("a.md", "b.md")))
    by_subject = await world.erase(ADA, subject="orla mint")
    assert by_subject["receipt"]["doc_ids"] == [world.id_of("c.md")]
    nobody = await world.erase(BOB, agent="ada")
    assert (nobody["documents"], nobody["receipt"]["doc_ids"]) == (0, [])
    assert [row["path"] for row in (await rig.documents()).values()] == ["d.md"]


async def test_who_may_erase_what(world: World) -> None:
    rig = world.rig
    await world.carry_out(rig.saved("d1-orla.md", ORLA))
    doc_id, nobodys = world.id_of("d1-orla.md"), "deadbeef-0000-5000-8000-000000000000"
    refusals = {
        await _refused(world, who, one) for who in (OTHERS, ADA) for one in ((doc_id, nobodys)[who is ADA],)
    }
    assert refusals == {(422, "no such document, or not one that this key may erase")}
    assert (await _refused(world, BOB, doc_id))[0] == 422
    both = await world.ask(ADA, "POST", "/v1/erasures", json={"agent": "ada", "session": "s1"})
    assert both.json()["errors"][0]["message"] == "give one of doc_ids, agent, session and subject"
    foreign = (await world.erase(ADA, doc_ids=[doc_id]))["erasure_id"]
    assert (await world.ask(ADA, "GET", f"/v1/erasures/{foreign}")).json()["state"] == "complete"
    for who in (OTHERS, BOB):
        assert (await world.ask(who, "GET", f"/v1/erasures/{foreign}")).status_code == 404


async def _refused(world: World, who: Principal, doc_id: str) -> tuple[int, str]:
    answer = await world.ask(who, "POST", "/v1/erasures", json={"doc_ids": [doc_id]})
    return answer.status_code, answer.json()["errors"][0]["message"]


async def test_a_memory_that_is_only_accepted_is_erased_by_its_route(world: World) -> None:
    body = {"content": "Orla Mint owes nobody.", "title": "Orla's debts", "idempotency_key": "orla"}
    accepted = (await world.ask(ADA, "POST", "/v1/memories", json=body)).json()
    update = {"content": "Orla Mint owes Bo.", "idempotency_key": "orla-2"}
    assert (await world.ask(ADA, "PUT", f"/v1/memories/{accepted['doc_id']}", json=update)).status_code == 202
    path = f"/v1/documents/{accepted['doc_id']}?erase=true"
    assert (await world.ask(READER, "DELETE", path)).status_code == 403
    for who in (BOB, OTHERS):
        assert (await world.ask(who, "DELETE", path)).status_code == 404
    erased = await world.worked("DELETE", path, ADA)
    assert (erased["state"], erased["receipt"]["doc_ids"]) == ("complete", [accepted["doc_id"]])
    assert await world.where("Orla") == []
    assert list((world.rig.root.path.parent / "memories").rglob("*.md")) == []
    assert (await world.ask(ADA, "GET", f"/v1/events/{accepted['event_id']}")).status_code == 404
    # A client that missed the answer sends it again: that must not bring the text back.
    repeated = [
        await world.ask(ADA, "POST", "/v1/memories", json=body),
        await world.ask(ADA, "PUT", f"/v1/memories/{accepted['doc_id']}", json=update),
    ]
    assert [
        (r.status_code, r.json()["type"].rsplit(":", 1)[1], "erased" in r.json()["detail"]) for r in repeated
    ] == [(409, "idempotency-conflict", True)] * 2
    assert await world.rig.arrived(world.rig.config.topics.memory_writes) == []
    kept = [r for r in (await world.rig.rows(Index.EVENTS)).values() if r["doc_id"] == accepted["doc_id"]]
    assert [(row["stage"], row["path"], row["body_hash"]) for row in kept] == [("erased_key", "", None)] * 2
    assert await world.where("Orla") == []


async def test_no_receipt_is_signed_while_an_accepted_memory_and_its_erasure_wait_for_the_agents(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure_service, "_WAIT_SECONDS", 0.5)
    accepted = (await world.ask(ADA, "POST", "/v1/memories", json={"content": "Not yet there."})).json()
    path = f"/v1/documents/{accepted['doc_id']}?erase=true"
    pending = await world.ask(ADA, "DELETE", path)
    assert (pending.status_code, pending.json()["receipt"]) == (202, None)
    assert pending.json()["remaining"]["names"] == 1
    await world.carry_out(*await world.rig.arrived(world.rig.config.topics.memory_writes))
    later = (await world.ask(ADA, "GET", f"/v1/erasures/{pending.json()['erasure_id']}")).json()
    assert (later["state"], set(later["remaining"].values())) == ("complete", {0})


async def test_an_admin_erases_what_another_agent_wrote_and_no_other_tenant(world: World) -> None:
    rig = world.rig
    await world.carry_out(rig.saved("d1-orla.md", ORLA))
    assert (await world.erase(OTHERS, agent="ada"))["documents"] == 0
    erased = await world.erase(ADMIN, agent="ada")
    assert erased["receipt"]["doc_ids"] == [world.id_of("d1-orla.md")]
    audit = (await world.ask(ADMIN, "GET", "/v1/admin/audit")).json()["entries"]
    assert [(e["action"], e["by_agent"]) for e in audit if e["target"] == erased["erasure_id"]] == [
        ("query.erase", "dan")
    ]


async def test_a_tenant_is_erased_by_the_operator_alone(world: World) -> None:
    rig, leaving = world.rig, world.rig.config.roots[1]
    await world.ask(OPERATOR, "POST", "/v1/admin/tenants", json={"tenant": "leaver"})
    await world.carry_out(
        rig.saved("d1-orla.md", ORLA, root=leaving), rig.saved("d2.md", WHEEL, root=leaving)
    )
    await world.carry_out(rig.saved("d2.md", WHEEL))
    path = "/v1/admin/tenants/leaver/erase"
    assert (await world.ask(ADMIN, "POST", path)).status_code == 404
    assert (await world.ask(LEAVER, "POST", path)).status_code == 403
    first = await world.worked("POST", path, OPERATOR)
    assert (first["state"], first["documents"], first["more"]) == ("complete", 2, True)
    last = await world.worked("POST", path, OPERATOR)
    assert (last["documents"], last["more"]) == (0, False)
    assert await world.where("Orla", "Tidewheel", "d2.md", root=leaving) == []
    # Keys are known for as long as the settings say, here not at all.
    assert (await world.ask(LEAVER, "GET", "/v1/whoami")).status_code == 401
    await rig.feed(*world.fed)
    assert await world.where("Orla", "Tidewheel", "d2.md", root=leaving) == []
    assert [row["path"] for row in (await rig.documents()).values()] == ["d2.md"]


async def test_an_erasure_is_not_done_before_its_fences_stand(world: World) -> None:
    """No agent runs: what is accepted alone has neither file nor row, and is no less there."""
    accepted = (await world.ask(ADA, "POST", "/v1/memories", json={"content": "Orla again."})).json()
    asked = await world.ask(ADA, "POST", "/v1/erasures", json={"agent": "ada"})
    pending = asked.json()
    assert (asked.status_code, pending["state"], pending["documents"]) == (202, "pending", 1)
    assert pending["remaining"]["names"] == 1
    found = await world.worked("GET", _erasure(pending), ADA)
    assert found["receipt"]["doc_ids"] == [accepted["doc_id"]]
    assert await world.where("Orla") == []


async def test_a_deletion_that_came_between_does_not_keep_the_name(world: World) -> None:
    rig = world.rig
    await world.carry_out(rig.saved("d1-orla.md", ORLA))
    # Nobody carries it out yet; the file goes meanwhile, and that is newer, in a batch before.
    body = {"doc_ids": [world.id_of("d1-orla.md")]}
    pending = (await world.ask(ADA, "POST", "/v1/erasures", json=body)).json()
    assert pending["state"] == "pending"
    await world.carry_out(rig.removed("d1-orla.md"))
    found = await world.worked("GET", _erasure(pending), ADA)
    assert (found["state"], await world.where("Orla", "d1-orla")) == ("complete", [])


async def test_a_forgotten_file_without_a_row_is_found_by_its_agent(world: World) -> None:
    """Tombstones go after 45 days; what was set aside stays until somebody deletes it."""
    aside = world.rig.root.path / ".hopline/forgotten/memories/orla-long-ago.md"
    aside.parent.mkdir(parents=True)
    aside.write_text(ORLA)
    erased = await world.erase(ADMIN, agent="ada")
    assert erased["receipt"]["doc_ids"] == [world.id_of("memories/orla-long-ago.md")]
    assert (erased["receipt"]["removed"]["files"], await world.where("Orla")) == (1, [])


async def test_an_erasure_that_nobody_asks_after_is_shown_and_ends_with_its_receipt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure_service, "_WAIT_SECONDS", 0.0)
    gate, tenant = world.rig.gate, ADA.tenant_id
    await world.ask(ADA, "POST", "/v1/memories", json={"content": "Orla once more."})
    asked = (await world.ask(ADA, "POST", "/v1/erasures", json={"agent": "ada"})).json()
    pending, oldest = await world.shown()
    assert (asked["state"], pending) == ("pending", 1)
    assert 0 < oldest < 60
    while await world.work():
        pass
    assert await world.shown() == (0, 0)
    found = await read_erasure(gate, Principal.pipeline(tenant), asked["erasure_id"])
    assert found is not None
    assert found.receipt is not None
    # One whose asker waited for it leaves nothing to follow.
    await world.carry_out(world.rig.saved("d1-orla.md", ORLA))
    monkeypatch.undo()
    assert (await world.erase(ADA, agent="ada"))["state"] == "complete"
    assert await open_notes(gate, most=10) == ([], 0)


async def test_a_note_without_an_erasure_is_dropped_once_no_process_can_be_at_it(world: World) -> None:
    """A process that ended between the two writes; one that is at it now keeps its note."""
    now = datetime.now(UTC)
    for name, age in (("just-now", timedelta(seconds=5)), ("long-ago", timedelta(hours=1))):
        erasure = Erasure(
            erasure_id=name,
            requested_by="ada",
            requested_at=(now - age).isoformat(),
            documents=[],
            removed={},
        )
        await note_open(world.rig.gate, ADA.tenant_id, erasure)
    pending, oldest = await world.shown()
    assert pending == 1
    assert 5 <= oldest < 60
    await note_closed(world.rig.gate, ["just-now"])
    assert await world.shown() == (0, 0)
