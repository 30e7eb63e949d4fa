"""Rows of one owner's documents, links, names and relations, written straight through a gate."""

from __future__ import annotations

from typing import Any, Final

from indexers.domain.identity import EntityNamespace, Namespace, Principal, link_id, mention_id, relation_id
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index, OwnedRow
from tests.entity_rows import entity_row, mention_row, relation_row
from tests.store import document_row, link_row

LABEL: Final = "organization"


class World:
    """Writes rows of one owner; documents by path."""

    def __init__(self, gate: Gate, owner: Namespace) -> None:
        self._owner = owner
        self._names = EntityNamespace.of(owner)
        self._gate = gate
        self._writes: list[RowWrite] = []

    def id(self, path: str) -> str:
        return self._owner.document(path).doc_id

    def name_id(self, key: str) -> str:
        return self._names.name_id(LABEL, key)

    def document(self, path: str, **changes: Any) -> None:
        row = document_row(self._owner, doc_id=self.id(path), path=path, **changes)
        self._add(Index.DOCUMENTS, row.doc_id, row)

    def link(self, source: str, target: str | None, *, version: int = 1, kind: str = "wikilink") -> None:
        key, doc_id = f"{target}.md", self._owner.document(source).doc_id
        row = link_row(
            self._owner,
            from_doc_id=doc_id,
            to_doc_id=None if target is None else self.id(target),
            target_key=key,
            link_type=kind,
            version=version,
            occurrences=[{"start": 0, "end": 9, "context": f"{source} says [[{target}]]"}],
        )
        self._add(Index.LINKS, link_id(doc_id, version, key, kind), row)

    def mention(self, path: str, key: str, weight: float = 0.9) -> None:
        doc_id, name_id = self._owner.document(path).doc_id, self._names.name_id(LABEL, key)
        row = mention_row(
            self._owner,
            doc_id=doc_id,
            name_id=name_id,
            namespace=self._names.owner,
            label=LABEL,
            key=key,
            weight=weight,
            surface=key.title(),
            sentence=f"Of the {key.title()}.",
        )
        self._add(Index.MENTIONS, mention_id(doc_id, name_id), row)

    def name(self, key: str, documents: int, **changes: Any) -> None:
        name_id = self.name_id(key)
        values = {"name_id": name_id, "entity_id": name_id, "mentions": documents} | changes
        row = entity_row(
            self._names.namespace,
            namespace=self._names.owner,
            label=LABEL,
            key=key,
            name=key.title(),
            **values,
        )
        self._add(Index.ENTITIES, name_id, row)

    def relation(self, path: str, subject: str, other: str) -> None:
        doc_id = self._owner.document(path).doc_id
        ids = self._names.name_id(LABEL, subject), self._names.name_id(LABEL, other)
        row = relation_row(
            self._owner,
            doc_id=doc_id,
            namespace=self._names.owner,
            subject=subject.title(),
            subject_label=LABEL,
            subject_id=ids[0],
            object=other.title(),
            object_label=LABEL,
            object_id=ids[1],
        )
        self._add(Index.RELATIONS, relation_id(doc_id, ids[0], row.relation_type, ids[1]), row)

    async def write(self) -> None:
        for start in range(0, len(self._writes), 2_000):
            results = await self._gate.write(self._writes[start : start + 2_000])
            assert {result.status for result in results} == {"applied"}
        self._writes.clear()
        await self._gate.refresh()

    def _add(self, index: Index, row_id: str, row: OwnedRow) -> None:
        who = Principal.pipeline(self._owner.tenant_id)
        self._writes.append(
            RowWrite(principal=who, index=index, row_id=row_id, action="index", row=row, version=1)
        )


def write_contents(world: World) -> None:
    """C13: "Copper ledger" links to `vault-key`, has the tag `audit` and names the Copper Guild."""
    fields = {"tags": ["audit", "copper"], "category": "books", "terms": ["ingot", "ore", "tin"]}
    world.document("ledger.md", title="Copper ledger", **fields)
    world.document("vault-key.md", title="vault-key")
    world.document("deep.md")
    world.document("deeper.md")
    world.document("audit.md", **fields)
    world.document("guild.md")
    world.document("crew.md")
    for position in range(3):
        turn = {"session": "monday", "position": position, "turn": f"monday#{position}"}
        world.document(f"turn-{position}.md", **turn)
    world.link("ledger.md", "vault-key.md")
    world.link("deep.md", "vault-key.md", kind="unlinked_mention")
    world.link("deep.md", "deeper.md", kind="reference")
    world.link("ledger.md", None)
    world.mention("ledger.md", "copper guild")
    world.mention("guild.md", "copper guild", 0.8)
    world.mention("crew.md", "copper crew", 0.7)
    world.relation("ledger.md", "copper guild", "copper crew")
    world.name("copper guild", 2)
    world.name("copper crew", 1)
