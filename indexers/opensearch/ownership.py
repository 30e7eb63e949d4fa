"""Whose row a write may touch. Pure."""

from __future__ import annotations

from indexers.opensearch.calls import ROW_TYPES, RowWrite, WriteResult
from indexers.opensearch.templates import OWNER_FIELDS
from indexers.opensearch.visibility import may_see


def check_ownership(write: RowWrite) -> None:
    """A mismatch is a bug of the caller, never data: it must not become a dead letter."""
    row = write.row
    if row is None:
        return
    if type(row) is not ROW_TYPES[write.index]:
        msg = f"{type(row).__name__} is no row of {write.index}"
        raise ValueError(msg)
    owner = {name: getattr(row, name) for name in OWNER_FIELDS}
    if not may_see(write.principal, owner):
        msg = f"row {write.row_id} belongs to {owner}, which {write.principal} may not write"
        raise ValueError(msg)


def untouched(write: RowWrite) -> WriteResult:
    """The outcome of a write that was held back because the stored row is another owner's."""
    match write.action:
        case "delete":
            return WriteResult(row_id=write.row_id, status="applied")
        case "replace_if" | "delete_if":
            return WriteResult(row_id=write.row_id, status="conflict", reason="the row is not there")
        case _:
            return WriteResult(row_id=write.row_id, status="rejected", reason="the id is another owner's")
