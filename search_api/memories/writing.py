"""Memory writes: accepted once the log has them, followed as far as the caller wants to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import Namespace, Principal
from indexers.errors import Transient
from indexers.event_rows import key_id
from indexers.opensearch.gate import Gate, RowRef, RowWrite, WriteResult
from indexers.opensearch.rows import Index, owner_of
from indexers.vault.tree import VaultTree
from search_api.entities.curating import send
from search_api.memories.answers import EventAnswer, EventKind, MemoryAnswer, Milestone, StageTold
from search_api.memories.bodies import MemoryBody, MemoryUpdate
from search_api.memories.following import Events
from search_api.memories.plans import (
    Identity,
    Plan,
    body_hash,
    bytes_of,
    further_of,
    plan_change,
    plan_update,
    plan_write,
)
from search_api.memories.targets import Target, namespace_of, require_writer, writable
from search_api.problems import Problem, ProblemError, invalid_field
from search_api.quotas import Quotas
from streams.events import MemoryChange
from streams.producer import EventProducer, RecordTooLarge
from streams.topics import Topics
from streams.versions import VersionClock

#: Of a request's time, what is kept for its answer.
_ANSWER_SECONDS: Final = 1.0
_UNCONFIRMED: Final = (
    "The broker took too long to confirm it: it may still be carried out. Sent again with the same idempotency key, "
    "it is one write; without one it may become two."
)
_KEY_FIELDS: Final = ("event_id", "version", "occurred_at", "body_hash", "doc_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How long a caller waits for its events, and for what."""

    until: Milestone
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One word of a request. `plan` makes it, given what is drawn once; `field`: where it stands in the body."""

    hash: str
    key: str | None
    further: int
    plan: Callable[[Identity], Plan]
    field: str = "body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    plan: Plan
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """Raises ProblemError and Transient; then nothing was accepted, or the answer says that it may have been.

    `request_seconds`: what a request may take in all. `content_max_chars`: of one memory.
    """

    gate: Gate
    producer: EventProducer
    topics: Topics
    clock: VersionClock
    vaults: VaultTree
    quotas: Quotas
    request_seconds: float
    content_max_chars: int

    @property
    def events(self) -> Events:
        return Events(self.gate)

    async def write(
        self,
        principal: Principal,
        bodies: Mapping[str, MemoryBody],
        keys: Sequence[str | None],
        wait: Wait | None,
    ) -> list[MemoryAnswer]:
        """All or none. `bodies`: by the place that each has in the request."""
        started = asyncio.get_running_loop().time()
        require_writer(principal)
        self._check_lengths(bodies)
        namespaces = {f: namespace_of(principal, b, self.vaults, field=f) for f, b in bodies.items()}
        superseded = [body.supersedes for body in bodies.values() if body.supersedes is not None]
        targets = await writable(self.gate, principal, superseded)
        for target in targets.values():
            self.clock.observe(target.version)
        self.quotas.take_write(principal, bytes_=bytes_of(list(bodies.values())), writes=len(bodies))
        asked = [
            _write_asked(principal, namespaces[field], body, targets, key, field)
            for (field, body), key in zip(bodies.items(), keys, strict=True)
        ]
        return await self._accept(principal, asked, wait, started)

    async def update(
        self, principal: Principal, doc_id: str, body: MemoryUpdate, key: str | None, wait: Wait | None
    ) -> MemoryAnswer:
        started = asyncio.get_running_loop().time()
        require_writer(principal)
        self._check_lengths({"body": body})
        hashed = body_hash(f"update {doc_id}", body)
        target = await self._target(principal, doc_id, key, hashed)
        self.quotas.take_write(principal, bytes_=bytes_of([body]))
        asked = Asked(
            hash=hashed,
            key=key,
            further=0,
            plan=lambda identity: plan_update(identity, target.document, body, key=key),
        )
        [answer] = await self._accept(principal, [asked], wait, started)
        return answer

    async def end(
        self,
        principal: Principal,
        doc_id: str,
        key: str | None,
        wait: Wait | None,
        *,
        change: MemoryChange = "forgotten",
        kind: EventKind = "forget",
    ) -> MemoryAnswer:
        """Forget it, or what else `change` says."""
        started = asyncio.get_running_loop().time()
        require_writer(principal)
        hashed = body_hash(f"{kind} {doc_id}", None)
        target = await self._target(principal, doc_id, key, hashed)
        self.quotas.take_write(principal, bytes_=0)
        asked = Asked(
            hash=hashed,
            key=key,
            further=0,
            plan=lambda identity: plan_change(
                identity, target.document, change, kind, key=key, by=principal.agent_id
            ),
        )
        [answer] = await self._accept(principal, [asked], wait, started)
        return answer

    async def _target(self, principal: Principal, doc_id: str, key: str | None, hashed: str) -> Target:
        """Of a repeated request, what the first was about, even if it is gone by now."""
        try:
            target = (await writable(self.gate, principal, [doc_id]))[doc_id]
        except ProblemError as problem:
            before = None if key is None else await self._target_before(principal, key, hashed)
            if before is None or problem.problem.kind != "not-found":
                raise
            target = before
        self.clock.observe(target.version)
        return target

    async def _target_before(self, principal: Principal, key: str, hashed: str) -> Target | None:
        [known] = await self.gate.get_many(
            Index.EVENTS, [RowRef(principal=principal, row_id=key_id(principal, key))], fields=_KEY_FIELDS
        )
        if known is None or known.source["body_hash"] != hashed:
            return None
        ref = RowRef(principal=principal, row_id=known.source["event_id"])
        [row] = await self.gate.get_many(Index.EVENTS, [ref])
        if row is None:
            return None
        document = owner_of(principal.tenant_id, row.source).document(row.source["path"])
        return Target(document=document, version=row.source["version"])

    def _check_lengths(self, bodies: Mapping[str, MemoryBody | MemoryUpdate]) -> None:
        for field, body in bodies.items():
            if len(body.content) > self.content_max_chars:
                msg = f"longer than {self.content_max_chars} characters"
                raise ProblemError(invalid_field(f"{field}.content", msg))

    async def _accept(
        self, principal: Principal, asked: Sequence[Asked], wait: Wait | None, started: float
    ) -> list[MemoryAnswer]:
        accepted = await self._recorded(principal, asked)
        records = [record for one in accepted for record in one.plan.records(self.topics)]
        try:
            await send(self.producer, records, unconfirmed=_UNCONFIRMED)
        except RecordTooLarge as exc:
            detail = "A memory is larger than the log takes (kafka.max_message_bytes): split it."
            raise ProblemError(Problem(kind="body-too-large", detail=detail)) from exc
        events = await self._followed(principal, accepted, wait, started)
        return [_answer(one, event) for one, event in zip(accepted, events, strict=True)]

    async def _recorded(self, principal: Principal, asked: Sequence[Asked]) -> list[Accepted]:
        """Rows first: a process that ends before it sends leaves what a repetition sends again."""
        first = await self._known(principal, asked)
        plans = [
            one.plan(first[n] if n in first else Identity.new(self.clock, one.further))
            for n, one in enumerate(asked)
        ]
        lost = await self._store(principal, plans) - first.keys()
        if lost:
            # Another request with the same key came between: its event it is. (Or ours, whose answer was lost.)
            won = await self._known(principal, asked)
            first |= {n: won[n] for n in lost if n in won and won[n].event_id != plans[n].event.event_id}
            plans = [
                one.plan(first[n]) if n in lost and n in first else plans[n] for n, one in enumerate(asked)
            ]
            await self._store(principal, [plans[n] for n in sorted(lost)])
        return [Accepted(plan=plan, replayed=n in first) for n, plan in enumerate(plans)]

    async def _known(self, principal: Principal, asked: Sequence[Asked]) -> dict[int, Identity]:
        """Position → what was drawn for its key. 409 where the key stands for something else."""
        keyed = [(n, one) for n, one in enumerate(asked) if one.key is not None]
        refs = [RowRef(principal=principal, row_id=key_id(principal, one.key or "")) for _, one in keyed]
        rows = await self.gate.get_many(Index.EVENTS, refs, fields=_KEY_FIELDS) if refs else []
        known: dict[int, Identity] = {}
        for (n, one), row in zip(keyed, rows, strict=True):
            if row is None:
                continue
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

    async def _followed(
        self, principal: Principal, accepted: Sequence[Accepted], wait: Wait | None, started: float
    ) -> list[EventAnswer]:
        events = [_just_accepted(one.plan) for one in accepted]
        try:
            replays = [one.plan.event.event_id for one in accepted if one.replayed]
            known = await self.events.look(principal, replays) if replays else {}
        except Transient:
            known = {}
        events = [known.get(event.event_id, event) for event in events]
        if wait is None:
            return events
        spent = asyncio.get_running_loop().time() - started
        seconds = min(wait.seconds, self.request_seconds - spent - _ANSWER_SECONDS)
        return await self.events.follow(principal, events, until=wait.until, seconds=max(0.0, seconds))


def _write_asked(
    principal: Principal,
    namespace: Namespace,
    body: MemoryBody,
    targets: Mapping[str, Target],
    key: str | None,
    field: str,
) -> Asked:
    superseded = None if body.supersedes is None else targets[body.supersedes].document
    return Asked(
        hash=body_hash("write", body),
        key=key,
        further=further_of(body),
        plan=lambda identity: plan_write(
            identity, namespace, body, superseded=superseded, key=key, by=principal.agent_id, field=field
        ),
        field=field,
    )


def _is_lost(write: RowWrite, result: WriteResult) -> bool:
    if result.status == "rejected":
        raise Transient(f"the store refused an event's row: {result.reason or 'no reason given'}")
    return result.status == "conflict" and write.row_id.startswith("idem/")


def _just_accepted(plan: Plan) -> EventAnswer:
    event = plan.event
    return EventAnswer(
        event_id=event.event_id,
        doc_id=event.document.doc_id,
        path=event.document.path,
        kind=plan.kind,
        version=event.version,
        state="accepted",
        stages=[StageTold(stage="accepted", at=event.occurred_at)],
    )


def _answer(accepted: Accepted, event: EventAnswer) -> MemoryAnswer:
    return MemoryAnswer(
        doc_id=event.doc_id,
        event_id=event.event_id,
        path=event.path,
        version=event.version,
        replayed=accepted.replayed,
        event=event,
    )
