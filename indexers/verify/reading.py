"""Documents with all their rows, as a comparison from the files' side reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from indexers.domain.identity import DocumentId, Principal
from indexers.domain.title_names import UNLINKED_MENTION
from indexers.opensearch.find import DOCUMENTS_MAX, Wanted, find_all
from indexers.opensearch.gate import Gate, RowRef, StoredRow
from indexers.opensearch.rows import (
    ChunkRow,
    DocumentRow,
    ExtractionRow,
    GateRow,
    Index,
    LinkRow,
    MentionRow,
    RelationRow,
)
from indexers.opensearch.templates import VECTOR_FIELDS
from indexers.verify.files import StoredDocument

_CHUNK_FIELDS = tuple(name for name in ChunkRow.__struct_fields__ if name not in VECTOR_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """For one principal. The caller has refreshed."""

    gate: Gate
    principal: Principal

    async def documents(self, doc_ids: Sequence[DocumentId]) -> dict[DocumentId, StoredDocument]:
        """Living documents with all their rows."""
        rows = await self.rows(Index.DOCUMENTS, doc_ids)
        gates = await self.rows(Index.GATE, doc_ids)
        living = [doc_id for doc_id, row in rows.items() if not row.source["deleted"]]
        chunks = await self._rows_of(Index.CHUNKS, "doc_id", living, _CHUNK_FIELDS)
        found = await self._rows_of(Index.LINKS, "from_doc_id", living, LinkRow.__struct_fields__)
        links = {
            doc_id: {i: msgspec.convert(s, LinkRow) for i, s in rows.items()}
            for doc_id, rows in found.items()
        }
        mentions = await self._rows_of(Index.MENTIONS, "doc_id", living, MentionRow.__struct_fields__)
        relations = await self._rows_of(Index.RELATIONS, "doc_id", living, RelationRow.__struct_fields__)
        extractions = await self.rows(Index.EXTRACTIONS, living)
        return {
            doc_id: StoredDocument(
                row=msgspec.convert(rows[doc_id].source, DocumentRow),
                gate=msgspec.convert(gates[doc_id].source, GateRow) if doc_id in gates else None,
                chunks={i: msgspec.convert(s, ChunkRow) for i, s in chunks[doc_id].items()},
                links={i: r for i, r in links[doc_id].items() if r.link_type != UNLINKED_MENTION},
                unlinked={i: r for i, r in links[doc_id].items() if r.link_type == UNLINKED_MENTION},
                mentions={i: msgspec.convert(s, MentionRow) for i, s in mentions[doc_id].items()},
                relations={i: msgspec.convert(s, RelationRow) for i, s in relations[doc_id].items()},
                extraction=msgspec.convert(extractions[doc_id].source, ExtractionRow)
                if doc_id in extractions
                else None,
            )
            for doc_id in living
        }

    async def rows(self, index: Index, doc_ids: Sequence[DocumentId]) -> dict[DocumentId, StoredRow]:
        refs = [RowRef(principal=self.principal, row_id=doc_id) for doc_id in doc_ids]
        found = await self.gate.get_many(index, refs) if refs else []
        return {doc_id: row for doc_id, row in zip(doc_ids, found, strict=True) if row is not None}

    async def _rows_of(
        self, index: Index, field: str, doc_ids: Sequence[DocumentId], fields: tuple[str, ...]
    ) -> dict[str, dict[str, dict[str, Any]]]:
        """Document → row id → row."""
        wanted = [
            Wanted(
                principal=self.principal,
                index=index,
                query={"terms": {field: list(doc_ids[i : i + DOCUMENTS_MAX])}},
                fields=fields,
            )
            for i in range(0, len(doc_ids), DOCUMENTS_MAX)
        ]
        grouped: dict[str, dict[str, dict[str, Any]]] = {doc_id: {} for doc_id in doc_ids}
        for rows in await find_all(self.gate, wanted):
            for row in rows:
                grouped[row.source[field]][row.row_id] = row.source
        return grouped
