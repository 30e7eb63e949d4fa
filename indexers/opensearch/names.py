"""Names of indices, their aliases and the ids of rows inside them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from indexers.domain.identity import TenantId
from indexers.errors import ConfigurationError
from indexers.opensearch.rows import Index

#: Counts incompatible changes of the mappings; a new number means new indices, filled by `hopline rebuild`.
SCHEMA_VERSION = 1
#: Recorded in every index and counted with each change of a mapping: one made by another version isn't written to,
#: since strict mappings would refuse rows. 2: documents got `name_keys`, `named_keys` and `name_text`.
#: 3: documents got health, session, speaker and what supersedes them; chunks repeat what ranking needs of it.
#: 4: vectors are compared by inner product; chunks got `own_vector` (indexers.domain.lead).
MAPPING_VERSION = 4
#: OpenSearch takes ids of at most 512 bytes; a row's own id is a UUID.
_TENANT_MAX_BYTES = 256
_NAME_PART = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
#: All generations of chunks at once: for reads and deletions by query.
EVERY: Final = "*"
#: The generation of chunks that a gate means: a number, all, or None: the one that is searched.
Chunks = int | Literal["*"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexNames:
    """`{prefix}-documents-v1` behind the alias `{prefix}-documents`; a large tenant may have its own.

    Of chunks there may be a second generation while they are reindexed: `{prefix}-chunks-v1@2`, each behind an alias of
    its own too, `{prefix}-chunks@2`.
    """

    prefix: str
    #: Tenant → suffix: its rows live in `{prefix}-documents-{suffix}-v1`.
    dedicated_tenants: Mapping[str, str] = field(default_factory=dict)
    chunks: Chunks = None

    def __post_init__(self) -> None:
        for part in (self.prefix, *self.dedicated_tenants.values()):
            if not _NAME_PART.fullmatch(part):
                msg = f"{part!r} can't be part of an index name: small ASCII letters, digits, '_', '.', '-'"
                raise ConfigurationError(msg)

    @property
    def suffixes(self) -> tuple[str | None, ...]:
        """None stands for the indices that the other tenants share."""
        return (None, *sorted(set(self.dedicated_tenants.values())))

    def alias(self, index: Index, tenant_id: TenantId) -> str:
        return self.meant(index, self.dedicated_tenants.get(tenant_id))

    def meant(self, index: Index, suffix: str | None) -> str:
        """What is asked or written: the alias, of chunks that of the generation that is meant."""
        alias = self.alias_of(index, suffix)
        if index is not Index.CHUNKS or self.chunks is None:
            return alias
        # The plain alias too: an index of before there were generations has no other.
        return f"{alias},{alias}@*" if self.chunks == EVERY else f"{alias}@{self.chunks}"

    def generation_alias(self, number: int, suffix: str | None) -> str:
        return f"{self.alias_of(Index.CHUNKS, suffix)}@{number}"

    def generation_index(self, number: int, suffix: str | None) -> str:
        first = self.index_of(Index.CHUNKS, suffix)
        return first if number == 1 else f"{first}@{number}"

    def generation_of(self, name: str, suffix: str | None) -> int | None:
        """The number in an index's name; None: it is none of this suffix."""
        first = self.index_of(Index.CHUNKS, suffix)
        if name == first:
            return 1
        head, _, number = name.rpartition("@")
        return int(number) if head == first and number.isdecimal() else None

    def index(self, index: Index, tenant_id: TenantId) -> str:
        return self.index_of(index, self.dedicated_tenants.get(tenant_id))

    def alias_of(self, index: Index, suffix: str | None) -> str:
        return "-".join(part for part in (self.prefix, index.value, suffix) if part)

    def index_of(self, index: Index, suffix: str | None) -> str:
        return f"{self.alias_of(index, suffix)}-v{SCHEMA_VERSION}"

    @property
    def template(self) -> str:
        return f"{self.prefix}-indices"

    @property
    def template_patterns(self) -> list[str]:
        """Aliases too: should one ever be created as an index by mistake, it shall take no row."""
        return [f"{self.prefix}-{index.value}*" for index in Index]


def stored_id(tenant_id: TenantId, row_id: str) -> str:
    """The tenant stands in the id itself, so that no write or delete can reach another tenant's row."""
    return f"{_tenant_part(tenant_id)}/{row_id}"


def row_id_of(stored: str) -> str:
    return stored.partition("/")[2]


def _tenant_part(tenant_id: TenantId) -> str:
    if len(tenant_id.encode()) <= _TENANT_MAX_BYTES:
        return tenant_id
    # "#" cannot stand in a label: a digest is never taken for a tenant of that name.
    return "#" + hashlib.sha256(tenant_id.encode()).hexdigest()
