"""Who owns what, and the ids that follow from it. Pure: the same identity gives the same id everywhere."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NewType
from uuid import UUID, uuid5

TenantId = NewType("TenantId", str)
AgentId = NewType("AgentId", str)
TeamId = NewType("TeamId", str)
DocumentId = NewType("DocumentId", str)
ChunkId = NewType("ChunkId", str)
LinkId = NewType("LinkId", str)
#: Of one name under one label of one namespace. An entity has the id of its canonical name.
NameId = NewType("NameId", str)
EntityId = NewType("EntityId", str)
MentionId = NewType("MentionId", str)
RelationId = NewType("RelationId", str)
ProposalId = NewType("ProposalId", str)

#: Root of every Hopline id (RFC 9562 version 5). Changing it orphans every stored row.
ID_NAMESPACE = UUID("6f1d6f5e-3c1b-5d0a-9c53-5b8d2f6a7e41")
#: U+001F cannot stand in a label or a path, so joined parts can't run into each other.
SEPARATOR = "\x1f"
LABEL_PATTERN = r"[\w][\w.-]{0,127}"
_LABEL = re.compile(LABEL_PATTERN)

#: Agent of rows that belong to a whole team or tenant.
KEEPER = AgentId("hopline")

#: Tenant of the installation itself: its keys and tenants stand there, its admins are operators. It has no documents.
INSTALLATION = TenantId("hopline")

Role = Literal["agent", "reader", "curator", "admin", "pipeline"]


class Scope(StrEnum):
    """Who may see a document: its agent, its team, or the whole tenant."""

    PERSONAL = "personal"
    TEAM = "team"
    SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. Stands in every call to the gate; there is no default and no anonymous."""

    tenant_id: TenantId
    agent_id: AgentId
    teams: tuple[TeamId, ...] = ()
    roles: tuple[Role, ...] = ("agent",)

    def __post_init__(self) -> None:
        for name in (self.tenant_id, self.agent_id, *self.teams):
            check_label(name)

    @classmethod
    def pipeline(cls, tenant_id: TenantId) -> Principal:
        """The tenant's own maintenance: it sees every scope of this one tenant (link resolution, verify)."""
        return cls(tenant_id=tenant_id, agent_id=AgentId("pipeline"), roles=("pipeline",))

    @property
    def sees_whole_tenant(self) -> bool:
        return "pipeline" in self.roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """The owner of a scope within a tenant: one agent, one team, or the tenant itself.

    `agent_id` is always the author: two agents of one tenant may each hold a shared `notes.md`.
    """

    tenant_id: TenantId
    agent_id: AgentId
    scope: Scope
    team_id: TeamId | None = None

    def __post_init__(self) -> None:
        check_label(self.tenant_id)
        check_label(self.agent_id)
        if (self.scope is Scope.TEAM) != (self.team_id is not None):
            msg = (
                f"scope {self.scope} and team {self.team_id!r} contradict each other: only scope team has one"
            )
            raise ValueError(msg)
        if self.team_id is not None:
            check_label(self.team_id)

    @property
    def principal(self) -> Principal:
        """An agent acts as the principal named in the event."""
        teams = () if self.team_id is None else (self.team_id,)
        return Principal(tenant_id=self.tenant_id, agent_id=self.agent_id, teams=teams)

    @property
    def scope_label(self) -> str:
        return self.scope.value if self.team_id is None else f"{self.scope.value}:{self.team_id}"

    def document(self, path: str) -> DocumentKey:
        return DocumentKey(namespace=self, path=normalise_path(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKey:
    """Identity of a document: (tenant, agent, scope, path); the path is NFC, relative, with forward slashes."""

    namespace: Namespace
    path: str

    @property
    def doc_id(self) -> DocumentId:
        ns = self.namespace
        return DocumentId(_uuid("document", ns.tenant_id, ns.agent_id, ns.scope_label, self.path))

    @property
    def record_key(self) -> bytes:
        """Kafka key of both input topics: one document, one partition."""
        ns = self.namespace
        return f"{ns.tenant_id}/{ns.agent_id}/{ns.scope_label}/{self.path}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityNamespace:
    """Where names of entities are told apart: one agent's own, one team's, or the tenant's shared ones.

    Unlike `Namespace` it has no author: shared documents of two agents name the same entities.
    """

    tenant_id: TenantId
    #: `shared`, `team:<team>` or `agent:<agent>`: as it stands in routes, keys and rows.
    owner: str

    def __post_init__(self) -> None:
        check_label(self.tenant_id)
        kind, _, name = self.owner.partition(":")
        if kind in ("team", "agent"):
            check_label(name)
        elif self.owner != "shared":
            msg = f"{self.owner!r} is no namespace: give shared, team:<team> or agent:<agent>"
            raise ValueError(msg)

    @classmethod
    def of(cls, namespace: Namespace) -> EntityNamespace:
        match namespace.scope:
            case Scope.PERSONAL:
                owner = f"agent:{namespace.agent_id}"
            case Scope.TEAM:
                owner = f"team:{namespace.team_id}"
            case Scope.SHARED:
                owner = "shared"
        return cls(tenant_id=namespace.tenant_id, owner=owner)

    @property
    def scope(self) -> Scope:
        kind = self.owner.partition(":")[0]
        return {"agent": Scope.PERSONAL, "team": Scope.TEAM, "shared": Scope.SHARED}[kind]

    @property
    def namespace(self) -> Namespace:
        """Owner of the namespace's own rows. A team's and the tenant's belong to no agent: `KEEPER` stands there."""
        kind, _, name = self.owner.partition(":")
        return Namespace(
            tenant_id=self.tenant_id,
            agent_id=AgentId(name) if kind == "agent" else KEEPER,
            scope=self.scope,
            team_id=TeamId(name) if kind == "team" else None,
        )

    def record_key(self, label: str) -> bytes:
        """Kafka key of the mentions topic: one (tenant, namespace, label), one partition, one writer."""
        return f"{self.tenant_id}/{self.owner}/{label}".encode()

    def name_id(self, label: str, key: str) -> NameId:
        """`key`: the normalised name (indexers.domain.entities.names)."""
        return NameId(_uuid("name", self.tenant_id, self.owner, label, key))

    def proposal_id(self, label: str, key: str, other_key: str) -> ProposalId:
        return ProposalId(_uuid("proposal", self.tenant_id, self.owner, label, *sorted((key, other_key))))


def mention_id(doc_id: DocumentId, name_id: NameId) -> MentionId:
    """One edge of a document to a name, whatever the version: the newest replaces it."""
    return MentionId(_uuid("mention", doc_id, name_id))


def relation_id(doc_id: DocumentId, subject_id: NameId, relation_type: str, object_id: NameId) -> RelationId:
    return RelationId(_uuid("relation", doc_id, subject_id, relation_type, object_id))


def chunk_id(doc_id: DocumentId, ordinal: int) -> ChunkId:
    return ChunkId(_uuid("chunk", doc_id, str(ordinal)))


def link_id(doc_id: DocumentId, version: int, target_key: str, link_type: str) -> LinkId:
    """Id of an edge of one document version: another version's edges are other rows."""
    return LinkId(_uuid("link", doc_id, str(version), target_key, link_type))


def normalise_path(path: str) -> str:
    """NFC, forward slashes, no leading `./`. Raises ValueError for paths that leave the vault."""
    parts = [p for p in unicodedata.normalize("NFC", path).split("/") if p not in ("", ".")]
    if not parts or ".." in parts or path.startswith("/") or any(ord(c) < 32 for c in path):
        msg = f"{path!r} is no path inside a vault: give a relative path without '..' and control characters"
        raise ValueError(msg)
    return "/".join(parts)


def check_label(name: str) -> None:
    if not _LABEL.fullmatch(name):
        msg = f"{name!r} can't name a tenant, agent, team or label: give letters, digits, '_', '.' and '-', at most 128"
        raise ValueError(msg)


def _uuid(*parts: str) -> str:
    return str(uuid5(ID_NAMESPACE, SEPARATOR.join(parts)))
