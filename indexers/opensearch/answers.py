"""Answers of the engine, read into values. Pure. A part of an answer is none: it raises."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from indexers.errors import RefusedRequest, Transient
from indexers.opensearch.calls import PreparedSearch, RowRef, SearchHit, SearchPage, StoredRow
from indexers.opensearch.connect import decoded, is_transient
from indexers.opensearch.names import row_id_of
from indexers.opensearch.visibility import may_see

T = TypeVar("T")
_HitType = type[SearchHit]


class Shards(msgspec.Struct, frozen=True):
    total: int
    failed: int


class _Total(msgspec.Struct, frozen=True):
    value: int


class _Hits(msgspec.Struct, Generic[T], frozen=True):
    hits: list[T]
    #: Absent unless the search tracks it.
    total: _Total | None = None


class _Response(msgspec.Struct, Generic[T], frozen=True):
    """One search's part of a multi-search's answer: an error, or the rest."""

    shards: Shards | None = msgspec.field(name="_shards", default=None)
    timed_out: bool = False
    hits: _Hits[T] | None = None
    aggregations: dict[str, Any] = {}
    error: Any = None
    status: int = 500


class _Responses(msgspec.Struct, Generic[T], frozen=True):
    responses: T


def search_pages(answer: bytes, searches: Sequence[PreparedSearch]) -> list[SearchPage]:
    """The answer of a multi-search, read in one go into the hits that each search names."""
    kinds = tuple(search.hit for search in searches)
    decoder = _decoder(kinds if len(set(kinds)) > 1 else kinds[:1])
    pages = [_page(response) for response in decoded(decoder.decode, answer).responses]
    if len(pages) != len(searches):
        msg = f"{len(pages)} answers to {len(searches)} searches"
        raise msgspec.ValidationError(msg)
    return pages


@lru_cache(maxsize=256)
def _decoder(kinds: tuple[_HitType, ...]) -> msgspec.json.Decoder[Any]:
    """Of several kinds one by one, of one kind any number."""
    one: Any = _Response
    each = tuple(one[kind] for kind in kinds)
    every: Any = _Responses
    return msgspec.json.Decoder(every[tuple[each] if len(kinds) > 1 else list[each[0]]])  # type: ignore[valid-type]


def _page(response: _Response[SearchHit]) -> SearchPage:
    if response.error:
        raise_error(response.status, response.error)
    if response.shards is None or response.hits is None:
        msg = "an answer that is neither hits nor an error"
        raise msgspec.ValidationError(msg)
    require_whole(response.shards, timed_out=response.timed_out)
    found = response.hits
    return SearchPage(
        hits=found.hits,
        total=0 if found.total is None else found.total.value,
        aggregations=response.aggregations,
    )


def seen_row(ref: RowRef, doc: dict[str, Any], fields: Sequence[str] | None) -> StoredRow | None:
    if not doc["found"] or not may_see(ref.principal, doc["_source"]):
        return None
    if fields is not None:
        source = doc["_source"]
        doc["_source"] = {name: source[name] for name in fields if name in source}
    return stored_row(doc)


def stored_row(hit: dict[str, Any]) -> StoredRow:
    return StoredRow(
        row_id=row_id_of(hit["_id"]),
        source=hit.get("_source", {}),
        seq_no=hit["_seq_no"],
        primary_term=hit["_primary_term"],
        version=hit["_version"],
    )


def require_whole(shards: Shards, *, timed_out: bool) -> None:
    if shards.failed or timed_out:
        msg = f"{shards.failed} of {shards.total} shards failed or ran out of time"
        raise Transient(msg)


def raise_error(status: int, error: Any) -> NoReturn:
    cause: dict[str, Any] = error if isinstance(error, dict) else {"type": "error", "reason": str(error)}
    roots = cause.get("root_cause") or [cause]
    kind, reason = str(roots[0].get("type", "error")), str(roots[0].get("reason", ""))
    if is_transient(status, kind):
        msg = f"OpenSearch answered {status}: {kind}: {reason}"
        raise Transient(msg)
    raise RefusedRequest(status, kind, reason)
