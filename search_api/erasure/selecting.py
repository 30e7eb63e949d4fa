"""Which documents an erasure speaks of. Tombstones are among them: a forgotten document still has its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from indexers.bookkeeping import ERASED
from indexers.domain.entities.names import name_key
from indexers.domain.identity import DocumentKey, Principal, TenantId
from indexers.event_rows import POINTER, pointer_id
from indexers.opensearch.gate import Gate, GatedSearch, RowAsked, RowRef, StoredRow
from indexers.opensearch.rows import Index, owner_of
from search_api.erasure.models import DOCUMENTS_MAX, ErasureBody

ROW_FIELDS: Final = (
    "doc_id", "path", "moved_from", "version", "deleted", "no_vector_reason",
    "tenant_id", "agent_id", "team_id", "scope",
)  # fmt: skip
_POINTER_FIELDS: Final = ("doc_id", "path", "version", "tenant_id", "agent_id", "team_id", "scope")
#: Former places of one document that are followed.
_MOVES_MAX: Final = 20
#: Names of one subject, and labels under which they stand.
_NAMES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A document to be erased. `moved_from`: id of what it was before. `fenced`: it is erased, and has no path more."""

    doc_id: str
    document: DocumentKey
    version: int
    moved_from: str | None
    deleted: bool
    fenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    targets: tuple[Target, ...]
    more: bool = False


def may_erase(principal: Principal, target: Target) -> bool:
    """Its author, or an admin of the tenant."""
    return "admin" in principal.roles or target.document.namespace.agent_id == principal.agent_id


async def targets_of(gate: Gate, principal: Principal, doc_ids: Sequence[str]) -> list[Target | None]:
    """In the order asked, as last written; None: no such document, or not one that the principal may see.

    A memory that is accepted is known by its pointer until its row is there.
    """
    asked = [
        RowAsked(index=index, ref=RowRef(principal=principal, row_id=row_id), fields=fields)
        for doc_id in doc_ids
        for index, row_id, fields in (
            (Index.DOCUMENTS, doc_id, ROW_FIELDS),
            (Index.EVENTS, pointer_id(doc_id), _POINTER_FIELDS),
        )
    ]
    rows = iter(await gate.get_rows(asked) if asked else [])
    return [
        None if (row := document or pointer) is None else _target(principal, row)
        for document, pointer in zip(rows, rows, strict=True)
    ]


async def with_former_places(gate: Gate, principal: Principal, targets: Sequence[Target]) -> list[Target]:
    """And where they were before they were moved: the tombstones there hold their former names."""
    found = {target.doc_id: target for target in targets}
    latest = list(targets)
    for _ in range(_MOVES_MAX):
        wanted = [target.moved_from for target in latest if target.moved_from is not None]
        rows = await targets_of(gate, principal, [doc_id for doc_id in wanted if doc_id not in found])
        # A living document at the former place is another one.
        latest = [one for one in rows if one is not None and one.deleted and not one.fenced]
        if not latest:
            break
        found |= {target.doc_id: target for target in latest}
    return list(found.values())


async def select(gate: Gate, principal: Principal, body: ErasureBody) -> Selected:
    """By agent, session or subject; at most 1,000 that aren't erased yet."""
    sight = Principal.pipeline(principal.tenant_id) if "admin" in principal.roles else principal
    query = await _query(gate, sight, body)
    if query is None:
        return Selected(targets=())
    filters: list[dict[str, Any]] = [query]
    if "admin" not in principal.roles:
        filters.append({"term": {"agent_id": principal.agent_id}})
    return await _matching(gate, sight, filters, pointers=filters if body.agent is not None else None)


async def select_tenant(gate: Gate, tenant_id: TenantId) -> Selected:
    """All of a tenant that isn't erased yet, at most 1,000."""
    return await _matching(gate, Principal.pipeline(tenant_id), [{"match_all": {}}], pointers=[])


