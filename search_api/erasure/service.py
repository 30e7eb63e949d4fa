"""Erasing for good: the word to the agents, the wait for them, and a look at every store before anything is signed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from indexers.domain.identity import AgentId, DocumentKey, Principal, TenantId
from indexers.erasures import ErasedDocument, Erasure, read_erasure, store_erasure
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index
from search_api.entities.curating import send
from search_api.erasure.models import CheckAnswer, ErasureAnswer, ErasureBody, ReceiptAnswer, ReceiptBody
from search_api.erasure.receipt import Receipt, is_complete, is_genuine, signed
from search_api.erasure.selecting import (
    Selected,
    Target,
    may_erase,
    select,
    select_tenant,
    targets_of,
    with_former_places,
)
from search_api.erasure.stores import count_rows, remove_the_rest
from search_api.identity.audit import Action, Actor, Audit
from search_api.memories.targets import require_writer
from search_api.problems import FieldError, ProblemError, forbidden, invalid, invalid_field, no_such
from search_api.stored import is_id
from streams.event_fields import new_event_fields
from streams.events import MemoryChanged, encode, new_event_id, now_iso
from streams.producer import EventProducer, OutgoingRecord
from streams.topics import Topics
from streams.versions import VersionClock

#: How long a call waits for the agents before it answers `pending`, and how often it looks.
_WAIT_SECONDS: Final = 6.0
_LOOK_SECONDS: Final = 0.3
_UNCONFIRMED: Final = (
    "The broker took too long to confirm it: it may still be carried out. Send it again; that does no harm."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasures:
    """Raises ProblemError. `count_files`: files of these documents in their vaults, forgotten ones included."""

    gate: Gate
    producer: EventProducer
    topics: Topics
    clock: VersionClock
    count_files: Callable[[Sequence[DocumentKey]], int]
    key: bytes
    audit: Audit

    async def erase_document(self, actor: Actor, doc_id: str) -> ErasureAnswer:
        """404 alike for what never was and what the principal may not see; what is erased already gives zeros."""
        principal = actor.principal
        require_writer(principal)
        [target] = await targets_of(self.gate, principal, [doc_id]) if is_id(doc_id) else [None]
        if target is None:
            raise no_such("document")
        if not may_erase(principal, target):
            raise forbidden("Only the document's author, or a key with the role `admin`, may erase it.")
        return await self._erase(actor, "document.erase", principal.tenant_id, Selected(targets=(target,)))

    async def erase(self, actor: Actor, body: ErasureBody) -> ErasureAnswer:
        principal = actor.principal
        require_writer(principal)
        given = [
            name for name in ("doc_ids", "agent", "session", "subject") if getattr(body, name) is not None
        ]
        if len(given) != 1:
            raise ProblemError(invalid_field("body", "give one of doc_ids, agent, session and subject"))
        if body.doc_ids is not None:
            named = await self._named(principal, body.doc_ids)
            return await self._erase(actor, "document.erase", principal.tenant_id, named)
        selected = await select(self.gate, principal, body)
        return await self._erase(actor, "query.erase", principal.tenant_id, selected)

    async def erase_tenant(self, actor: Actor, tenant_id: TenantId) -> ErasureAnswer:
        """The next 1,000 documents of a tenant that has ended; with the last of them, all its other rows.

        `more` says that the call is to be repeated.
        """
        selected = await select_tenant(self.gate, tenant_id)
        answer = await self._erase(actor, "tenant.erase", tenant_id, selected)
        if selected.targets:
            return answer.model_copy(update={"more": True})
        await remove_the_rest(self.gate, tenant_id)
        return answer

    async def answer(self, principal: Principal, erasure_id: str) -> ErasureAnswer:
        """How far it is; the receipt once nothing is left."""
        erasure = await read_erasure(self.gate, principal, erasure_id) if is_id(erasure_id) else None
        if erasure is None:
            raise no_such("erasure")
        return await self._answer(principal.tenant_id, erasure)

    def check(self, principal: Principal, body: ReceiptBody) -> CheckAnswer:
        """A receipt of another tenant is none here, genuine or not."""
        receipt = Receipt(**body.model_dump())
        return CheckAnswer(genuine=receipt.tenant_id == principal.tenant_id and is_genuine(receipt, self.key))

    async def _named(self, principal: Principal, doc_ids: Sequence[str]) -> Selected:
        found = await targets_of(self.gate, principal, [doc_id for doc_id in doc_ids if is_id(doc_id)])
        by_id = {target.doc_id: target for target in found if target is not None}
        errors = [
            FieldError(
                field=f"body.doc_ids.{at}", message="no such document, or not one that this key may erase"
            )
            for at, doc_id in enumerate(doc_ids)
            if doc_id not in by_id or not may_erase(principal, by_id[doc_id])
        ]
        if errors:
            raise ProblemError(invalid(errors))
        return Selected(targets=tuple(by_id.values()))

    async def _erase(
        self, actor: Actor, action: Action, tenant_id: TenantId, selected: Selected
    ) -> ErasureAnswer:
        by, sight = actor.principal.agent_id, Principal.pipeline(tenant_id)
        targets = await with_former_places(self.gate, sight, selected.targets)
        events = {target.doc_id: self._event(by, target) for target in targets if not target.fenced}
        erasure = Erasure(
            erasure_id=new_event_id(),
            requested_by=by,
            requested_at=now_iso(),
            documents=[
                _erased(target, events[target.doc_id].version if target.doc_id in events else target.version)
                for target in targets
            ],
            removed=await self._count(tenant_id, targets),
            more=selected.more,
        )
        # First the record: what is erased shall be known, whatever becomes of this process.
        await self._store(tenant_id, erasure)
        self.audit.record(
            actor,
            action,
            target=erasure.erasure_id,
            tenant=tenant_id,
            detail={"documents": str(len(erasure.documents))},
        )
        records = [
            OutgoingRecord(topic=self.topics.memory_writes, key=e.document.record_key, value=encode(e))
            for e in events.values()
        ]
        await send(self.producer, records, unconfirmed=_UNCONFIRMED)
        return await self._waited(tenant_id, erasure)

    async def _waited(self, tenant_id: TenantId, erasure: Erasure) -> ErasureAnswer:
        deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS
        while True:
            answer = await self._answer(tenant_id, erasure)
            if answer.state == "complete" or asyncio.get_running_loop().time() > deadline:
                return answer
            await asyncio.sleep(_LOOK_SECONDS)

    async def _answer(self, tenant_id: TenantId, erasure: Erasure) -> ErasureAnswer:
        if erasure.receipt is not None:
            return _answer_of(erasure, erasure.receipt["remaining"])
        remaining = await self._remaining(tenant_id, erasure)
        if is_complete(remaining):
            # Once more: a batch that was under way may have written a row, and takes it away again.
            await asyncio.sleep(_LOOK_SECONDS)
            remaining = await self._remaining(tenant_id, erasure)
        if is_complete(remaining):
            erasure = msgspec.structs.replace(
                erasure, receipt=msgspec.to_builtins(self._receipt(tenant_id, erasure, remaining))
            )
            await self._store(tenant_id, erasure)
        return _answer_of(erasure, remaining)

    async def _remaining(self, tenant_id: TenantId, erasure: Erasure) -> dict[str, int]:
        # Stage rows hold the path; an agent that was in the middle of something may have written one just now.
        query = {"terms": {"doc_id": erasure.doc_ids}}
        await self.gate.delete_matching(Principal.pipeline(tenant_id), Index.EVENTS, query)
        found = await targets_of(self.gate, Principal.pipeline(tenant_id), erasure.doc_ids)
        counts = await self._count(tenant_id, [target for target in found if target is not None])
        # Without a row there is no fence yet: a write that is accepted, and the word that erases it, are on their way.
        return counts | {"names": counts["names"] + found.count(None)}

    async def _count(self, tenant_id: TenantId, targets: Sequence[Target]) -> dict[str, int]:
        await self.gate.refresh()
        rows = await count_rows(self.gate, tenant_id, [target.doc_id for target in targets])
        open_ones = [target for target in targets if not target.fenced]
        files = await asyncio.to_thread(self.count_files, [target.document for target in open_ones])
        return {"files": files, "names": len(open_ones), **rows}

    def _event(self, by: AgentId, target: Target) -> MemoryChanged:
        self.clock.observe(target.version)
        return MemoryChanged(
            **new_event_fields(target.document.namespace),
            version=self.clock.next(),
            path=target.document.path,
            kind="erased",
            by=by,
        )

    def _receipt(self, tenant_id: TenantId, erasure: Erasure, remaining: dict[str, int]) -> Receipt:
        now = datetime.now(UTC)
        receipt = Receipt(
            erasure_id=erasure.erasure_id,
            tenant_id=tenant_id,
            requested_by=erasure.requested_by,
            requested_at=erasure.requested_at,
            completed_at=now.isoformat(timespec="milliseconds"),
            doc_ids=erasure.doc_ids,
            removed=erasure.removed,
            remaining=remaining,
            log_expires_at=(now + timedelta(milliseconds=self.topics.text_kept_ms)).isoformat(
                timespec="seconds"
            ),
        )
        return signed(receipt, self.key)

    async def _store(self, tenant_id: TenantId, erasure: Erasure) -> None:
        await store_erasure(self.gate, tenant_id, erasure, at=now_iso(), version=self.clock.next())


def _erased(target: Target, version: int) -> ErasedDocument:
    namespace = target.document.namespace
    return ErasedDocument(
        doc_id=target.doc_id,
        agent_id=namespace.agent_id,
        team_id=namespace.team_id,
        scope=namespace.scope.value,
        version=version,
    )


def _answer_of(erasure: Erasure, remaining: dict[str, int]) -> ErasureAnswer:
    receipt = erasure.receipt
    return ErasureAnswer(
        erasure_id=erasure.erasure_id,
        state="pending" if receipt is None else "complete",
        documents=len(erasure.documents),
        more=erasure.more,
        remaining=remaining,
        receipt=None if receipt is None else ReceiptAnswer(**receipt),
    )
