"""Bulk writes with an outcome per row: only the rows that failed for a passing reason are sent again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import msgspec
from opensearchpy import AsyncOpenSearch

from indexers.errors import RefusedRequest, Transient
from indexers.opensearch.calls import (
    Action,
    BulkRejected,
    BulkRetried,
    BulkSent,
    Observer,
    RowWrite,
    Status,
    WriteResult,
)
from indexers.opensearch.connect import is_transient, request
from indexers.opensearch.names import IndexNames, stored_id
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import OpenSearchSettings

#: A bulk request that is cut off too early is sent again and loads an overloaded node once more.
_PATIENCE = 3.0
#: An internal error of one row may pass (a shard that moves) or not (a row that trips a bug): then the row is
#: rejected.
_INTERNAL_ERROR_ATTEMPTS = 8
#: The conditions stand in the header.
_BULK_ACTIONS: Final[Mapping[Action, str]] = {"replace_if": "index", "delete_if": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row as sent. `position` is its place in the caller's list."""

    position: int
    write: RowWrite
    payload: bytes


class BulkWriter:
    """Settles every write it is given, or raises Transient: some were applied then, all may be sent again."""

    def __init__(
        self,
        client: AsyncOpenSearch,
        names: IndexNames,
        *,
        retry: RetryPolicy,
        settings: OpenSearchSettings,
        observe: Observer,
    ) -> None:
        self._client = client
        self._names = names
        self._retry = retry
        self._settings = settings
        self._observe = observe

    async def write(self, writes: Sequence[tuple[int, RowWrite]]) -> dict[int, WriteResult]:
        """Results by position."""
        settled: dict[int, WriteResult] = {}
        lines: list[_Line] = []
        for position, write in writes:
            try:
                lines.append(_Line(position=position, write=write, payload=self._payload(write)))
            except (UnicodeEncodeError, msgspec.ValidationError) as fault:
                settled[position] = _rejected(write, f"can't be encoded as JSON: {fault}")
        for batch in _batches(lines, self._settings.bulk_max_rows, self._settings.bulk_max_bytes):
            settled |= await self._settle(batch)
        if rejected := sum(result.status == "rejected" for result in settled.values()):
            self._observe(BulkRejected(rows=rejected))
        return settled

    def _payload(self, write: RowWrite) -> bytes:
        tenant_id = write.principal.tenant_id
        header: dict[str, Any] = {
            "_index": self._names.alias(write.index, tenant_id),
            "_id": stored_id(tenant_id, write.row_id),
            "routing": tenant_id,
        }
        if write.version is not None:
            header |= {"version": write.version, "version_type": "external_gte"}
        if write.seq_no is not None:
            header |= {"if_seq_no": write.seq_no, "if_primary_term": write.primary_term}
        action = _BULK_ACTIONS.get(write.action, write.action)
        lines = [msgspec.json.encode({action: header})]
        if write.row is not None:
            lines.append(msgspec.json.encode(write.row))
        return b"\n".join(lines) + b"\n"

    async def _settle(self, batch: list[_Line]) -> dict[int, WriteResult]:
        settled: dict[int, WriteResult] = {}
        todo, failures = batch, 0
        while todo:
            try:
                items = await self._retry.call(partial(self._send, todo))
            except RefusedRequest as refused:
                return settled | await self._refused(todo, refused)
            failures += 1
            again: list[_Line] = []
            reason = ""
            for line, item in zip(todo, items, strict=True):
                if (passing := _passing_fault(item, failures)) is None:
                    settled[line.position] = _result(line.write, item)
                else:
                    again.append(line)
                    reason = passing
            todo = again
            if todo:
                self._observe(BulkRetried(rows=len(todo), reason=reason))
                await self._retry.wait(failures, Transient(reason))
        return settled

    async def _send(self, lines: list[_Line]) -> list[dict[str, Any]]:
        body = b"".join(line.payload for line in lines)
        started = time.monotonic()
        answer = await request(
            self._client,
            "POST",
            "/_bulk",
            # A missing index must stay missing: created by the way it would have a guessed mapping.
            params={"require_alias": "true"},
            body=body,
            timeout=self._settings.timeout_seconds * _PATIENCE,
        )
        self._observe(BulkSent(rows=len(lines), bytes=len(body), seconds=time.monotonic() - started))
        items = [next(iter(item.values())) for item in answer["items"]]
        if len(items) != len(lines):
            msg = f"OpenSearch answered {len(items)} of {len(lines)} rows"
            raise Transient(msg)
        return items

    async def _refused(self, lines: list[_Line], refused: RefusedRequest) -> dict[int, WriteResult]:
        """The whole request was refused: find the row that is at fault."""
        if len(lines) == 1:
            return {lines[0].position: _rejected(lines[0].write, str(refused))}
        middle = len(lines) // 2
        return await self._settle(lines[:middle]) | await self._settle(lines[middle:])


def _batches(lines: Sequence[_Line], max_rows: int, max_bytes: int) -> Iterator[list[_Line]]:
    batch: list[_Line] = []
    size = 0
    for line in lines:
        if batch and (len(batch) == max_rows or size + len(line.payload) > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line.payload)
    if batch:
        yield batch


def _passing_fault(item: dict[str, Any], failures: int) -> str | None:
    """Why the row is worth another try; None when it is settled."""
    status, (kind, reason) = item["status"], _cause(item)
    if status < HTTPStatus.BAD_REQUEST or not is_transient(status, kind):
        return None
    if (
        status == HTTPStatus.INTERNAL_SERVER_ERROR
        and "es_rejected" not in kind
        and failures >= _INTERNAL_ERROR_ATTEMPTS
    ):
        return None
    return f"{kind}: {reason}"


def _result(write: RowWrite, item: dict[str, Any]) -> WriteResult:
    status = item["status"]
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return WriteResult(
            row_id=write.row_id, status="applied", seq_no=item["_seq_no"], primary_term=item["_primary_term"]
        )
    if status == HTTPStatus.NOT_FOUND and write.action == "delete":
        return WriteResult(row_id=write.row_id, status="applied")
    kind, reason = _cause(item)
    if status == HTTPStatus.CONFLICT:
        outcome: Status = "stale" if write.version is not None else "conflict"
        return WriteResult(row_id=write.row_id, status=outcome, reason=reason)
    return _rejected(write, f"{kind}: {reason}")


def _rejected(write: RowWrite, reason: str) -> WriteResult:
    return WriteResult(row_id=write.row_id, status="rejected", reason=reason[:1_000])


def _cause(item: dict[str, Any]) -> tuple[str, str]:
    """Type and reason, with the innermost cause: "failed to parse" alone helps nobody."""
    error = item.get("error") or {}
    if not isinstance(error, dict):
        return "error", str(error)
    reason = str(error.get("reason", ""))
    cause = error.get("caused_by")
    while isinstance(cause, dict):
        reason = f"{reason}; {cause.get('reason')}"
        cause = cause.get("caused_by")
    return str(error.get("type", "error")), reason
