"""Compare a vault with the index: from the files to their rows, and from the rows back. Changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from indexers.bookkeeping import ERASED
from indexers.domain.identity import DocumentId, EntityNamespace, Namespace, Principal
from indexers.errors import VaultUnavailable
from indexers.linking.targets import resolve_rows
from indexers.linking.unlinked_look import NamedText
from indexers.opensearch.find import Wanted, scan_pages
from indexers.opensearch.gate import Gate, StoredRow
from indexers.opensearch.rows import DocumentRow, Index, LinkRow
from indexers.opensearch.visibility import owned_by
from indexers.planning import IndexVersions, PlannedDocument, Seen, plan_document
from indexers.ports import FileEntry, TokenCounter, VaultFiles
from indexers.settings import IndexingSettings
from indexers.vault.content import read_content
from indexers.verify.files import compare_document, compare_resolutions
from indexers.verify.mentions import compare_mentions
from indexers.verify.reading import Reader
from indexers.verify.relations import Statements, compare_relations
from indexers.verify.report import Finding, Kind, VerifyReport
from indexers.verify.unlinked import compare_unlinked

__all__ = ["Finding", "Verifier", "VerifyReport"]

#: Files or rows compared at once: what bounds memory.
BATCH = 100

Progress = Callable[[VerifyReport], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """One vault root against its namespace's rows. Of another tenant, nothing is read."""

    gate: Gate
    name: str
    namespace: Namespace
    files: VaultFiles
    counter: TokenCounter
    settings: IndexingSettings
    versions: IndexVersions
    #: Of the extraction of this namespace's documents; None: its labels can't be used.
    fingerprint: str | None
    #: What `.hopline/relations.jsonl` says. Blocking; raises VaultUnavailable.
    statements: Callable[[], Statements]
    progress: Progress = lambda _report: None

    @property
    def principal(self) -> Principal:
        """The tenant's own maintenance: what a link resolves to is decided over the whole tenant."""
        return Principal.pipeline(self.namespace.tenant_id)

    @property
    def _reader(self) -> Reader:
        return Reader(gate=self.gate, principal=self.principal)

    async def run(self) -> VerifyReport:
        """Raises VaultUnavailable or Transient: then nothing was concluded."""
        report = VerifyReport(root=self.name)
        await self.gate.refresh()
        statements = await asyncio.to_thread(self.statements)
        entries = await asyncio.to_thread(self.files.entries)
        while batch := await asyncio.to_thread(_next, entries):
            report.files += len(batch)
            await self._files(report, batch, statements)
            self.progress(report)
        await self._documents(report)
        await self._owned(report, Index.GATE)
        await self._owned(report, Index.CHUNKS)
        await self._owned(report, Index.LINKS)
        await self._owned(report, Index.MENTIONS)
        await self._owned(report, Index.RELATIONS)
        await self._owned(report, Index.EXTRACTIONS)
        await self._vectors(report)
        return report

    async def _files(
        self, report: VerifyReport, entries: Sequence[FileEntry], statements: Statements
    ) -> None:
        by_id = {self.namespace.document(entry.path).doc_id: entry for entry in entries}
        stored = await self._reader.documents(list(by_id))
        links: list[LinkRow] = []
        texts: list[NamedText] = []
        for doc_id, entry in by_id.items():
            document = stored.get(doc_id)
            if document is None:
                report.add("missing_document", entry.path, "the file is not in the index")
                continue
            planned = await asyncio.to_thread(self._planned, report, entry, document.row)
            if planned is not None:
                compare_document(report, planned, document, self.versions)
                texts.append(
                    NamedText(
                        key=self.namespace.document(entry.path),
                        version=document.row.version,
                        text=planned.text,
                        said=planned.said,
                    )
                )
                compare_mentions(
                    report,
                    document,
                    text=planned.text,
                    namespace=EntityNamespace.of(self.namespace),
                    fingerprint=self.fingerprint,
                )
                compare_relations(
                    report,
                    self.namespace.document(entry.path),
                    document.row.version,
                    text=planned.text,
                    statements=statements,
                    stored=document.relations,
                )
            report.chunks += len(document.chunks)
            report.mentions += len(document.mentions)
            links += document.links.values()
        report.links += len(links)
        report.dangling += sum(row.to_doc_id is None for row in links)
        tenant_id, cap = self.namespace.tenant_id, self.settings.name_in_degree_max
        compare_resolutions(report, links, await resolve_rows(self.gate, tenant_id, links))
        rows = {doc_id: document.unlinked for doc_id, document in stored.items()}
        await compare_unlinked(report, self.gate, tenant_id, texts, rows, cap=cap)

    def _planned(self, report: VerifyReport, entry: FileEntry, row: DocumentRow) -> PlannedDocument | None:
        try:
            content = read_content(self.files, entry.path, self.settings.document_max_bytes)
        except VaultUnavailable:
            raise
        except (OSError, ValueError) as exc:
            report.add("unreadable_file", entry.path, type(exc).__name__)
            return None
        seen = Seen(
            document=self.namespace.document(entry.path),
            vault_path=entry.vault_path,
            version=row.version,
            event_id=row.event_id,
        )
        return plan_document(
            seen,
            content,
            counter=self.counter,
            settings=self.settings,
            versions=self.versions,
            indexed_at=row.indexed_at,
        )

    async def _documents(self, report: VerifyReport) -> None:
        """From the rows back: each living document must have its file, under the id that its path gives."""
        async for rows in self._scan(Index.DOCUMENTS, ("doc_id", "path", "deleted", "no_vector_reason")):
            for row in rows:
                path, deleted = row.source["path"], row.source["deleted"]
                report.tombstones += deleted
                report.documents += not deleted
                if deleted and row.source["no_vector_reason"] == ERASED and path == row.row_id:
                    continue  # nobody knows the path any more
                if row.row_id != self.namespace.document(path).doc_id or row.row_id != row.source["doc_id"]:
                    report.add("duplicate_row", path, f"document row {row.row_id} is not the path's own")
                elif not deleted and not await asyncio.to_thread(self._has_file, path):
                    report.add("orphan_document", path, "there is no such file")
            self.progress(report)

    def _has_file(self, path: str) -> bool:
        try:
            self.files.entry(path)
        except (FileNotFoundError, ValueError):
            return False
        except PermissionError:
            return True
        return True

    async def _owned(self, report: VerifyReport, index: Index) -> None:
        """Rows of documents that don't live (any more)."""
        field, kind = _OWNERS[index]
        fields = (field, "deleted") if index is Index.GATE else (field,)
        async for rows in self._scan(index, fields):
            owners = sorted({DocumentId(row.source[field]) for row in rows})
            documents = await self._reader.rows(Index.DOCUMENTS, owners)
            for row in rows:
                owner = documents.get(DocumentId(row.source[field]))
                gone = owner is None or owner.source["deleted"]
                if gone and not row.source.get("deleted", False):
                    report.add(kind, row.row_id, f"its document {row.source[field]} does not exist")
            self.progress(report)

    async def _vectors(self, report: VerifyReport) -> None:
        query = {
            "bool": {"filter": [owned_by(self.namespace)], "must_not": [{"exists": {"field": "vector"}}]}
        }
        without = await self.gate.count(self.principal, Index.CHUNKS, query)
        for _ in range(without):
            report.add("missing_vector", self.name, "a chunk row without a vector")

    def _scan(self, index: Index, fields: tuple[str, ...]) -> AsyncGenerator[list[StoredRow], None]:
        query = owned_by(self.namespace)
        wanted = Wanted(principal=self.principal, index=index, query=query, fields=fields)
        return scan_pages(self.gate, wanted, page_rows=BATCH)


_OWNERS: dict[Index, tuple[str, Kind]] = {
    Index.GATE: ("doc_id", "orphan_gate"),
    Index.CHUNKS: ("doc_id", "orphan_chunk"),
    Index.LINKS: ("from_doc_id", "orphan_link"),
    Index.MENTIONS: ("doc_id", "orphan_mention"),
    Index.RELATIONS: ("doc_id", "orphan_relation"),
    Index.EXTRACTIONS: ("doc_id", "orphan_extraction"),
}


def _next(entries: Iterator[FileEntry]) -> list[FileEntry]:
    return list(islice(entries, BATCH))
