"""Erasing for good: the word to the agents, the wait for them, and a look at every store before anything is signed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from indexers.domain.identity import AgentId, Principal, TenantId
from indexers.erasures import ErasedDocument, Erasure, open_erasure, read_erasure, store_erasure
from indexers.open_erasures import note_closed, note_open
from indexers.opensearch.gate import Gate
from search_api.entities.curating import send
from search_api.erasure.files import FileCount
from search_api.erasure.models import (
    DOCUMENTS_MAX,
    CheckAnswer,
    ErasureAnswer,
    ErasureBody,
    ReceiptAnswer,
    ReceiptBody,
)
from search_api.erasure.receipt import Receipt, is_complete, is_genuine, signed
from search_api.erasure.selecting import (
    Selected,
    Target,
    may_erase,
    rowless,
    select,
    select_tenant,
    targets_of,
    with_former_places,
)
from search_api.erasure.stores import COUNTED, count_rows, remove_events, remove_the_rest
from search_api.identity.audit import Action, Actor, Audit
from search_api.memories.targets import require_writer
from search_api.problems import FieldError, ProblemError, forbidden, invalid, invalid_field, no_such
from search_api.quotas import Quotas
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
    """Raises ProblemError."""

    gate: Gate
    producer: EventProducer
    topics: Topics
    clock: VersionClock
    files: FileCount
    key: bytes
    audit: Audit
    quotas: Quotas

    async def erase_document(self, actor: Actor, doc_id: str) -> ErasureAnswer:
        """404 alike for what never was and what the principal may not see; what is erased already gives zeros."""
        principal = actor.principal
        require_writer(principal)
        [target] = await targets_of(self.gate, principal, [doc_id]) if is_id(doc_id) else [None]
        if target is None:
            raise no_such("document")
        if not may_erase(principal, target):
            raise forbidden("Only the document's author, or a key with the role `admin`, may erase it.")
        self.quotas.take_write(principal, bytes_=0)
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
            self.quotas.take_write(principal, bytes_=0, writes=len(named.targets))
            return await self._erase(actor, "document.erase", principal.tenant_id, named)
        selected = await select(self.gate, principal, body)
        if body.agent is not None and (body.agent == principal.agent_id or "admin" in principal.roles):
            selected = await self._with_set_aside(principal.tenant_id, body.agent, selected)
        self.quotas.take_write(principal, bytes_=0, writes=max(1, len(selected.targets)))
        return await self._erase(actor, "query.erase", principal.tenant_id, selected)

    async def erase_tenant(self, actor: Actor, tenant_id: TenantId) -> ErasureAnswer:
        """The next 1,000 documents of a tenant that has ended; with the last of them, all its other rows.

        `more` says that the call is to be repeated.
        """
        begun = await open_erasure(self.gate, tenant_id)
        if begun is not None:
            answer = await self._waited(tenant_id, begun)
            return answer.model_copy(update={"more": True})
        selected = await select_tenant(self.gate, tenant_id)
        selected = await self._with_set_aside(tenant_id, None, selected)
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

    async def advance(self, tenant_id: TenantId, erasure: Erasure) -> bool:
        """What an asker's next look would do, for erasures that nobody asks after. True: it is complete now."""
        return (await self._answer(tenant_id, erasure)).state == "complete"

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

    async def _with_set_aside(self, tenant_id: TenantId, agent: str | None, selected: Selected) -> Selected:
        """Forgotten files stay longer than their rows."""
        if selected.more:
            return selected
        keys = await asyncio.to_thread(self.files.set_aside, tenant_id, agent)
        known = {target.doc_id for target in selected.targets}
        rest = [key for key in dict.fromkeys(keys) if key.doc_id not in known]
        rows = await targets_of(self.gate, Principal.pipeline(tenant_id), [key.doc_id for key in rest])
        more = [row or rowless(key) for key, row in zip(rest, rows, strict=True)]
        targets = (*selected.targets, *more)
        return Selected(targets=targets[:DOCUMENTS_MAX], more=len(targets) > DOCUMENTS_MAX)

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
            removed=await self._standing(tenant_id, targets),
            more=selected.more,
        )
        # First the record: what is erased shall be known, whatever becomes of this process.
        if targets:
            await note_open(self.gate, tenant_id, erasure)
        await self._store(tenant_id, erasure)
        self.audit.record(
            actor,
            action,
            target=erasure.erasure_id,
            tenant=tenant_id,
            detail={"documents": str(len(erasure.documents))},
        )
        await self._send(events.values())
        return await self._waited(tenant_id, erasure)

    async def _waited(self, tenant_id: TenantId, erasure: Erasure) -> ErasureAnswer:
        clock = asyncio.get_running_loop().time
        deadline = clock() + _WAIT_SECONDS
        while True:
            begun = clock()
            answer = await self._answer(tenant_id, erasure)
            # Another look, on an engine as slow as it is now, must end within the request's time.
            if answer.state == "complete" or clock() + 2 * (clock() - begun) > deadline:
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
            if erasure.documents:
                await note_closed(self.gate, [erasure.erasure_id])
        return _answer_of(erasure, remaining)

    async def _remaining(self, tenant_id: TenantId, erasure: Erasure) -> dict[str, int]:
        """A document counts until its fence stands: of one that was only accepted, there is no other sign."""
        found = await targets_of(self.gate, Principal.pipeline(tenant_id), erasure.doc_ids)
        pairs = list(zip(erasure.documents, found, strict=True))
        unfenced = [target for erased, target in pairs if not _is_fenced(erased, target)]
        if unfenced:
            # Nothing is counted yet: to look through every store costs each of them a refresh.
            await self._send_again(tenant_id, erasure, pairs)
            return {"names": len(unfenced)}
        # Stage rows hold the path; an agent that was in the middle of something may write one once more.
        await remove_events(self.gate, tenant_id, erasure.doc_ids)
        files = await asyncio.to_thread(self.files.left, tenant_id, erasure.documents)
        return {"files": files, "names": 0, **await self._rows(tenant_id, erasure.doc_ids)}

    async def _send_again(
        self, tenant_id: TenantId, erasure: Erasure, pairs: Sequence[tuple[ErasedDocument, Target | None]]
    ) -> None:
        """Where the file was seen, or deleted, at the same time: that was newer, and the erasure passed over."""
        overtaken = [
            (erased, target)
            for erased, target in pairs
            if target is not None and not target.fenced and target.version > erased.version
        ]
        if not overtaken:
            return
        events = [self._event(AgentId(erasure.requested_by), target) for _, target in overtaken]
        for (erased, _), event in zip(overtaken, events, strict=True):
            at = erasure.documents.index(erased)
            erasure.documents[at] = msgspec.structs.replace(erased, version=event.version)
        await self._store(tenant_id, erasure)
        await self._send(events)

    async def _send(self, events: Iterable[MemoryChanged]) -> None:
        records = [
            OutgoingRecord(topic=self.topics.memory_writes, key=e.document.record_key, value=encode(e))
            for e in events
        ]
        await send(self.producer, records, unconfirmed=_UNCONFIRMED)

    async def _standing(self, tenant_id: TenantId, targets: Sequence[Target]) -> dict[str, int]:
        """What there is of them before they are erased."""
        unfenced = [target for target in targets if not target.fenced]
        files = await asyncio.to_thread(self.files.of, [target.document for target in unfenced])
        rows = await self._rows(tenant_id, [target.doc_id for target in targets])
        return {"files": files, "names": len(unfenced), **rows}

    async def _rows(self, tenant_id: TenantId, doc_ids: Sequence[str]) -> dict[str, int]:
        await self.gate.everywhere.refresh(*COUNTED)
        return await count_rows(self.gate, tenant_id, doc_ids)

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


def _is_fenced(erased: ErasedDocument, target: Target | None) -> bool:
    return target is not None and target.fenced and target.version >= erased.version


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
