"""Rows of unlinked mentions as the index holds them: edges, and marks of common names.

A mark is a row without a target. It says: this text says a name that is too common for edges. Marks are kept on
enough texts (`marks_due`) that the name can't fall back under the cap unseen: only where a text with a row of the
name changes or goes may it have, and then it is counted again. Nobody walks a row without a target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from indexers.domain.identity import (
    DocumentId,
    DocumentKey,
    LinkId,
    Principal,
    TenantId,
    link_id,
)
from indexers.domain.links import VisibleScope
from indexers.domain.title_names import UNLINKED_MENTION
from indexers.linking.sources import UNLINKED, StoredLink, link_removal, stored_link
from indexers.linking.unlinked_names import ScopedName, in_scopes, readers_of, saying, search_all
from indexers.opensearch.find import DOCUMENTS_MAX, Wanted, find_all
from indexers.opensearch.gate import Gate, RowRef, RowWrite
from indexers.opensearch.rows import Index, LinkRow, owner_fields, owner_of
from indexers.opensearch.visibility import Query

SAYER_FIELDS = ("doc_id", "path", "version", "content_hash", "scope", "agent_id", "team_id")
_AIMED: Query = {"exists": {"field": "to_doc_id"}}
#: Names of one query.
_NAMES_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sayer:
    """A living document whose text says some name: which version, with which bytes."""

    key: DocumentKey
    version: int
    content_hash: str

    @classmethod
    def of(cls, tenant_id: TenantId, source: dict[str, Any]) -> Sayer:
        return cls(
            key=owner_of(tenant_id, source).document(source["path"]),
            version=source["version"],
            content_hash=source["content_hash"],
        )


def marks_due(cap: int) -> int:
    """Twice what proves a name common, so that rows of versions just left behind can't pass for the rest."""
    return 2 * (cap + 1)


def mark_row(sayer: Sayer, name: str) -> LinkRow:
    return LinkRow(
        **owner_fields(sayer.key.namespace),
        from_doc_id=sayer.key.doc_id,
        from_path=sayer.key.path,
        to_doc_id=None,
        target=name,
        target_key=name,
        target_name_key="",
        link_type=UNLINKED_MENTION,
        occurrences=[],
        resolved=False,
        ambiguous=False,
        version=sayer.version,
    )


async def rows_from(gate: Gate, tenant_id: TenantId, doc_ids: Iterable[DocumentId]) -> list[StoredLink]:
    """All rows of these documents, of whatever version; the caller has refreshed the links."""
    ids = sorted(doc_ids)
    queries = [
        {"bool": {"filter": [UNLINKED, {"terms": {"from_doc_id": ids[at : at + DOCUMENTS_MAX]}}]}}
        for at in range(0, len(ids), DOCUMENTS_MAX)
    ]
    return await _found(gate, tenant_id, queries)


async def edges_to(gate: Gate, tenant_id: TenantId, doc_ids: Iterable[DocumentId]) -> list[StoredLink]:
    ids = sorted(doc_ids)
    queries = [
        {"bool": {"filter": [UNLINKED, {"terms": {"to_doc_id": ids[at : at + DOCUMENTS_MAX]}}]}}
        for at in range(0, len(ids), DOCUMENTS_MAX)
    ]
    return await _found(gate, tenant_id, queries)


async def edges_by_name(gate: Gate, tenant_id: TenantId, names: Iterable[ScopedName]) -> list[StoredLink]:
    """Edges under a name by authors whom the name's count in this scope concerns."""
    queries = [
        {"bool": {"filter": [UNLINKED, _AIMED, _named(part), *in_scopes(readers_of(scope))]}}
        for scope, part in _by_scope(names)
    ]
    return await _found(gate, tenant_id, queries)


async def marked(gate: Gate, tenant_id: TenantId, names: Iterable[ScopedName]) -> set[ScopedName]:
    """Those of the names that somebody found common in their scope."""
    found: set[ScopedName] = set()
    for scope, part in _by_scope(names):
        query: Query = {
            "bool": {"filter": [UNLINKED, _named(part), *in_scopes((scope,))], "must_not": [_AIMED]}
        }
        found |= {ScopedName(link.row.target_key, scope) for link in await _found(gate, tenant_id, [query])}
    return found


