"""Rows of keys and tenants in the control index, under the reserved tenant of the installation itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import msgspec
import structlog

from indexers.domain.identity import INSTALLATION, KEEPER, Namespace, Principal, Scope
from indexers.opensearch.gate import Gate, RowRef, RowWrite, SearchHit, StoredRow
from indexers.opensearch.rows import ControlRow, Index, owner_fields
from search_api.identity.stored import StoredKey, StoredTenant
from search_api.paging import RowList, SortKey, read_page

log = structlog.get_logger()

#: Keeps the register: no request has it, and no vault or document is this tenant's.
REGISTRAR: Final = Principal.pipeline(INSTALLATION)
_OWNER: Final = Namespace(tenant_id=INSTALLATION, agent_id=KEEPER, scope=Scope.SHARED)

V = TypeVar("V", StoredKey, StoredTenant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered(Generic[V]):
    """A value as it was read, and of which row."""

    value: V
    version: int
    seq_no: int
    primary_term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[V]):
    """`key`: what the row is looked up by. `name`: what it is listed by."""

    key: str
    name: str
    value: V
    by: str
    at: datetime


class Register(Generic[V]):
    """One kind of rows. Transient where the store is away."""

    def __init__(self, gate: Gate, kind: str, value_type: type[V]) -> None:
        self._gate = gate
        self._kind = kind
        self._type: type[V] = value_type

    async def read(self, key: str) -> Registered[V] | None:
        """As last written, whether refreshed or not. Raises ValueError for a row that isn't ours."""
        ref = RowRef(principal=REGISTRAR, row_id=self._row_id(key))
        [row] = await self._gate.get_many(Index.CONTROL, [ref])
        return None if row is None else self._registered(row)

    async def readable(self, key: str) -> Registered[V] | None:
        """A row that can't be read is none, for who would change or show it."""
        try:
            return await self.read(key)
        except ValueError as fault:
            self._tell_unreadable(key, fault)
            return None

    async def add(self, entry: Entry[V]) -> bool:
        """False: there is one already."""
        return await self._write(entry, None)

    async def replace(self, before: Registered[V], entry: Entry[V]) -> bool:
        """False: somebody else changed it since it was read."""
        return await self._write(entry, before)

    async def page(
        self, prefix: str, *, cursor: str | None, size: int, asker: Principal
    ) -> tuple[list[V], str | None]:
        """Values whose name begins so, by name. A cursor is of one asker and one prefix."""
        terms: list[dict[str, Any]] = [{"term": {"kind": self._kind}}]
        if prefix:
            terms.append({"prefix": {"name": {"value": prefix}}})
        rows = RowList(
            name=("register", self._kind, prefix, asker.tenant_id, asker.agent_id),
            index=Index.CONTROL,
            query={"bool": {"filter": terms}},
            sort=(SortKey(field="name"),),
        )

        async def show(hits: Sequence[SearchHit]) -> list[V | None]:
            return [self._shown(hit) for hit in hits]

        return await read_page(self._gate, REGISTRAR, rows, show, cursor=cursor, size=size)

    def _shown(self, hit: SearchHit) -> V | None:
        try:
            return msgspec.convert(hit.source["value"], self._type)
        except ValueError as fault:
            self._tell_unreadable(hit.row_id, fault)
            return None

    def _tell_unreadable(self, what: str, fault: ValueError) -> None:
        log.error("register.unreadable", kind=self._kind, what=what, error=str(fault))

    async def _write(self, entry: Entry[V], before: Registered[V] | None) -> bool:
        row = ControlRow(
            **owner_fields(_OWNER),
            kind=self._kind,
            name=entry.name,
            value=msgspec.to_builtins(entry.value),
            version=1 if before is None else before.version + 1,
            updated_by=entry.by,
            updated_at=entry.at.isoformat(),
        )
        [result] = await self._gate.write([self._row_write(entry.key, row, before)])
        if result.status == "rejected":
            raise ValueError(result.reason)
        if result.status == "conflict":
            # A request that was applied and whose answer got lost says conflict when it is sent again.
            stored = await self.readable(entry.key)
            if stored is None or stored.value != entry.value:
                return False
        await self._gate.refresh(Index.CONTROL)
        return True

    def _row_write(self, key: str, row: ControlRow, before: Registered[V] | None) -> RowWrite:
        row_id = self._row_id(key)
        if before is None:
            return RowWrite(principal=REGISTRAR, index=Index.CONTROL, row_id=row_id, action="create", row=row)
        return RowWrite(
            principal=REGISTRAR,
            index=Index.CONTROL,
            row_id=row_id,
            action="replace_if",
            row=row,
            seq_no=before.seq_no,
            primary_term=before.primary_term,
        )

    def _row_id(self, key: str) -> str:
        """A name of 128 letters may have 512 bytes, which is all that an id may have."""
        return f"{self._kind}/{hashlib.sha256(key.encode()).hexdigest()}"

    def _registered(self, row: StoredRow) -> Registered[V]:
        return Registered(
            value=msgspec.convert(row.source["value"], self._type),
            version=row.source["version"],
            seq_no=row.seq_no,
            primary_term=row.primary_term,
        )


def key_register(gate: Gate) -> Register[StoredKey]:
    return Register(gate, "key", StoredKey)


def tenant_register(gate: Gate) -> Register[StoredTenant]:
    return Register(gate, "tenant", StoredTenant)
