"""Who owns the services that had incidents last week: incident → service → team → person, by the API alone.

Every hop is a sentence: one that names both ends. What is in the graph is what the shipped model and the patterns
found in the example vault's notes; who is expected is read from the notes' frontmatter, which the walk never sees.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.agents import Rig, vault_root
from tests.api import principal
from tests.conftest import Stack
from tests.entity_api import EntityService, entity_service

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

VAULT = Path(__file__).parents[2] / "examples" / "vault"
#: The day after the last note.
TODAY = date(2026, 11, 30)
ME = principal("acme")
OWNS = re.compile(r"\b(owns|owned by|owner|belongs to)\b", re.IGNORECASE)
LEADS = re.compile(r"\blead(s|er)?\b", re.IGNORECASE)
ANY = re.compile("")
BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """`note`: the name's own note, whose title or alias the name is."""

    note: str
    sentence: str
    said_in: str


@dataclass(kw_only=True)
class Walker:
    world: EntityService
    _notes: dict[str, dict[str, Any] | None] = field(default_factory=dict)

    async def note_named(self, name: str) -> dict[str, Any] | None:
        """Titles and aliases are names."""
        if name not in self._notes:
            hits = await self.world.service.search(ME, name, parts=["keyword"], page_size=5)
            found = [await self.world.get(ME, f"/v1/documents/{hit['doc_id']}") for hit in hits["hits"]]
            named = [note for note in found if name in (note["title"], *note["aliases"])]
            self._notes[name] = named[0] if named else None
        return self._notes[name]

    async def entities_named(self, name: str) -> list[str]:
        """One name may be several entities: of several labels, where the model was not sure."""
        found = await self.world.get(ME, "/v1/entities", q=name, page_size=20)
        return [entity["entity_id"] for entity in found["entities"] if entity["name"] == name]

    async def hop(self, name: str, says: re.Pattern[str], tag: str) -> list[Hop]:
        """Names with a note of this tag, in sentences that name `name` and say so; what most notes say comes first."""
        hops: dict[tuple[str, str], Hop] = {}
        for entity_id in await self.entities_named(name):
            route = f"/v1/entities/{entity_id}/mentions"
            for mention in (await self.world.get(ME, route, page_size=200))["mentions"]:
                places = {mention["sentence"], *(place["sentence"] for place in mention["places"])}
                said = {sentence for sentence in places if says.search(sentence)}
                for other in await self._mentioned(mention["document"]["doc_id"]) if said else []:
                    note = (
                        await self.note_named(other["entity"]["name"]) if other["sentence"] in said else None
                    )
                    if note is not None and tag in note["tags"] and note["title"] != name:
                        path = mention["document"]["path"]
                        hops[note["title"], path] = Hop(
                            note=note["title"], sentence=other["sentence"], said_in=path
                        )
        votes = Counter(hop.note for hop in hops.values())
        return sorted(hops.values(), key=lambda hop: (-votes[hop.note], hop.said_in))

    async def _mentioned(self, doc_id: str) -> list[dict[str, Any]]:
        found = await self.world.get(ME, f"/v1/documents/{doc_id}/mentions", page_size=200)
        mentions: list[dict[str, Any]] = found["mentions"]
        return mentions


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EntityService]:
    folder = tmp_path_factory.mktemp("walk")
    root = vault_root(folder, "vault")
    shutil.copytree(VAULT, root.path, dirs_exist_ok=True)
    async with entity_service(stack, folder, [root], [ME]) as opened:
        await index_all(opened.rig)
        yield opened


async def index_all(rig: Rig) -> None:
    """Every note through ingest, extract and link, as their workers do it."""
    paths = sorted(file.relative_to(rig.root.path).as_posix() for file in rig.root.path.rglob("*.md"))
    for start in range(0, len(paths), BATCH):
        part = paths[start : start + BATCH]
        await rig.feed(*(rig.told(path, (rig.root.path / path).read_bytes()) for path in part))
    records = await rig.announced()
    for start in range(0, len(records), BATCH):
        await rig.extract_records(records[start : start + BATCH])
    await rig.link_all()
    await rig.gate.refresh()


