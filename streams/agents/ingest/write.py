"""Rows of a batch into the store, and its edges to where they lead. Repeating any of it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from indexers.domain.identity import DocumentId, Principal, TenantId
from indexers.domain.title_names import names_of
from indexers.errors import PoisonRecord
from indexers.event_rows import stage_write
from indexers.linking.settle import read_links, settle
from indexers.linking.sources import StoredLink, link_removal, links_naming, outdated_links
from indexers.linking.unlinked import Naming, settle_mentions
from indexers.opensearch.gate import Gate, RowRef, RowWrite, WriteResult
from indexers.opensearch.rows import EventRow, Index, LinkRow
from indexers.together import together
from streams.agents.ingest.work import Work, by_tenant, gate_write, own_link_ids, row_writes
from streams.batch import Poisoned

#: Settled side by side: what they hold is bounded, and no request waits long for one of the client's connections.
TENANTS_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """`stale`: a newer version is stored already, a success that changes nothing.

    `rejected`: a row was refused. Where that is an edge, its document is among the applied all the same (its row
    is the new one, and nothing of the former may stay beside it) and in `incomplete`.
    """

    applied: list[Work]
    stale: list[Work]
    rejected: list[Poisoned]
    incomplete: set[DocumentId]


async def write_documents(gate: Gate, works: Sequence[Work], naming: Naming) -> Written:
    """Document rows and edges, settled and without leftovers of earlier versions. No gate rows yet."""
    present = await _present(gate, works)
    works = [work.remembering(present[work.document.doc_id].moved_from) for work in works]
    writes = [row_writes(work) for work in works]
    results = await gate.write([write for group in writes for write in group])
    written = Written(applied=[], stale=[], rejected=[], incomplete=set())
    own: dict[TenantId, list[StoredLink]] = {}
    at = 0
    for work, group in zip(works, writes, strict=True):
        answers = results[at : at + len(group)]
        at += len(group)
        if _account(work, answers, written):
            own.setdefault(work.tenant_id, []).extend(await _own_links(gate, work, answers[1:]))
    applied = {work.document.doc_id for work in written.applied}
    await _remove_links(gate, [work for work in works if work.document.doc_id not in applied])
    if written.applied:
        # In this order: an edge that was made by a look at the documents as they were before is seen then.
        await gate.refresh(Index.DOCUMENTS)
        await gate.refresh(Index.LINKS)
        # A dozen requests each, one after the other: a tenant doesn't wait for its neighbours' too.
        await together(
            *(
                _settle_tenant(gate, tenant_id, members, own.get(tenant_id, []), present, naming)
                for tenant_id, members in by_tenant(written.applied).items()
            ),
            at_once=TENANTS_AT_ONCE,
        )
        await _remove_links(gate, await _superseded(gate, written.applied))
    return written


async def remove_erased(gate: Gate, written: Written) -> None:
    """Relations of erased documents: the journal no longer tells which ones there were."""
    erased = [work for work in written.applied if work.is_erased]
    for tenant_id, members in by_tenant(erased).items():
        query = {"terms": {"doc_id": [work.document.doc_id for work in members]}}
        await gate.delete_matching(Principal.pipeline(tenant_id), Index.RELATIONS, query)


async def write_gate_rows(
    gate: Gate, written: Written, versions: str, stages: Sequence[EventRow] = ()
) -> list[Poisoned]:
    """Last of all: from here on the same bytes are skipped, unless the store refused a part of them.

    `stages` go with them, in one request; one that is refused is not worth a document.
    """
    gates = [
        gate_write(work, versions, complete=work.document.doc_id not in written.incomplete)
        for work in written.applied
    ]
    results = await gate.write([*gates, *map(stage_write, stages)])
    return [
        _poisoned(work, result.reason)
        for work, result in zip(written.applied, results, strict=False)
        if result.status == "rejected"
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Present:
    """What a document's row says now: after a crash its names aren't what the gate row remembers."""

    names: frozenset[str] = frozenset()
    moved_from: str | None = None


async def _present(gate: Gate, works: Sequence[Work]) -> dict[DocumentId, _Present]:
    refs = [
        RowRef(principal=work.document.namespace.principal, row_id=work.document.doc_id) for work in works
    ]
    fields = ("title", "aliases", "moved_from")
    rows = await gate.get_many(Index.DOCUMENTS, refs, fields=fields) if refs else []
    return {
        work.document.doc_id: _Present()
        if row is None
        else _Present(
            names=frozenset(names_of(row.source["title"], row.source["aliases"])),
            moved_from=row.source["moved_from"],
        )
        for work, row in zip(works, rows, strict=True)
    }


def _account(work: Work, answers: Sequence[WriteResult], written: Written) -> bool:
    """Whether the document's row is stored now."""
    document, *edges = answers
    if document.status == "rejected":
        written.rejected.append(_poisoned(work, document.reason))
        return False
    if document.status == "stale":
        written.stale.append(work)
        return False
    written.applied.append(work)
    refused = next((edge for edge in edges if edge.status == "rejected"), None)
    if refused is not None:
        written.rejected.append(_poisoned(work, refused.reason))
        written.incomplete.add(work.document.doc_id)
    return True


