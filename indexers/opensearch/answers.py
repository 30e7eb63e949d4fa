"""Answers of the engine, read into values. Pure. A part of an answer is none: it raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from indexers.errors import RefusedRequest, Transient
from indexers.opensearch.calls import RowRef, SearchHit, SearchPage, StoredRow
from indexers.opensearch.connect import is_transient
from indexers.opensearch.names import row_id_of
from indexers.opensearch.visibility import may_see


def seen_row(ref: RowRef, doc: dict[str, Any], fields: Sequence[str] | None) -> StoredRow | None:
    if not doc["found"] or not may_see(ref.principal, doc["_source"]):
        return None
    if fields is not None:
        doc["_source"] = {name: value for name, value in doc["_source"].items() if name in fields}
    return stored_row(doc)


def stored_row(hit: dict[str, Any]) -> StoredRow:
    return StoredRow(
        row_id=row_id_of(hit["_id"]),
        source=hit.get("_source", {}),
        seq_no=hit["_seq_no"],
        primary_term=hit["_primary_term"],
        version=hit["_version"],
    )


def search_page(response: dict[str, Any]) -> SearchPage:
    if error := response.get("error"):
        raise_error(response.get("status", 500), error)
    require_whole(response)
    return SearchPage(
        hits=[
            SearchHit(
                row_id=row_id_of(hit["_id"]),
                score=hit["_score"],
                source=hit.get("_source", {}),
                seq_no=hit["_seq_no"],
                primary_term=hit["_primary_term"],
                matched_queries=tuple(hit.get("matched_queries", ())),
                sort=tuple(hit.get("sort", ())),
                explanation=hit.get("_explanation"),
            )
            for hit in response["hits"]["hits"]
        ],
        total=response["hits"].get("total", {}).get("value", 0),
        aggregations=response.get("aggregations", {}),
    )


def require_whole(answer: dict[str, Any]) -> None:
    shards = answer["_shards"]
    if shards["failed"] or answer.get("timed_out"):
        msg = f"{shards['failed']} of {shards['total']} shards failed or ran out of time"
        raise Transient(msg)


def raise_error(status: int, error: Any) -> NoReturn:
    cause: dict[str, Any] = error if isinstance(error, dict) else {"type": "error", "reason": str(error)}
    roots = cause.get("root_cause") or [cause]
    kind, reason = str(roots[0].get("type", "error")), str(roots[0].get("reason", ""))
    if is_transient(status, kind):
        msg = f"OpenSearch answered {status}: {kind}: {reason}"
        raise Transient(msg)
    raise RefusedRequest(status, kind, reason)
