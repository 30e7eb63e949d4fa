"""Which documents of a namespace have been extracted with its present labels, patterns and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from indexers.control import read_labels
from indexers.domain.identity import (
    DocumentId,
    EntityNamespace,
    Namespace,
    Principal,
    Scope,
    TenantId,
)
from indexers.opensearch.gate import Gate, GatedSearch, RowRef
from indexers.opensearch.rows import Index, owner_of
from indexers.opensearch.visibility import Query, living

#: Documents looked at for one page of those that are to be extracted again.
LOOKED_AT: Final = 500
_FIELDS = (
    "doc_id", "path", "version", "content_hash", "size", "no_vector_reason", "agent_id", "team_id", "scope",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Of one namespace: documents extracted as they would be now, of all living ones. As a search shows them.

    `outdated`: extractions by other labels or another model, those of documents that were deleted since included.
    """

    done: int
    total: int
    outdated: int = 0

    @property
    def finished(self) -> bool:
        return self.done == self.total and not self.outdated


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A living document as far as its extraction depends on it."""

    namespace: Namespace
    path: str
    doc_id: DocumentId
    version: int
    content_hash: str
    size: int
    has_text: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Documents to extract; `after`: where the next page begins, None where this is the last one."""

    documents: tuple[StoredDocument, ...]
    after: str | None


def documents_of(namespace: EntityNamespace) -> Query:
    """Living documents of all authors of a namespace. The tenant is the principal's."""
    terms: list[Query] = [{"term": {"scope": namespace.scope.value}}, living()]
    owner = namespace.namespace
    if owner.scope is Scope.TEAM:
        terms.append({"term": {"team_id": owner.team_id}})
    elif owner.scope is Scope.PERSONAL:
        terms.append({"term": {"agent_id": owner.agent_id}})
    return {"bool": {"filter": terms}}


async def extraction_progress(gate: Gate, namespace: EntityNamespace, model_id: str) -> Progress:
    """`model_id`: of the extractor that the agents run with."""
    [stored] = (await read_labels(gate, [namespace])).values()
    principal = Principal.pipeline(namespace.tenant_id)
    mine: list[Query] = [{"term": {"namespace": namespace.owner}}]
    current: list[Query] = [{"term": {"fingerprint": stored.labels.fingerprint(model_id)}}]
    done, outdated, total = await gate.search_many(
        [
            _count(principal, Index.EXTRACTIONS, {"bool": {"filter": mine + current}}),
            _count(principal, Index.EXTRACTIONS, {"bool": {"filter": mine, "must_not": current}}),
            _count(principal, Index.DOCUMENTS, documents_of(namespace)),
        ]
    )
    return Progress(done=min(done.total, total.total), total=total.total, outdated=outdated.total)


async def outdated_page(
    gate: Gate, namespace: EntityNamespace, *, fingerprint: str, after: str | None, most: int, whole: bool
) -> Page:
    """Documents after `after` whose row is missing, older or has another fingerprint; `whole`: all of them.

    In the order of their ids, so that the pages of a job cover every document that was there when it began.
    """
    documents = await _look(gate, namespace, after)
    rows = [] if whole else await _extractions(gate, documents)
    current = {ref for ref, row in rows if row == fingerprint}
    found: list[StoredDocument] = []
    for document in documents:
        if (document.doc_id, document.version) in current:
            continue
        if len(found) == most:
            return Page(documents=tuple(found), after=found[-1].doc_id)
        found.append(document)
    more = len(documents) == LOOKED_AT
    return Page(documents=tuple(found), after=documents[-1].doc_id if more else None)


async def _look(gate: Gate, namespace: EntityNamespace, after: str | None) -> list[StoredDocument]:
    query = documents_of(namespace)
    if after is not None:
        query["bool"]["filter"].append({"range": {"doc_id": {"gt": after}}})
    body = {
        "query": query,
        "sort": [{"doc_id": "asc"}],
        "size": LOOKED_AT,
        "_source": list(_FIELDS),
    }
    principal = Principal.pipeline(namespace.tenant_id)
    [page] = await gate.search_many([GatedSearch(principal=principal, index=Index.DOCUMENTS, body=body)])
    return [_document(namespace.tenant_id, hit.source) for hit in page.hits]


async def _extractions(
    gate: Gate, documents: Sequence[StoredDocument]
) -> list[tuple[tuple[DocumentId, int], str]]:
    """((document, version), fingerprint) of the stored rows."""
    refs = [RowRef(principal=d.namespace.principal, row_id=d.doc_id) for d in documents]
    fields = ("version", "fingerprint")
    rows = await gate.get_many(Index.EXTRACTIONS, refs, fields=fields) if refs else []
    return [
        ((document.doc_id, row.source["version"]), row.source["fingerprint"])
        for document, row in zip(documents, rows, strict=True)
        if row is not None
    ]


def _count(principal: Principal, index: Index, query: Query) -> GatedSearch:
    body = {"query": query, "size": 0, "track_total_hits": True}
    return GatedSearch(principal=principal, index=index, body=body)


def _document(tenant_id: TenantId, source: Mapping[str, Any]) -> StoredDocument:
    return StoredDocument(
        namespace=owner_of(tenant_id, source),
        path=source["path"],
        doc_id=DocumentId(source["doc_id"]),
        version=source["version"],
        content_hash=source["content_hash"],
        size=source["size"],
        has_text=source["no_vector_reason"] is None,
    )
