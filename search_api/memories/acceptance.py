"""What is accepted is written down before it is sent: a repeated request finds it and sends the same again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import Principal
from indexers.errors import Transient
from indexers.event_rows import ERASED_KEY, key_id
from indexers.opensearch.gate import Gate, RowRef, RowWrite, StoredRow, WriteResult
from indexers.opensearch.rows import Index, owner_of
from search_api.memories.plans import Identity, Plan
from search_api.memories.targets import Target
from search_api.problems import FieldError, Problem, ProblemError, invalid
from streams.versions import VersionClock

_KEY_FIELDS: Final = ("event_id", "version", "occurred_at", "body_hash", "stage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One word of a request, and the caller's key for it. `field`: where it stands in the body."""

    hash: str
    key: str | None
    field: str = "body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Said):
    """`plan` makes it, given what is drawn once."""

    further: int
    plan: Callable[[Identity], Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    plan: Plan
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Raises ProblemError where a key stands for another request, Transient where the store is away."""

    gate: Gate
    clock: VersionClock

    async def record(self, principal: Principal, asked: Sequence[Asked]) -> list[Accepted]:
        """Rows first: a process that ends before it sends leaves what a repetition sends again."""
        first = await self.known(principal, asked)
        plans = [
            one.plan(first[n] if n in first else Identity.new(self.clock, one.further))
            for n, one in enumerate(asked)
        ]
        lost = await self._store(principal, plans) - first.keys()
        if lost:
            # Another request with the same key came between: its event it is. (Or ours, whose answer was lost.)
            won = await self.known(principal, asked)
            first |= {n: won[n] for n in lost if n in won and won[n].event_id != plans[n].event.event_id}
            plans = [
                one.plan(first[n]) if n in lost and n in first else plans[n] for n, one in enumerate(asked)
            ]
            await self._store(principal, [plans[n] for n in sorted(lost)])
        return [Accepted(plan=plan, replayed=n in first) for n, plan in enumerate(plans)]

    async def known(self, principal: Principal, asked: Sequence[Said]) -> dict[int, Identity]:
        """Position → what was drawn for its key. 409 where the key stands for something else."""
        keyed = [(n, one) for n, one in enumerate(asked) if one.key is not None]
        refs = [RowRef(principal=principal, row_id=key_id(principal, one.key or "")) for _, one in keyed]
        rows = await self.gate.get_many(Index.EVENTS, refs, fields=_KEY_FIELDS) if refs else []
        known: dict[int, Identity] = {}
        for (n, one), row in zip(keyed, rows, strict=True):
            if row is None:
                continue
            _refuse_erased(row, one.field)
            if row.source["body_hash"] != one.hash:
                detail = f"The idempotency key of {one.field} stands for another request: draw a new one."
                raise ProblemError(Problem(kind="idempotency-conflict", detail=detail))
            source = row.source
            known[n] = Identity(
                event_id=source["event_id"], version=source["version"], occurred_at=source["occurred_at"]
            )
        return known

    async def _store(self, principal: Principal, plans: Sequence[Plan]) -> set[int]:
        """Positions whose key another event has. Raises Transient where a row was not taken."""
        writes = [(n, write) for n, plan in enumerate(plans) for write in plan.rows(principal)]
        results = await self.gate.write([write for _, write in writes])
        return {n for (n, write), result in zip(writes, results, strict=True) if _is_lost(write, result)}

    async def target_before(self, principal: Principal, key: str, hashed: str) -> Target | None:
        [known] = await self.gate.get_many(
            Index.EVENTS, [RowRef(principal=principal, row_id=key_id(principal, key))], fields=_KEY_FIELDS
        )
        if known is not None:
            _refuse_erased(known, "body")
        if known is None or known.source["body_hash"] != hashed:
            return None
        ref = RowRef(principal=principal, row_id=known.source["event_id"])
        [row] = await self.gate.get_many(Index.EVENTS, [ref])
        if row is None:
            return None
        document = owner_of(principal.tenant_id, row.source).document(row.source["path"])
        return Target(document=document, version=row.source["version"])


def refuse_double_keys(keys: Mapping[str, str | None]) -> None:
    """`keys`: by the place that each word has in the request. 422 names each that stands for an earlier word too."""
    first: dict[str, str] = {}
    errors = [
        FieldError(field=f"{field}.idempotency_key", message=f"it is the key of {first[key]} too")
        for field, key in keys.items()
        if key is not None and first.setdefault(key, field) != field
    ]
    if errors:
        raise ProblemError(invalid(errors))


def _refuse_erased(key: StoredRow, field: str) -> None:
    if key.source["stage"] == ERASED_KEY:
        detail = (
            f"The idempotency key of {field} stands for a request whose document was erased since: nothing was sent. "
            "What is to be said anew needs a new key."
        )
        raise ProblemError(Problem(kind="idempotency-conflict", detail=detail))


def _is_lost(write: RowWrite, result: WriteResult) -> bool:
    if result.status == "rejected":
        raise Transient(f"the store refused an event's row: {result.reason or 'no reason given'}")
    return result.status == "conflict" and write.row_id.startswith("idem/")