async def _matching(
    gate: Gate,
    sight: Principal,
    filters: list[dict[str, Any]],
    *,
    pointers: list[dict[str, Any]] | None = None,
) -> Selected:
    """`pointers`: the same for memories that are only accepted; None: they can't be told by what is asked for."""
    await gate.refresh(Index.DOCUMENTS)
    search = {
        "query": {"bool": {"filter": filters, "must_not": [{"term": {"no_vector_reason": ERASED}}]}},
        "size": DOCUMENTS_MAX,
        "sort": [{"doc_id": "asc"}],
        "track_total_hits": True,
        "_source": list(ROW_FIELDS),
    }
    [page] = await gate.search_many([GatedSearch(principal=sight, index=Index.DOCUMENTS, body=search)])
    targets = {hit.source["doc_id"]: _target(sight, hit) for hit in page.hits}
    more = page.total > len(targets)
    if pointers is not None and not more:
        accepted, more = await _accepted(gate, sight, pointers)
        targets |= accepted
    return Selected(targets=tuple(targets.values()), more=more)


async def _accepted(
    gate: Gate, sight: Principal, filters: list[dict[str, Any]]
) -> tuple[dict[str, Target], bool]:
    """Memories that are accepted and have no row yet; those that have one are found by it."""
    await gate.refresh(Index.EVENTS)
    body = {
        "query": {"bool": {"filter": [{"term": {"stage": POINTER}}, *filters]}},
        "size": DOCUMENTS_MAX,
        "track_total_hits": True,
        "sort": [{"doc_id": "asc"}],
        "_source": ["doc_id"],
    }
    [page] = await gate.search_many([GatedSearch(principal=sight, index=Index.EVENTS, body=body)])
    found = await targets_of(gate, sight, [hit.source["doc_id"] for hit in page.hits])
    targets = {target.doc_id: target for target in found if target is not None and not target.fenced}
    return targets, page.total > len(page.hits)


async def _query(gate: Gate, sight: Principal, body: ErasureBody) -> dict[str, Any] | None:
    if body.agent is not None:
        return {"term": {"agent_id": body.agent}}
    if body.session is not None:
        return {"term": {"session": body.session}}
    doc_ids = await _mentioning(gate, sight, body.subject or "")
    return {"terms": {"doc_id": doc_ids}} if doc_ids else None


async def _mentioning(gate: Gate, sight: Principal, subject: str) -> list[str]:
    """Documents that mention the name, or another name of the same entity, under whatever label."""
    keys = sorted({key for label in ("concept", "person") if (key := name_key(subject, label))})
    if not keys:
        return []
    fields = ["entity_id"]
    body = {"query": {"terms": {"key": keys}}, "size": _NAMES_MAX, "_source": fields}
    [names] = await gate.search_many([GatedSearch(principal=sight, index=Index.ENTITIES, body=body)])
    entities = sorted({hit.source["entity_id"] for hit in names.hits})
    if not entities:
        return []
    body = {"query": {"terms": {"entity_id": entities}}, "size": _NAMES_MAX, "_source": ["name_id"]}
    [members] = await gate.search_many([GatedSearch(principal=sight, index=Index.ENTITIES, body=body)])
    name_ids = sorted({hit.source["name_id"] for hit in members.hits})
    mentions = {
        "query": {"terms": {"name_id": name_ids}},
        # One more than a call takes: that tells that there are more.
        "size": DOCUMENTS_MAX + 1,
        "collapse": {"field": "doc_id"},
        "_source": ["doc_id"],
    }
    [page] = await gate.search_many([GatedSearch(principal=sight, index=Index.MENTIONS, body=mentions)])
    return [hit.source["doc_id"] for hit in page.hits]


def rowless(document: DocumentKey) -> Target:
    """A file that was set aside so long ago that nothing else is known of its document."""
    return Target(
        doc_id=document.doc_id, document=document, version=0, moved_from=None, deleted=True, fenced=False
    )


def _target(principal: Principal, row: StoredRow | Any) -> Target:
    source: Mapping[str, Any] = row.source
    namespace = owner_of(principal.tenant_id, source)
    return Target(
        doc_id=source["doc_id"],
        document=DocumentKey(namespace=namespace, path=source["path"]),
        version=source["version"],
        moved_from=source.get("moved_from"),
        deleted=source.get("deleted", False),
        fenced=source.get("no_vector_reason") == ERASED,
    )
