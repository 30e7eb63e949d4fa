"""Who may write what: the namespace of a new memory, and the document that a word is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indexers.bookkeeping import ERASED
from indexers.domain.identity import DocumentKey, Namespace, Principal, Scope, TeamId
from indexers.event_rows import pointer_id
from indexers.opensearch.gate import Gate, RowAsked, RowRef, StoredRow
from indexers.opensearch.rows import Index, owner_of
from indexers.vault.tree import VaultTree
from search_api.memories.bodies import MemoryBody
from search_api.problems import ProblemError, forbidden, invalid_field, no_such
from search_api.stored import is_id

WRITERS: Final = frozenset({"agent", "curator", "admin"})
_FIELDS: Final = ("agent_id", "team_id", "scope", "path", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A living document, or one on its way. `version`: the newest known."""

    document: DocumentKey
    version: int


def require_writer(principal: Principal) -> None:
    if not WRITERS & set(principal.roles):
        raise forbidden("Only a key with the role `agent`, `curator` or `admin` may write memories.")


def namespace_of(principal: Principal, body: MemoryBody, vaults: VaultTree, *, field: str) -> Namespace:
    """Raises 422 that names the field below `field`."""
    team = _team_of(principal, body, field=field)
    namespace = Namespace(
        tenant_id=principal.tenant_id, agent_id=principal.agent_id, scope=body.scope, team_id=team
    )
    if vaults.get(namespace) is None:
        msg = f"no vault takes memories of scope {namespace.scope_label} of this agent"
        raise ProblemError(invalid_field(f"{field}.scope", msg))
    return namespace


async def writable(gate: Gate, principal: Principal, doc_ids: Sequence[str]) -> dict[str, Target]:
    """404 for one that isn't there or can't be seen, 403 for one that is another's."""
    found = await _targets(gate, principal, [doc_id for doc_id in doc_ids if is_id(doc_id)])
    for doc_id in doc_ids:
        target = found.get(doc_id)
        if target is None:
            raise no_such("document")
        if not _may_write(principal, target.document.namespace):
            raise forbidden("Only its author, or a key with the role `admin`, may change this document.")
    return found


async def once_writable(gate: Gate, principal: Principal, doc_ids: Sequence[str]) -> dict[str, Target]:
    """For words that were accepted already: nothing is refused, forgotten ones are found, erased ones left out."""
    return await _targets(gate, principal, [doc_id for doc_id in doc_ids if is_id(doc_id)], forgotten=True)


async def _targets(
    gate: Gate, principal: Principal, doc_ids: Sequence[str], *, forgotten: bool = False
) -> dict[str, Target]:
    """Of those the principal may see. A write that is accepted is known by its pointer until its row is there."""
    asked = [
        RowAsked(index=index, ref=RowRef(principal=principal, row_id=row_id), fields=(*_FIELDS, *more))
        for doc_id in doc_ids
        for index, row_id, more in (
            (Index.DOCUMENTS, doc_id, ("deleted", "no_vector_reason")),
            (Index.EVENTS, pointer_id(doc_id), ()),
        )
    ]
    rows = iter(await gate.get_rows(asked) if asked else [])
    found: dict[str, Target] = {}
    for doc_id, document, pointer in zip(doc_ids, rows, rows, strict=True):
        row = document or pointer
        if row is not None and _is_wanted(row, forgotten=forgotten):
            namespace = owner_of(principal.tenant_id, row.source)
            key = namespace.document(row.source["path"])
            found[doc_id] = Target(document=key, version=int(row.source["version"]))
    return found


def _is_wanted(row: StoredRow, *, forgotten: bool) -> bool:
    return not row.source.get("deleted", False) or (forgotten and row.source["no_vector_reason"] != ERASED)


def _may_write(principal: Principal, owner: Namespace) -> bool:
    if owner.agent_id == principal.agent_id:
        return True
    return "admin" in principal.roles and owner.scope is not Scope.PERSONAL


def _team_of(principal: Principal, body: MemoryBody, *, field: str) -> TeamId | None:
    if body.scope is not Scope.TEAM:
        if body.team is not None:
            raise ProblemError(invalid_field(f"{field}.team", "only scope `team` has a team"))
        return None
    if body.team is None:
        if len(principal.teams) != 1:
            msg = f"name one of this key's teams: it has {len(principal.teams)}"
            raise ProblemError(invalid_field(f"{field}.team", msg))
        return principal.teams[0]
    if body.team not in principal.teams:
        raise ProblemError(invalid_field(f"{field}.team", "none of this key's teams"))
    return TeamId(body.team)
