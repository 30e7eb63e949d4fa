"""Names, entities and proposals of one namespace against its edges: everything about them follows from these.

Entities belong to a namespace, not to an author, so this part runs once for all roots of one. In memory: the keys of
one label and where they belong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from indexers.domain.entities.clusters import Clusters
from indexers.domain.entities.curation import curation_of
from indexers.domain.identity import EntityNamespace, NameId, Principal
from indexers.linking.counts import NameCount, count_documents, count_names
from indexers.linking.curations import curations_of
from indexers.linking.entity_rows import CountedName, LabelRows
from indexers.opensearch.find import Wanted, scan_pages
from indexers.opensearch.gate import Gate, GatedSearch, StoredRow
from indexers.opensearch.rows import EntityRow, Index, ProposalRow
from indexers.opensearch.visibility import Query
from indexers.verify.clustering import cluster_names
from indexers.verify.report import Kind, VerifyReport

LABELS_MAX = 1_000
#: Field of a name's row → what a wrong one is called.
_KINDS: dict[str, Kind] = {
    "mentions": "wrong_count",
    "mention_count": "wrong_count",
    "likeness_id": "wrong_entity",
    "entity_id": "wrong_entity",
    "canonical": "wrong_entity",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityVerifier:
    """Adds to the report what differs. The caller has refreshed."""

    gate: Gate
    namespace: EntityNamespace
    report: VerifyReport

    @property
    def principal(self) -> Principal:
        return Principal.pipeline(self.namespace.tenant_id)

    async def run(self) -> None:
        for label in await self._labels():
            await _LabelVerifier(verifier=self, label=label).run()

    async def _labels(self) -> list[str]:
        """Those that any row has, whether they are looked for or not."""
        query: Query = {"term": {"namespace": self.namespace.owner}}
        labels = {"terms": {"field": "label", "size": LABELS_MAX}}
        body = {"query": query, "size": 0, "aggs": {"labels": labels}}
        pages = await self.gate.search_many(
            [
                GatedSearch(principal=self.principal, index=index, body=body)
                for index in (Index.ENTITIES, Index.MENTIONS, Index.PROPOSALS)
            ]
        )
        return sorted({b["key"] for page in pages for b in page.aggregations["labels"]["buckets"]})


@dataclass(slots=True, kw_only=True)
class _LabelVerifier:
    verifier: EntityVerifier
    label: str
    #: Names of each entity that has several.
    members: dict[str, list[str]] = field(default_factory=dict)

    async def run(self) -> None:
        gate, namespace = self.verifier.gate, self.verifier.namespace
        ops = await curations_of(gate, namespace, self.label)
        rows = LabelRows(namespace=namespace, label=self.label, curation=curation_of(ops))
        keys = {row.source["key"] async for page in self._scan(Index.ENTITIES, ("key",)) for row in page}
        clusters = cluster_names(keys, self.label, rows.curation.apart, rows.curation.merges)
        self.members = _several(clusters)
        known = {UUID(rows.name_id(key)).bytes for key in keys}
        async for page in self._scan(Index.ENTITIES, None):
            await self._names(rows, clusters, page)
        await self._proposals(rows, clusters)
        await self._edges(known)

    async def _names(self, rows: LabelRows, clusters: Clusters, page: Sequence[StoredRow]) -> None:
        report, gate, principal = self.verifier.report, self.verifier.gate, self.verifier.principal
        found = {row.row_id: msgspec.convert(row.source, EntityRow) for row in page}
        # A name that came since the names were read has no place among them yet.
        stored = {row_id: row for row_id, row in found.items() if row.key in clusters.placements}
        report.names += len(stored)
        counts = await count_names(gate, principal, [rows.name_id(row.key) for row in stored.values()])
        groups = {
            row.key: [rows.name_id(key) for key in self.members[row.key]]
            for row in stored.values()
            if row.key in self.members
        }
        documents = await count_documents(gate, principal, groups)
        for row_id, row in stored.items():
            name_id = rows.name_id(row.key)
            count = counts.get(name_id)
            if row_id != name_id:
                report.add("duplicate_row", self._where(row.key), f"row {row_id} is not the name's own")
            elif count is None:
                report.add("orphan_name", self._where(row.key), "no document mentions it")
            else:
                self._compare(row, self._due(rows, clusters, row.key, count, documents))

    def _due(
        self,
        rows: LabelRows,
        clusters: Clusters,
        key: str,
        count: NameCount,
        documents: dict[str, int],
    ) -> EntityRow:
        placement = clusters.placements[key]
        name = CountedName(
            key=key,
            mentions=count.mentions,
            spelling=count.spelling or key,
            likeness_id=rows.name_id(placement.likeness_key),
            entity_id=rows.name_id(placement.entity_key),
        )
        members = self.members.get(placement.entity_key, [key])
        return rows.entity_row(name, members, documents.get(key))

    def _compare(self, row: EntityRow, due: EntityRow) -> None:
        wrong: defaultdict[Kind, list[str]] = defaultdict(list)
        for name in EntityRow.__struct_fields__:
            if getattr(row, name) != getattr(due, name):
                wrong[_KINDS.get(name, "stale_name")].append(name)
        for kind, names in wrong.items():
            said = ", ".join(f"{name} is {getattr(row, name)}, not {getattr(due, name)}" for name in names)
            self.verifier.report.add(kind, self._where(row.key), said)

    async def _proposals(self, rows: LabelRows, clusters: Clusters) -> None:
        proposals = [proposal for found in clusters.proposals.values() for proposal in found]
        due = {str(row_id): row for row_id, row in rows.proposal_rows(proposals).items()}
        report = self.verifier.report
        async for page in self._scan(Index.PROPOSALS, None):
            for row in page:
                stored = msgspec.convert(row.source, ProposalRow)
                where = self._where(f"{stored.key} ~ {stored.other_key}")
                wanted = due.pop(row.row_id, None)
                if wanted is None:
                    report.add("wrong_proposal", where, "it is not to be proposed")
                elif stored != wanted:
                    report.add("wrong_proposal", where, "it is of other entities, or another likeness")
        for proposal in due.values():
            report.add(
                "wrong_proposal", self._where(f"{proposal.key} ~ {proposal.other_key}"), "it is missing"
            )

    async def _edges(self, known: set[bytes]) -> None:
        report = self.verifier.report
        async for page in self._scan(Index.MENTIONS, ("name_id", "key")):
            for row in page:
                name_id = UUID(NameId(row.source["name_id"])).bytes
                if name_id not in known:
                    known.add(name_id)
                    report.add(
                        "missing_name", self._where(row.source["key"]), "it is mentioned and has no row"
                    )

    def _scan(self, index: Index, fields: tuple[str, ...] | None) -> AsyncGenerator[list[StoredRow], None]:
        verifier = self.verifier
        terms: list[Query] = [
            {"term": {"namespace": verifier.namespace.owner}},
            {"term": {"label": self.label}},
        ]
        query = {"bool": {"filter": terms}}
        wanted = Wanted(principal=verifier.principal, index=index, query=query, fields=fields)
        return scan_pages(verifier.gate, wanted)

    def _where(self, key: str) -> str:
        return f"{self.verifier.namespace.owner}/{self.label}/{key}"


def _several(clusters: Clusters) -> dict[str, list[str]]:
    members: defaultdict[str, list[str]] = defaultdict(list)
    for key, placement in clusters.placements.items():
        if placement.entity_key != key:
            members[placement.entity_key].append(key)
    return {entity: [entity, *sorted(keys)] for entity, keys in members.items()}
