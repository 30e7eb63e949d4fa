"""Documents by id, as the store has them for one principal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index
from search_api.models import DocumentName

_NAME_FIELDS: Final = ("doc_id", "title", "path", "version", "deleted")


def is_id(text: str) -> bool:
    """As ids are written: anything else names nothing, and needn't be looked up."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


async def living_documents(
    gate: Gate, principal: Principal, doc_ids: Iterable[str | None]
) -> dict[str, Mapping[str, Any]]:
    """Those among these that the principal may see: title, path and version, as last written."""
    wanted = list(dict.fromkeys(doc_id for doc_id in doc_ids if doc_id is not None))
    refs = [RowRef(principal=principal, row_id=doc_id) for doc_id in wanted]
    rows = await gate.get_many(Index.DOCUMENTS, refs, fields=_NAME_FIELDS) if refs else []
    return {row.row_id: row.source for row in rows if row is not None and not row.source["deleted"]}


def document_name(source: Mapping[str, Any]) -> DocumentName:
    return DocumentName(doc_id=source["doc_id"], title=source["title"], path=source["path"])