def expected() -> dict[str, tuple[str, str, str]]:
    """Incident of last week → service, team, lead, as the notes' frontmatter has them."""
    monday = TODAY - timedelta(days=TODAY.weekday() + 7)
    found: dict[str, tuple[str, str, str]] = {}
    for note in sorted((VAULT / "incidents").glob("INC-*.md")):
        day = re.search(r"^created: (\d{4}-\d\d-\d\d)", note.read_text(encoding="utf-8"), re.MULTILINE)
        if day and monday <= date.fromisoformat(day[1]) < monday + timedelta(days=7):
            service = frontmatter_link(note, "service")
            team = frontmatter_link(VAULT / "services" / f"{service}.md", "owner")
            found[note.stem] = (service, team, frontmatter_link(VAULT / "teams" / f"{team}.md", "lead"))
    return found


def frontmatter_link(note: Path, name: str) -> str:
    found = re.search(rf'^{name}: "\[\[(.+?)\]\]"$', note.read_text(encoding="utf-8"), re.MULTILINE)
    assert found, (note, name)
    return found[1]


async def test_who_owns_the_services_that_had_incidents_last_week(world: EntityService) -> None:
    walker = Walker(world=world)
    year, week, _ = (TODAY - timedelta(days=7)).isocalendar()
    summary = await walker.note_named(f"{year}-W{week} session summary")
    assert summary is not None
    route = f"/v1/documents/{summary['doc_id']}/mentions"
    mentions = (await world.get(ME, route, page_size=200))["mentions"]
    incidents = {
        m["entity"]["name"]
        for m in mentions
        if m["entity"]["label"] == "incident" and m["source"] == "pattern"
    }
    walked: dict[str, tuple[str, str, str]] = {}
    for incident in sorted(incidents):
        service, *_ = await walker.hop(incident, ANY, "service")
        team, *_ = await walker.hop(service.note, OWNS, "team")
        person, *_ = await walker.hop(team.note, LEADS, "person")
        walked[incident] = (service.note, team.note, person.note)
        for hop in (service, team, person):
            print(f"{incident} → {hop.note}: {hop.sentence} ({hop.said_in})")  # noqa: T201 - for pytest -s
            assert hop.sentence in (VAULT / hop.said_in).read_text(encoding="utf-8")
    assert walked == expected()
    assert len(walked) == 3


def plain(name: str) -> str:
    return " ".join(re.split(r"[\W_]+", name.casefold()))


async def test_each_hop_stands_at_its_offsets_in_the_note(world: EntityService) -> None:
    [hit, *_] = (await world.service.search(ME, "payout-ledger", parts=["keyword"], page_size=1))["hits"]
    text = (VAULT / hit["path"]).read_text(encoding="utf-8")
    mentions = (await world.get(ME, f"/v1/documents/{hit['doc_id']}/mentions", page_size=200))["mentions"]
    assert len(mentions) > 10
    for mention in mentions:
        assert text[mention["start"] : mention["end"]] == mention["surface"]
        assert mention["surface"] in mention["sentence"]
        assert mention["sentence"] in text


async def test_a_text_that_says_a_notes_name_without_a_link_leads_to_it(world: EntityService) -> None:
    found: set[tuple[str, str]] = set()
    for folder in ("services", "teams", "people"):
        for file in sorted((VAULT / folder).glob("*.md")):
            path = unicodedata.normalize("NFC", file.relative_to(VAULT).as_posix())
            doc_id = world.rig.home.document(path).doc_id
            note = await world.get(ME, f"/v1/documents/{doc_id}")
            backlinks = (await world.get(ME, f"/v1/documents/{doc_id}/backlinks", page_size=500))["links"]
            for link in backlinks:
                if link["link_type"] == "unlinked_mention":
                    found.add((link["from"]["path"], note["title"]))
                    assert plain(link["target"]) in {plain(n) for n in (note["title"], *note["aliases"])}, (
                        link
                    )
                    text = (VAULT / link["from"]["path"]).read_text(encoding="utf-8")
                    assert all(place["context"] in text for place in link["occurrences"])
    assert found
