"""What is to be done for one document of a batch, and the event that tells the later agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from indexers.bookkeeping import ERASED, gate_row
from indexers.domain.identity import DocumentKey, LinkId, Principal, TenantId
from indexers.linking.sources import ChangedDocument
from indexers.linking.unlinked import NamesChanged
from indexers.linking.unlinked_look import NamedText
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import DocumentFacts, DocumentRow, GateRow, Index, facts_of
from indexers.planning import PlannedDocument, Seen
from streams.agents.ingest.decode import Arrival, MemoryEvent
from streams.events import ChunkSpan, DocumentChanged, FileChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One document that changes. `planned` None: it is deleted, and `row` its tombstone."""

    arrival: Arrival
    seen: Seen
    row: DocumentRow
    planned: PlannedDocument | None
    #: What was fully indexed before.
    former: GateRow | None
    #: Followed events that it carries out.
    tracks: tuple[MemoryEvent, ...] = ()

    @property
    def document(self) -> DocumentKey:
        return self.seen.document

    @property
    def is_erased(self) -> bool:
        return self.row.no_vector_reason == ERASED

    def remembering(self, moved_from: str | None) -> Work:
        """A tombstone keeps where its document was before: an erasure has to find its name there too."""
        if moved_from is None or self.planned is not None or self.is_erased:
            return self
        return replace(self, row=msgspec.structs.replace(self.row, moved_from=moved_from))

    @property
    def tenant_id(self) -> TenantId:
        return self.seen.document.namespace.tenant_id

    @property
    def changed(self) -> ChangedDocument:
        former = [] if self.former is None else self.former.alias_keys
        return ChangedDocument(
            key=self.document,
            version=self.seen.version,
            deleted=self.planned is None,
            alias_keys=tuple(sorted({*self.row.alias_keys, *former})),
        )

    def names_changed(self, present: frozenset[str]) -> NamesChanged:
        """`present`: the names that the document's row gave it before this work."""
        planned = self.planned
        former = [] if self.former is None else self.former.names
        now = frozenset[str]() if planned is None else frozenset(planned.names)
        return NamesChanged(
            key=self.document,
            version=self.seen.version,
            text=None
            if planned is None
            else NamedText(
                key=self.document, version=self.seen.version, text=planned.text, said=planned.said
            ),
            names=now,
            turned=(now ^ frozenset(former)) | (now ^ present),
        )


def row_writes(work: Work) -> list[RowWrite]:
    """The document's row first, then its edges, unresolved."""
    principal = work.document.namespace.principal
    document = RowWrite(
        principal=principal,
        index=Index.DOCUMENTS,
        row_id=work.document.doc_id,
        action="index",
        row=work.row,
        version=work.seen.version,
    )
    links = {} if work.planned is None else work.planned.links
    return [
        document,
        *(
            RowWrite(principal=principal, index=Index.LINKS, row_id=row_id, action="create", row=row)
            for row_id, row in links.items()
        ),
    ]


def own_link_ids(work: Work) -> list[LinkId]:
    return [] if work.planned is None else list(work.planned.links)


def gate_write(work: Work, versions: str, *, complete: bool = True) -> RowWrite:
    """Not `complete`: a row of no bytes' hash, so that neither these nor the former bytes are skipped."""
    row = gate_row(
        work.seen,
        content_hash=work.row.content_hash if complete else "",
        versions=ERASED if work.is_erased else versions,
        alias_keys=work.row.alias_keys,
        names=() if work.planned is None else work.planned.names,
        deleted=work.planned is None,
    )
    return RowWrite(
        # The pipeline's own notes, under ids that follow from their owners: nobody looks whose row is there.
        principal=Principal.pipeline(work.tenant_id),
        index=Index.GATE,
        row_id=work.document.doc_id,
        action="index",
        row=row,
        version=work.seen.version,
    )


def announcement(work: Work, inline_max_bytes: int) -> DocumentChanged:
    event = work.arrival.event
    planned = work.planned
    chunks = () if planned is None else planned.chunks
    text = planned.text if planned is not None and chunks else None
    if text is not None and len(text.encode("utf-8", "surrogatepass")) > inline_max_bytes:
        text = None
    return DocumentChanged(
        event_id=event.event_id,
        tenant_id=event.tenant_id,
        agent_id=event.agent_id,
        scope=event.scope,
        team_id=event.team_id,
        occurred_at=event.occurred_at,
        version=event.version,
        path=work.document.path,
        kind="deleted" if planned is None else "upserted",
        doc_id=work.document.doc_id,
        content_hash=work.row.content_hash,
        chunker_version=work.row.chunker_version,
        chunks=_spans(planned),
        facts=DocumentFacts() if planned is None else facts_of(planned.row),
        text=text,
        erased=work.is_erased,
        moved_from=_other_side(work, "moved_from"),
        moved_to=_other_side(work, "moved_to"),
        tracks=[event.event_id for event in work.tracks],
    )


def by_tenant(works: Sequence[Work]) -> dict[TenantId, list[Work]]:
    grouped: dict[TenantId, list[Work]] = {}
    for work in works:
        grouped.setdefault(work.tenant_id, []).append(work)
    return grouped


def _spans(planned: PlannedDocument | None) -> list[ChunkSpan]:
    if planned is None:
        return []
    return [
        ChunkSpan(
            ordinal=chunk.ordinal,
            start=chunk.start,
            end=chunk.end,
            heading_path=list(chunk.heading_path),
            chunk_hash=chunk.chunk_hash,
        )
        for chunk in planned.chunks
    ]


def _other_side(work: Work, side: str) -> str | None:
    event = work.arrival.event
    path = getattr(event, side) if isinstance(event, FileChange) else None
    return None if path is None else work.document.namespace.document(path).doc_id