async def keep_marks(gate: Gate, tenant_id: TenantId, names: Sequence[ScopedName], *, cap: int) -> None:
    """Marks of common names where there are too few. Not on a version that its document has left behind."""
    due = marks_due(cap)
    counting = [
        {
            "query": {"bool": {"filter": [UNLINKED, *in_scopes((one.scope,)), _named([one.name])]}},
            "size": 0,
            "terminate_after": due,
            "track_total_hits": True,
        }
        for one in names
    ]
    counts = await search_all(gate, tenant_id, counting, Index.LINKS)
    short = [one for one, page in zip(names, counts, strict=True) if page.total < due]
    asked = [
        {"query": saying(one.name, (one.scope,)), "size": due, "_source": list(SAYER_FIELDS)} for one in short
    ]
    wanted: dict[LinkId, tuple[Sayer, str]] = {}
    for one, page in zip(short, await search_all(gate, tenant_id, asked), strict=True):
        for hit in page.hits:
            sayer = Sayer.of(tenant_id, hit.source)
            wanted[link_id(sayer.key.doc_id, sayer.version, one.name, UNLINKED_MENTION)] = (sayer, one.name)
    await _create_marks(gate, tenant_id, wanted)


async def living_versions(
    gate: Gate, tenant_id: TenantId, doc_ids: Sequence[DocumentId]
) -> dict[DocumentId, int]:
    """Versions of living documents as they are now."""
    principal = Principal.pipeline(tenant_id)
    refs = [RowRef(principal=principal, row_id=doc_id) for doc_id in doc_ids]
    rows = await gate.get_many(Index.DOCUMENTS, refs, fields=("version", "deleted")) if refs else []
    return {
        doc_id: row.source["version"]
        for doc_id, row in zip(doc_ids, rows, strict=True)
        if row is not None and not row.source["deleted"]
    }


async def newest_visible(gate: Gate, tenant_id: TenantId) -> int:
    """Sequence number of the newest document that a search shows, -1 without any."""
    body = {"query": {"match_all": {}}, "size": 1, "sort": [{"_seq_no": "desc"}], "_source": ["doc_id"]}
    [page] = await search_all(gate, tenant_id, [body | {"track_total_hits": False}])
    return page.hits[0].seq_no if page.hits else -1


async def sayers_of_rows(gate: Gate, tenant_id: TenantId, links: Iterable[StoredLink]) -> list[Sayer]:
    """The documents of these rows where they live; rows of a version left behind are their own worker's affair."""
    versions: dict[DocumentId, set[int]] = {}
    for link in links:
        versions.setdefault(DocumentId(link.row.from_doc_id), set()).add(link.row.version)
    principal = Principal.pipeline(tenant_id)
    refs = [RowRef(principal=principal, row_id=doc_id) for doc_id in versions]
    found = await gate.get_many(Index.DOCUMENTS, refs, fields=(*SAYER_FIELDS, "deleted")) if refs else []
    return [
        Sayer.of(tenant_id, row.source)
        for doc_id, row in zip(versions, found, strict=True)
        if row is not None and not row.source["deleted"] and row.source["version"] in versions[doc_id]
    ]


async def _create_marks(gate: Gate, tenant_id: TenantId, wanted: dict[LinkId, tuple[Sayer, str]]) -> None:
    principal = Principal.pipeline(tenant_id)
    refs = [RowRef(principal=principal, row_id=row_id) for row_id in wanted]
    present = await gate.get_many(Index.LINKS, refs, fields=("version",)) if refs else []
    missing = [(row_id, *wanted[row_id]) for row_id, row in zip(wanted, present, strict=True) if row is None]
    if not missing:
        return
    await gate.write(
        [
            RowWrite(
                principal=principal,
                index=Index.LINKS,
                row_id=row_id,
                action="create",
                row=mark_row(sayer, name),
            )
            for row_id, sayer, name in missing
        ]
    )
    living = await living_versions(gate, tenant_id, sorted({sayer.key.doc_id for _, sayer, _ in missing}))
    late = [row_id for row_id, sayer, _ in missing if living.get(sayer.key.doc_id) != sayer.version]
    await remove_rows(gate, tenant_id, late)


async def remove_rows(gate: Gate, tenant_id: TenantId, row_ids: Sequence[str]) -> None:
    """Rows of versions left behind: right whatever has happened to them since."""
    removals = [link_removal(tenant_id, row_id) for row_id in row_ids]
    if removals:
        await gate.write(removals)


def _named(names: Sequence[str]) -> Query:
    return {"terms": {"target_key": list(names)}}


def _by_scope(names: Iterable[ScopedName]) -> Iterator[tuple[VisibleScope, list[str]]]:
    grouped: dict[VisibleScope, list[str]] = {}
    for one in names:
        grouped.setdefault(one.scope, []).append(one.name)
    for scope, members in grouped.items():
        for start in range(0, len(members), _NAMES_MAX):
            yield scope, members[start : start + _NAMES_MAX]


async def _found(gate: Gate, tenant_id: TenantId, queries: Sequence[Query]) -> list[StoredLink]:
    principal = Principal.pipeline(tenant_id)
    wanted = [Wanted(principal=principal, index=Index.LINKS, query=query) for query in queries]
    return [
        stored_link(row.row_id, row.source, row.seq_no, row.primary_term)
        for rows in await find_all(gate, wanted)
        for row in rows
    ]
