"""Links that may name a document which has come, changed or gone, and rows of links that no longer stand."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from indexers.domain.identity import DocumentKey, Namespace, Principal, Scope, TenantId
from indexers.domain.names import name_key, with_suffix
from indexers.domain.title_names import UNLINKED_MENTION
from indexers.opensearch.find import DOCUMENTS_MAX, Wanted, find_all, find_pages
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index, LinkRow

#: Nobody wrote these as links: they have rules of their own (indexers.linking.unlinked).
UNLINKED: dict[str, Any] = {"term": {"link_type": UNLINKED_MENTION}}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLink:
    """A link row as it stands in the store, with what is needed to replace exactly this state of it."""

    row_id: str
    row: LinkRow
    seq_no: int
    primary_term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedDocument:
    """A document after its event. `alias_keys`: those that it has, and those that it had."""

    key: DocumentKey
    version: int
    deleted: bool
    alias_keys: tuple[str, ...]


def naming_query(namespace: Namespace, documents: Sequence[ChangedDocument]) -> dict[str, Any]:
    """Links that may lead to one of these documents of one namespace, or do so now."""
    named = [
        {"terms": {"target_name_key": sorted({name_key(d.key.path) for d in documents})}},
        {"terms": {"to_doc_id": sorted(d.key.doc_id for d in documents)}},
    ]
    aliases = sorted({with_suffix(alias) for d in documents for alias in d.alias_keys})
    if aliases:
        named.append({"terms": {"target_key": aliases}})
    return {
        "bool": {
            "filter": [*_authors(namespace), {"bool": {"should": named, "minimum_should_match": 1}}],
            "must_not": [UNLINKED],
        }
    }


def outdated_query(documents: Iterable[ChangedDocument]) -> dict[str, Any]:
    """Link rows of these documents that their present version doesn't have. Never rows of a newer version."""
    clauses = []
    for document in documents:
        bound = "lte" if document.deleted else "lt"
        terms = [
            {"term": {"from_doc_id": document.key.doc_id}},
            {"range": {"version": {bound: document.version}}},
        ]
        clauses.append({"bool": {"filter": terms}})
    return {"bool": {"should": clauses, "minimum_should_match": 1, "must_not": [UNLINKED]}}


async def links_naming(
    gate: Gate, tenant_id: TenantId, documents: Sequence[ChangedDocument]
) -> AsyncGenerator[list[StoredLink], None]:
    """In pages: a name like `index` may stand in more links than fit in memory."""
    principal = Principal.pipeline(tenant_id)
    groups: defaultdict[Namespace, list[ChangedDocument]] = defaultdict(list)
    for document in documents:
        groups[document.key.namespace].append(document)
    wanted = [
        Wanted(principal=principal, index=Index.LINKS, query=naming_query(namespace, members))
        for namespace, members in groups.items()
    ]
    async with aclosing(find_pages(gate, wanted)) as pages:
        async for _, rows in pages:
            yield [stored_link(row.row_id, row.source, row.seq_no, row.primary_term) for row in rows]


async def outdated_links(gate: Gate, tenant_id: TenantId, documents: Sequence[ChangedDocument]) -> list[str]:
    """Ids of link rows of earlier versions. Found by search: the caller has refreshed the links."""
    principal = Principal.pipeline(tenant_id)
    slices = [documents[i : i + DOCUMENTS_MAX] for i in range(0, len(documents), DOCUMENTS_MAX)]
    wanted = [
        Wanted(principal=principal, index=Index.LINKS, query=outdated_query(members), fields=("from_doc_id",))
        for members in slices
    ]
    return [row.row_id for rows in await find_all(gate, wanted) for row in rows]


def link_removal(tenant_id: TenantId, row_id: str) -> RowWrite:
    """An edge's id names its document's version, so removing it is right whatever has happened to the row.

    Its version is the clock's: rows that are created and replaced count from 1, or from what they were
    removed with, always below.
    """
    return RowWrite(
        principal=Principal.pipeline(tenant_id),
        index=Index.LINKS,
        row_id=row_id,
        action="delete",
        version=time.time_ns(),
    )


def stored_link(row_id: str, source: dict[str, Any], seq_no: int, primary_term: int) -> StoredLink:
    return StoredLink(
        row_id=row_id, row=msgspec.convert(source, LinkRow), seq_no=seq_no, primary_term=primary_term
    )


def _authors(namespace: Namespace) -> list[dict[str, Any]]:
    """Namespaces whose links may lead into this one (the mirror of indexers.domain.links.visible_scopes)."""
    match namespace.scope:
        case Scope.PERSONAL:
            return [{"term": {"scope": "personal"}}, {"term": {"agent_id": namespace.agent_id}}]
        case Scope.TEAM:
            return [{"term": {"scope": "team"}}, {"term": {"team_id": namespace.team_id}}]
        case Scope.SHARED:
            return []