def _poisoned(work: Work, reason: str | None) -> Poisoned:
    error = PoisonRecord("rejected_by_store", f"{work.document.path}: {reason or 'no reason given'}")
    return Poisoned(record=work.arrival.record, error=error)


async def _own_links(gate: Gate, work: Work, answers: Sequence[WriteResult]) -> list[StoredLink]:
    """Edges just created, as they stand; of a repeated batch they are there already and may be resolved."""
    planned = {} if work.planned is None else work.planned.links
    own: list[StoredLink] = []
    present: list[str] = []
    for answer, row in zip(answers, planned.values(), strict=True):
        if answer.status == "applied" and answer.seq_no is not None and answer.primary_term is not None:
            own.append(
                StoredLink(
                    row_id=answer.row_id, row=row, seq_no=answer.seq_no, primary_term=answer.primary_term
                )
            )
        else:
            present.append(answer.row_id)
    if not present:
        return own
    by_id: dict[str, LinkRow] = {str(row_id): row for row_id, row in planned.items()}
    found = await read_links(gate, work.tenant_id, present)
    return own + [await _renewed(gate, work, link, by_id[link.row_id]) for link in found]


async def _renewed(gate: Gate, work: Work, stored: StoredLink, planned: LinkRow) -> StoredLink:
    """Same version, another parser: the row gets what the parser says now and keeps where it leads."""
    wanted = msgspec.structs.replace(
        planned, to_doc_id=stored.row.to_doc_id, resolved=stored.row.resolved, ambiguous=stored.row.ambiguous
    )
    if wanted == stored.row:
        return stored
    replace = RowWrite(
        principal=Principal.pipeline(work.tenant_id),
        index=Index.LINKS,
        row_id=stored.row_id,
        action="replace_if",
        row=wanted,
        seq_no=stored.seq_no,
        primary_term=stored.primary_term,
    )
    [result] = await gate.write([replace])
    if result.status == "applied" and result.seq_no is not None and result.primary_term is not None:
        return StoredLink(
            row_id=stored.row_id, row=wanted, seq_no=result.seq_no, primary_term=result.primary_term
        )
    [again] = await read_links(gate, work.tenant_id, [stored.row_id]) or [stored]
    return again


async def _settle_tenant(
    gate: Gate,
    tenant_id: TenantId,
    works: Sequence[Work],
    own: list[StoredLink],
    present: Mapping[DocumentId, _Present],
    naming: Naming,
) -> None:
    """Links both ways, then names."""
    await _settle_links(gate, tenant_id, works, own)
    changed = [work.names_changed(present[work.document.doc_id].names) for work in works]
    await settle_mentions(gate, tenant_id, changed, naming)


async def _settle_links(
    gate: Gate, tenant_id: TenantId, works: Sequence[Work], own: list[StoredLink]
) -> None:
    """Both ways: where the batch's edges lead, and which other edges may lead to the batch's documents."""
    changed = [work.changed for work in works]
    outdated = await outdated_links(gate, tenant_id, changed)
    await gate.write([link_removal(tenant_id, row_id) for row_id in outdated])
    known = {link.row_id for link in own} | set(outdated)
    await settle(gate, tenant_id, own)
    async for page in links_naming(gate, tenant_id, changed):
        await settle(gate, tenant_id, [link for link in page if link.row_id not in known])


async def _superseded(gate: Gate, works: Sequence[Work]) -> list[Work]:
    """Works whose document became newer meanwhile: its other writer may have looked before our edges came."""
    linked = [work for work in works if work.planned is not None and work.planned.links]
    refs = [RowRef(principal=w.document.namespace.principal, row_id=w.document.doc_id) for w in linked]
    rows = await gate.get_many(Index.DOCUMENTS, refs, fields=["version"]) if refs else []
    return [
        work
        for work, row in zip(linked, rows, strict=True)
        if row is not None and row.source["version"] > work.seen.version
    ]


async def _remove_links(gate: Gate, works: Sequence[Work]) -> None:
    removals = [link_removal(work.tenant_id, row_id) for work in works for row_id in own_link_ids(work)]
    if removals:
        await gate.write(removals)
