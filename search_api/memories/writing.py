"""Memory writes: accepted once the log has them, followed as far as the caller wants to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import Namespace, Principal
from indexers.errors import Transient
from indexers.opensearch.gate import Gate
from indexers.vault.tree import VaultTree
from search_api.entities.curating import send
from search_api.memories.acceptance import Acceptance, Accepted, Asked, Said, refuse_double_keys
from search_api.memories.answers import EventAnswer, EventKind, MemoryAnswer, Milestone, StageTold
from search_api.memories.bodies import MemoryBody, MemoryUpdate, body_hash, bytes_of
from search_api.memories.following import Events
from search_api.memories.plans import Plan, further_of, plan_change, plan_update, plan_write
from search_api.memories.targets import Target, namespace_of, once_writable, require_writer, writable
from search_api.metrics import ApiMetrics
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How long a caller waits for its events, and for what."""

    until: Milestone
    seconds: float


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
    metrics: ApiMetrics

    @property
    def events(self) -> Events:
        return Events(self.gate, self.metrics)

    @property
    def records(self) -> Acceptance:
        return Acceptance(gate=self.gate, clock=self.clock)

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
        refuse_double_keys(dict(zip(bodies, keys, strict=True)))
        targets = await self._superseded(principal, bodies, keys)
        self.quotas.take_write(principal, bytes_=bytes_of(list(bodies.values())), writes=len(bodies))
        asked = [
            _write_asked(principal, namespaces[field], body, targets, key, field)
            for (field, body), key in zip(bodies.items(), keys, strict=True)
        ]
        return await self._accept(principal, asked, wait, started)

    async def _superseded(
        self, principal: Principal, bodies: Mapping[str, MemoryBody], keys: Sequence[str | None]
    ) -> dict[str, Target]:
        """By id. Of a word that was accepted already, also what is gone by now: it gets the first answer again."""
        named = [
            (f, b, b.supersedes, k)
            for (f, b), k in zip(bodies.items(), keys, strict=True)
            if b.supersedes is not None
        ]
        said = [Said(hash=body_hash("write", body), key=key, field=field) for field, body, _, key in named]
        known = await self.records.known(principal, said)
        once = [doc_id for n, (_, _, doc_id, _) in enumerate(named) if n in known]
        now = [doc_id for n, (_, _, doc_id, _) in enumerate(named) if n not in known]
        found = await once_writable(self.gate, principal, once) | await writable(self.gate, principal, now)
        for target in found.values():
            self.clock.observe(target.version)
        return found

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
            before = None if key is None else await self.records.target_before(principal, key, hashed)
            if before is None or problem.problem.kind != "not-found":
                raise
            target = before
        self.clock.observe(target.version)
        return target

    def _check_lengths(self, bodies: Mapping[str, MemoryBody | MemoryUpdate]) -> None:
        for field, body in bodies.items():
            if len(body.content) > self.content_max_chars:
                msg = f"longer than {self.content_max_chars} characters"
                raise ProblemError(invalid_field(f"{field}.content", msg))

    async def _accept(
        self, principal: Principal, asked: Sequence[Asked], wait: Wait | None, started: float
    ) -> list[MemoryAnswer]:
        accepted = await self.records.record(principal, asked)
        records = [record for one in accepted for record in one.plan.records(self.topics)]
        try:
            await send(self.producer, records, unconfirmed=_UNCONFIRMED)
        except RecordTooLarge as exc:
            detail = "A memory is larger than the log takes (kafka.max_message_bytes): split it."
            raise ProblemError(Problem(kind="body-too-large", detail=detail)) from exc
        for one in accepted:
            outcome = "replayed" if one.replayed else "accepted"
            self.metrics.memory_events.labels(kind=one.plan.kind, outcome=outcome).inc()
        events = await self._followed(principal, accepted, wait, started)
        return [_answer(one, event) for one, event in zip(accepted, events, strict=True)]

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
    target = None if body.supersedes is None else targets.get(body.supersedes)
    superseded = None if target is None else target.document
    return Asked(
        hash=body_hash("write", body),
        key=key,
        further=further_of(body),
        plan=lambda identity: plan_write(
            identity, namespace, body, superseded=superseded, key=key, by=principal.agent_id, field=field
        ),
        field=field,
    )


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
