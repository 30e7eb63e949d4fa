"""`verify` finds each fault of names and mentions; what all agents made together is clean."""

from __future__ import annotations

from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from indexers.domain.entities.clusters import Clusters
from indexers.domain.entities.names import name_key
from indexers.domain.identity import EntityNamespace, Principal
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import EntityRow, ExtractionRow, Index, MentionRow, OwnedRow, ProposalRow
from indexers.verify import entities
from indexers.verify.clustering import cluster_names
from indexers.verify.digest import content_digest
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

NOTES = {
    "incidents/INC-2041.md": "# INC-2041\n\nThe payout-ledger service failed; see INC-2041 and INC-2042.\n",
    "incidents/INC-2042.md": "# INC-2042\n\nCaused by ORA-01555, as INC-2041 was. Host db-7.example.com was full.\n",
    "people/alice.md": "# Alice Novak\n\nAlice Novak leads the payments team. Mail: alice@example.com.\n",
    "people/ben.md": "Ben Carter works with Alice Novak on the payout-ledger service since INC-2041.\n",
}
KEY, OTHER, GHOST = (name_key(f"INC-{number}", "incident") for number in (2041, 2042, 9999))
#: Above the clock's, so that the next fault replaces this one.
LATER = 10**15
ROWS: dict[Index, type[OwnedRow]] = {
    Index.ENTITIES: EntityRow,
    Index.MENTIONS: MentionRow,
    Index.PROPOSALS: ProposalRow,
    Index.EXTRACTIONS: ExtractionRow,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """Every agent has seen every note. A test puts back what it breaks."""
    folder: Path = tmp_path_factory.mktemp("vault")
    async with opened_rig(
        agent_config(stack, f"t{folder.name}-{id(folder):x}", [vault_root(folder)])
    ) as opened:
        await opened.feed(*[opened.saved(path, text) for path, text in NOTES.items()])
        announced = await opened.announced()
        await opened.embed_records(announced)
        await opened.extract_records(announced)
        await opened.link_all()
        yield opened


class Broken:
    """A row replaced or removed for the length of a block."""

    def __init__(self, rig: Rig, index: Index, row_id: str, **fields: Any) -> None:
        self._rig, self._index, self._row_id, self._fields = rig, index, row_id, fields

    async def __aenter__(self) -> None:
        self._kept = (await self._rig.rows(self._index)).get(self._row_id)
        await self._write((self._kept or {}) | self._fields if self._fields else None)

    async def __aexit__(self, *_: object) -> None:
        await self._write(self._kept)

    async def _write(self, source: dict[str, Any] | None) -> None:
        version = self._rig.clock.next() + LATER
        row = None if source is None else msgspec.convert(source, ROWS[self._index])
        [result] = await self._rig.gate.write(
            [
                RowWrite(
                    principal=Principal.pipeline(self._rig.home.tenant_id),
                    index=self._index,
                    row_id=self._row_id,
                    action="delete" if row is None else "index",
                    row=row,
                    version=version,
                )
            ]
        )
        assert result.status == "applied", result


def name_id(rig: Rig, label: str, key: str) -> str:
    return EntityNamespace.of(rig.home).name_id(label, key)


async def row_of(rig: Rig, index: Index, **fields: Any) -> tuple[str, dict[str, Any]]:
    rows = (await rig.rows(index)).items()
    return next((i, row) for i, row in rows if all(row[k] == v for k, v in fields.items()))


async def test_what_all_agents_made_is_clean(rig: Rig) -> None:
    report = await rig.verify()
    assert report.counts == {}
    rows = await rig.rows(Index.ENTITIES)
    assert (report.mentions, report.names) == (len(await rig.rows(Index.MENTIONS)), len(rows))
    incident = rows[name_id(rig, "incident", KEY)]
    assert (incident["name"], incident["mention_count"]) == ("INC-2041", 3)


async def test_faults_of_a_documents_mentions(rig: Rig) -> None:
    row_id, row = await row_of(rig, Index.MENTIONS, key=KEY, path="people/ben.md")
    async with Broken(rig, Index.MENTIONS, row_id):
        assert await rig.verified() == {"missing_mention": 1, "wrong_count": 1}
    async with Broken(rig, Index.MENTIONS, row_id, start=row["start"] + 1, end=row["end"] + 1):
        assert await rig.verified() == {"stale_mention": 1}
    async with Broken(rig, Index.MENTIONS, row_id, version=7):
        assert await rig.verified() == {"stale_mention": 1}
    async with Broken(rig, Index.MENTIONS, "twin", **row):
        assert await rig.verified() == {"duplicate_row": 1, "orphan_mention": 1, "wrong_count": 1}
    async with Broken(rig, Index.MENTIONS, "foreign", **(row | {"doc_id": "nowhere"})):
        assert await rig.verified() == {"orphan_mention": 1, "wrong_count": 1}
    assert await rig.verified() == {}


async def test_faults_of_an_extraction(rig: Rig) -> None:
    row_id, row = await row_of(rig, Index.EXTRACTIONS, doc_id=rig.home.document("people/ben.md").doc_id)
    async with Broken(rig, Index.EXTRACTIONS, row_id):
        assert await rig.verified() == {"missing_extraction": 1}
    async with Broken(rig, Index.EXTRACTIONS, row_id, version=7):
        assert await rig.verified() == {"stale_extraction": 1}
    async with Broken(rig, Index.EXTRACTIONS, row_id, fingerprint="of another model"):
        assert await rig.verified() == {"stale_extraction": 1}
    async with Broken(rig, Index.EXTRACTIONS, "foreign", **(row | {"doc_id": "nowhere"})):
        assert await rig.verified() == {"orphan_extraction": 1}
    assert await rig.verified() == {}


async def test_faults_of_a_name(rig: Rig) -> None:
    row_id, row = await row_of(rig, Index.ENTITIES, key=KEY)
    other, _ = await row_of(rig, Index.ENTITIES, key=OTHER)
    async with Broken(rig, Index.ENTITIES, row_id):
        assert await rig.verified() == {"missing_name": 1}
    async with Broken(rig, Index.ENTITIES, row_id, mentions=2, mention_count=2):
        assert await rig.verified() == {"wrong_count": 1}
    async with Broken(rig, Index.ENTITIES, row_id, entity_id=other, canonical=False, mention_count=0):
        assert await rig.verified() == {"wrong_entity": 1, "wrong_count": 1}
    async with Broken(rig, Index.ENTITIES, row_id, name="Something else"):
        assert await rig.verified() == {"stale_name": 1}
    ghost = name_id(rig, "incident", GHOST)
    async with Broken(rig, Index.ENTITIES, ghost, **(row | {"key": GHOST, "name_id": ghost})):
        assert await rig.verified() == {"orphan_name": 1}
    proposal = {
        name: row[name] for name in ("tenant_id", "agent_id", "team_id", "scope", "namespace", "label")
    } | {
        "entity_id": row_id,
        "other_id": other,
        "key": KEY,
        "other_key": OTHER,
        "similarity": 0.8,
        "reason": "similar",
    }
    async with Broken(rig, Index.PROPOSALS, "p", **proposal):
        assert await rig.verified() == {"wrong_proposal": 1}
    assert await rig.verified() == {}


async def test_a_name_that_comes_while_verify_reads_is_no_fault(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is read, but wasn't there when the names were."""

    def as_before(keys: AbstractSet[str], *rest: Any) -> Clusters:
        return cluster_names(set(keys) - {KEY}, *rest)

    monkeypatch.setattr(entities, "cluster_names", as_before)
    assert await rig.verified() == {}


async def test_the_digest_leaves_out_how_sure_the_model_was(rig: Rig) -> None:
    principal = Principal.pipeline(rig.home.tenant_id)
    before = await content_digest(rig.gate, principal)
    row_id, row = await row_of(rig, Index.MENTIONS, key=KEY, path="people/ben.md")
    surer = [occurrence | {"weight": 0.99} for occurrence in row["occurrences"]]
    async with Broken(rig, Index.MENTIONS, row_id, weight=0.99, occurrences=surer):
        assert await content_digest(rig.gate, principal) == before
    async with Broken(rig, Index.MENTIONS, row_id, count=7):
        assert await content_digest(rig.gate, principal) != before
