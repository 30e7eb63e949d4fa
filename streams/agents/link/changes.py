"""Where the rows that are due differ from those in the store. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from indexers.domain.identity import NameId, Principal
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import EntityRow, Index, ProposalRow
from streams.agents.link.decode import Place
from streams.agents.link.proposing import ProposalWork
from streams.agents.link.work import LabelWork, Stored


@dataclass(slots=True, kw_only=True)
class Settled:
    """Names that came, joined another by likeness as they came, or went; proposals made."""

    created: int = 0
    joined: int = 0
    removed: int = 0
    proposed: int = 0

    def add(self, changes: Changes) -> None:
        self.created += changes.settled.created
        self.joined += changes.settled.joined
        self.removed += changes.settled.removed
        self.proposed += changes.settled.proposed


@dataclass(slots=True, kw_only=True)
class Changes:
    """`late`: rows of names that come or go. `places`: those where anything changes."""

    early: list[RowWrite] = field(default_factory=list)
    late: list[RowWrite] = field(default_factory=list)
    places: set[Place] = field(default_factory=set)
    settled: Settled = field(default_factory=Settled)


def changes_of(
    members: Sequence[tuple[LabelWork, set[str]]],
    rows: Sequence[Mapping[NameId, EntityRow]],
    proposing: Sequence[ProposalWork],
) -> Changes:
    changes = Changes()
    for (work, keys), due in zip(members, rows, strict=True):
        _add_names(changes, work, keys, due)
    for one in proposing:
        _add_proposals(changes, one)
    return changes


def _add_names(changes: Changes, work: LabelWork, keys: set[str], due: Mapping[NameId, EntityRow]) -> None:
    come_or_gone = work.come_or_gone
    for key in sorted(keys):
        name_id = work.name_id(key)
        row, stored = due.get(name_id), work.stored.get(key)
        change = _change(work.principal, Index.ENTITIES, name_id, row, stored)
        if change is not None:
            (changes.late if key in come_or_gone else changes.early).append(change)
            changes.places.add(work.place)
            changes.settled.created += stored is None
            changes.settled.removed += row is None
            changes.settled.joined += stored is None and row is not None and row.likeness_id != name_id


def _add_proposals(changes: Changes, proposing: ProposalWork) -> None:
    work = proposing.work
    for row_id in sorted({*proposing.due, *proposing.stored}):
        row, stored = proposing.due.get(row_id), proposing.stored.get(row_id)
        change = _change(work.principal, Index.PROPOSALS, row_id, row, stored)
        if change is not None:
            changes.early.append(change)
            changes.places.add(work.place)
            changes.settled.proposed += stored is None


def _change(
    principal: Principal,
    index: Index,
    row_id: str,
    due: EntityRow | ProposalRow | None,
    stored: Stored[EntityRow] | Stored[ProposalRow] | None,
) -> RowWrite | None:
    """None: the store says so already, or has nothing where nothing is due."""
    if stored is None:
        if due is None:
            return None
        return RowWrite(principal=principal, index=index, row_id=row_id, action="create", row=due)
    if due == stored.row:
        return None
    return RowWrite(
        principal=principal,
        index=index,
        row_id=row_id,
        action="delete_if" if due is None else "replace_if",
        row=due,
        seq_no=stored.seq_no,
        primary_term=stored.primary_term,
    )
