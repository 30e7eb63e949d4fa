"""What says an edge: read only for paths that are shown. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from indexers.opensearch.rows import Index
from search_api.graph.model import EdgeContext

CONTEXT_FIELDS: Final[Mapping[Index, tuple[str, ...]]] = {
    Index.LINKS: ("from_doc_id", "occurrences", "version"),
    Index.MENTIONS: ("doc_id", "sentence", "surface", "version"),
    Index.RELATIONS: ("doc_id", "quote", "version"),
}


def context_of(index: Index, row_id: str, source: Mapping[str, Any]) -> EdgeContext:
    """From fields of a row that says an edge."""
    match index:
        case Index.LINKS:
            text = str(source["occurrences"][0]["context"]) if source["occurrences"] else ""
        case Index.MENTIONS:
            text = source["sentence"]
        case _:
            text = source["quote"]
    return EdgeContext(
        row_id=row_id,
        said_by=source["from_doc_id" if index is Index.LINKS else "doc_id"],
        version=source["version"],
        text=text,
        surface=source.get("surface"),
    )
