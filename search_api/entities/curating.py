"""Curators' commands, put onto the pipeline's log: the link agent carries them out in the order of their arrival."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from indexers.domain.entities.curation import CurationKind
from indexers.domain.identity import EntityNamespace, Principal
from indexers.errors import Transient
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import EntityRow, Index
from search_api.entities.models import CommandAnswer, MergeBody, RenameBody, UnmergeBody
from search_api.entities.rows import all_names, entity_of, name_rows
from search_api.problems import Problem, ProblemError, invalid_field, no_such, unavailable
from search_api.stored import is_id
from streams.event_fields import new_event_fields
from streams.events import CurationCommand, encode
from streams.producer import EventProducer, OutgoingRecord
from streams.topics import Topics
from streams.versions import VersionClock

CURATORS: Final = frozenset({"curator", "admin"})
#: Less than a request may take: the caller shall read what became of the command.
_BROKER_SECONDS: Final = 4.0
_AWAY: Final = "The broker is away or overloaded; nothing was accepted. Send it again."
_UNCONFIRMED: Final = (
    "The broker took too long to confirm it: it may still be carried out. To send it again does no harm."
)


def require_curator(principal: Principal) -> None:
    if not CURATORS & set(principal.roles):
        detail = "Only a key with the role `curator` or `admin` may change entities and labels."
        raise ProblemError(Problem(kind="forbidden", detail=detail))


class Curation:
    """Raises ProblemError. A command is taken once the broker has confirmed it."""

    def __init__(self, gate: Gate, producer: EventProducer, topics: Topics, clock: VersionClock) -> None:
        self._gate = gate
        self._producer = producer
        self._topics = topics
        self._clock = clock

    async def merge(self, principal: Principal, entity_id: str, body: MergeBody) -> CommandAnswer:
        require_curator(principal)
        entity = await entity_of(self._gate, principal, entity_id)
        other = await entity_of(self._gate, principal, body.other_id)
        if (entity.namespace, entity.label) != (other.namespace, other.label):
            msg = "an entity of another label or namespace: only entities of one kind can be one"
            raise ProblemError(invalid_field("body.other_id", msg))
        if entity.entity_id == other.entity_id:
            raise ProblemError(invalid_field("body.other_id", "the same entity already"))
        return await self._send(principal, entity, "merge", [entity.key, other.key], reason=body.reason)

    async def unmerge(self, principal: Principal, entity_id: str, body: UnmergeBody) -> CommandAnswer:
        require_curator(principal)
        if (body.merge_event_id is None) == (body.name_id is None):
            raise ProblemError(invalid_field("body", "give merge_event_id or name_id, one of the two"))
        entity = await entity_of(self._gate, principal, entity_id)
        if body.merge_event_id is not None:
            keys = await self._merged_keys(principal, entity, body.merge_event_id)
        else:
            keys = await self._alias_keys(principal, entity, body.name_id or "")
        return await self._send(
            principal, entity, "unmerge", keys, undoes=body.merge_event_id, reason=body.reason
        )

    async def rename(self, principal: Principal, entity_id: str, body: RenameBody) -> CommandAnswer:
        require_curator(principal)
        entity = await entity_of(self._gate, principal, entity_id)
        return await self._send(principal, entity, "rename", [entity.key], name=body.name, reason=body.reason)

    async def block(self, principal: Principal, entity_id: str, reason: str | None) -> CommandAnswer:
        require_curator(principal)
        entity = await entity_of(self._gate, principal, entity_id)
        return await self._send(principal, entity, "block", [entity.key], reason=reason)

    async def unblock(self, principal: Principal, entity_id: str, reason: str | None) -> CommandAnswer:
        require_curator(principal)
        entity = await entity_of(self._gate, principal, entity_id)
        return await self._send(principal, entity, "unblock", [entity.key], reason=reason)

    async def decide(
        self, principal: Principal, proposal_id: str, kind: CurationKind, reason: str | None
    ) -> CommandAnswer:
        """`accept` or `reject` of a proposal that still stands."""
        require_curator(principal)
        row = None
        if is_id(proposal_id):
            ref = RowRef(principal=principal, row_id=proposal_id)
            [row] = await self._gate.get_many(Index.PROPOSALS, [ref])
        if row is None:
            raise no_such("proposal")
        rows = await name_rows(self._gate, principal, [row.source["entity_id"]])
        if not rows:
            raise no_such("proposal")
        [entity] = rows.values()
        keys = [row.source["key"], row.source["other_key"]]
        return await self._send(principal, entity, kind, keys, reason=reason)

    async def _alias_keys(self, principal: Principal, entity: EntityRow, name_id: str) -> list[str]:
        rows = await name_rows(self._gate, principal, [name_id]) if is_id(name_id) else {}
        name = rows.get(name_id)
        if name is None or name.entity_id != entity.entity_id or name.name_id == entity.entity_id:
            msg = "no alias of this entity: its canonical name can't leave, the others can leave it"
            raise ProblemError(invalid_field("body.name_id", msg))
        return [name.key, entity.key]

    async def _merged_keys(self, principal: Principal, entity: EntityRow, event_id: str) -> list[str]:
        ref = RowRef(principal=principal, row_id=event_id)
        [row] = await self._gate.get_many(Index.CURATION, [ref])
        keys = {name.key for name in await all_names(self._gate, principal, entity)}
        if (
            row is None
            or row.source["kind"] not in ("merge", "accept")
            or (row.source["namespace"], row.source["label"]) != (entity.namespace, entity.label)
            or not keys & set(row.source["keys"])
        ):
            msg = "no merge of this entity; its history (`GET …/history`) names them"
            raise ProblemError(invalid_field("body.merge_event_id", msg))
        return list(row.source["keys"])

    async def _send(
        self,
        principal: Principal,
        entity: EntityRow,
        kind: CurationKind,
        keys: Sequence[str],
        *,
        name: str | None = None,
        undoes: str | None = None,
        reason: str | None = None,
    ) -> CommandAnswer:
        namespace = EntityNamespace(tenant_id=principal.tenant_id, owner=entity.namespace)
        owner = namespace.namespace
        event = CurationCommand(
            **new_event_fields(owner),
            version=self._clock.next(),
            kind=kind,
            label=entity.label,
            keys=list(keys),
            name=name,
            undoes=undoes,
            by=principal.agent_id,
            reason=reason,
        )
        record = OutgoingRecord(
            topic=self._topics.mentions, key=namespace.record_key(entity.label), value=encode(event)
        )
        await send(self._producer, [record])
        return CommandAnswer(event_id=event.event_id)


async def reach(producer: EventProducer) -> None:
    """Raises 503 where no broker answers; nothing was sent then."""
    async with _answered(_AWAY):
        await producer.start()


async def send(
    producer: EventProducer, records: Sequence[OutgoingRecord], *, unconfirmed: str = _UNCONFIRMED
) -> None:
    """Returns once the broker has confirmed. Raises 503, which says whether anything may have been taken."""
    await reach(producer)
    async with _answered(unconfirmed):
        await producer.send_all(records)


@asynccontextmanager
async def _answered(detail: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_BROKER_SECONDS):
            yield
    except Transient as fault:
        raise ProblemError(unavailable("broker-unavailable", detail, fault.retry_after)) from fault
    except TimeoutError as fault:
        raise ProblemError(unavailable("broker-unavailable", detail)) from fault
