"""What goes through the gate and what comes back, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from indexers.domain.identity import Principal
from indexers.opensearch.names import row_id_of
from indexers.opensearch.rows import (
    ChunkRow,
    ControlRow,
    CurationRow,
    DocumentRow,
    EntityRow,
    EventRow,
    ExtractionRow,
    GateRow,
    Index,
    LinkRow,
    MentionRow,
    OwnedRow,
    ProposalRow,
    RelationRow,
)

Action = Literal["index", "create", "delete", "replace_if", "delete_if"]
Status = Literal["applied", "stale", "conflict", "rejected"]

ROW_TYPES: Mapping[Index, type[OwnedRow]] = {
    Index.DOCUMENTS: DocumentRow,
    Index.CHUNKS: ChunkRow,
    Index.LINKS: LinkRow,
    Index.GATE: GateRow,
    Index.ENTITIES: EntityRow,
    Index.MENTIONS: MentionRow,
    Index.RELATIONS: RelationRow,
    Index.PROPOSALS: ProposalRow,
    Index.CURATION: CurationRow,
    Index.EXTRACTIONS: ExtractionRow,
    Index.CONTROL: ControlRow,
    Index.EVENTS: EventRow,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRef:
    principal: Principal
    row_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAsked:
    """A row of some index, and which of its fields; None: all but the vector."""

    index: Index
    ref: RowRef
    fields: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    row_id: str
    source: dict[str, Any]
    seq_no: int
    primary_term: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWrite:
    """One row to write.

    `index` stores the row unless a newer version is there; an equal version is applied again. `create` stores
    it unless a row is there. `replace_if` stores it if the row is still the one that was read. `delete`
    removes the row unless a newer version is there; a missing row is a success. `delete_if` removes it if it is
    still the one that was read.

    A request that was applied and whose answer got lost is sent again: `create`, `replace_if` and `delete_if` may
    then say `conflict` although they were applied, so look at the row before taking that for another writer's.
    """

    principal: Principal
    index: Index
    row_id: str
    action: Action
    row: OwnedRow | None = None
    version: int | None = None
    seq_no: int | None = None
    primary_term: int | None = None

    def __post_init__(self) -> None:
        if (self.row is None) != (self.action in ("delete", "delete_if")):
            msg = f"{self.action} {'needs a row' if self.row is None else 'takes no row'}"
            raise ValueError(msg)
        if (self.version is None) != (self.action not in ("index", "delete")):
            msg = f"{self.action} and version {self.version} contradict each other"
            raise ValueError(msg)
        known = self.seq_no is not None and self.primary_term is not None
        if known != (self.action in ("replace_if", "delete_if")):
            read = f"seq_no {self.seq_no}, primary_term {self.primary_term}"
            msg = f"{self.action} and {read} contradict each other"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """`stale`: a newer version is stored, a success that changes nothing. `rejected`: no retry mends it."""

    row_id: str
    status: Status
    reason: str | None = None
    seq_no: int | None = None
    primary_term: int | None = None


class SearchHit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Decoded from the answer as it stands; `gc=False`: nothing in it can be part of a cycle.

    A subclass with a typed `source` is decoded straight into that type (`GatedSearch.hit`).
    """

    stored_id: str = msgspec.field(name="_id")
    #: None where the body sorts by something else.
    score: float | None = msgspec.field(name="_score")
    source: Any = msgspec.field(name="_source", default_factory=dict)
    seq_no: int = msgspec.field(name="_seq_no")
    primary_term: int = msgspec.field(name="_primary_term")
    matched_queries: tuple[str, ...] = ()
    sort: tuple[Any, ...] = ()
    explanation: dict[str, Any] | None = msgspec.field(name="_explanation", default=None)

    @property
    def row_id(self) -> str:
        return row_id_of(self.stored_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedSearch:
    """`body` is OpenSearch's, of the shapes that `guard` allows."""

    principal: Principal
    index: Index
    body: Mapping[str, Any]
    hit: type[SearchHit] = SearchHit


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSearch:
    """A search with the principal's filter in it, as it is sent. Only the gate makes one (`Gate.prepare`)."""

    lines: bytes
    hit: type[SearchHit]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    hits: list[SearchHit]
    total: int
    aggregations: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSent:
    """One bulk request was answered."""

    rows: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRetried:
    """Rows of an answered bulk request that will be sent again."""

    rows: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRejected:
    """Rows that the engine will never take."""

    rows: int


StoreFact = BulkSent | BulkRetried | BulkRejected
#: Metrics and logs hang here; it must not block or raise.
Observer = Callable[[StoreFact], None]
