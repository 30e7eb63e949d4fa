"""What is known of the names of one place while a batch is settled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from indexers.domain.entities.curation import Curation, CurationOp, curation_of
from indexers.domain.entities.reclustering import Changes
from indexers.domain.identity import NameId, Principal
from indexers.linking.counts import NameCount
from indexers.linking.entity_rows import LabelRows
from indexers.opensearch.find import Found
from indexers.opensearch.rows import EntityRow, OwnedRow
from streams.agents.link.decode import Place

R = TypeVar("R", bound=OwnedRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Generic[R]):
    """A row as it was read, with what is needed to replace exactly this state of it."""

    row: R
    seq_no: int
    primary_term: int


def stored_row(row: Found, kind: type[R]) -> Stored[R]:
    return Stored(row=msgspec.convert(row.source, kind), seq_no=row.seq_no, primary_term=row.primary_term)


def stored_name(row: Found) -> Stored[EntityRow]:
    return stored_row(row, EntityRow)


@dataclass(slots=True, kw_only=True)
class LabelWork:
    """`asked`: keys whose edges changed or that a command speaks of. All else is found on the way."""

    place: Place
    asked: set[str]
    #: Of these, those that a command speaks of: likeness and merges are looked at anew.
    curated: set[str] = field(default_factory=set)
    #: Of `asked`, those that are judged even where they were there and are.
    judged: set[str] = field(default_factory=set)
    commands: list[CurationOp] = field(default_factory=list)
    #: All commands that were ever given about names of the label.
    ops: list[CurationOp] = field(default_factory=list)
    curation: Curation = field(default_factory=Curation)
    #: Of every key asked for; a missing one has no edge.
    counts: dict[str, NameCount] = field(default_factory=dict)
    stored: dict[str, Stored[EntityRow]] = field(default_factory=dict)
    changes: Changes = field(default_factory=lambda: Changes(placements={}, proposals={}))
    _ids: dict[str, NameId] = field(default_factory=dict)

    @property
    def principal(self) -> Principal:
        return Principal.pipeline(self.place.tenant_id)

    @property
    def rows(self) -> LabelRows:
        return LabelRows(namespace=self.place.namespace, label=self.place.label, curation=self.curation)

    def name_id(self, key: str) -> NameId:
        if key not in self._ids:
            self._ids[key] = self.place.namespace.name_id(self.place.label, key)
        return self._ids[key]

    def decide(self, ops: Iterable[CurationOp]) -> None:
        self.ops = list(ops)
        self.curation = curation_of(self.ops)

    @property
    def merged_keys(self) -> set[str]:
        return {key for pair in self.curation.merges for key in pair}

    @property
    def come_or_gone(self) -> set[str]:
        return {key for key in self.asked if (key in self.counts) != (key in self.stored)}

    @property
    def to_judge(self) -> set[str]:
        return self.come_or_gone | self.judged

    def again(self) -> LabelWork | None:
        """For one more look at all that was judged; None: nothing was, counts alone have changed."""
        judged = self.to_judge | self.curated | set(self.changes.placements) | set(self.changes.proposals)
        if not judged:
            return None
        return LabelWork(place=self.place, asked=set(judged), curated=set(self.curated), judged=judged)

    def exists(self, key: str) -> bool:
        """Has edges: as counted just now, else as its row says."""
        return key in self.counts if key in self.asked else key in self.stored

    def learn(self, found: Iterable[Stored[EntityRow]]) -> None:
        """What was read first counts: a replacement must not go by a later state than its reasons."""
        for one in found:
            self.stored.setdefault(one.row.key, one)

    def placed(self, key: str) -> tuple[str, str]:
        """Of a name that exists: ids of the canonical name that it joined and of its entity."""
        placement = self.changes.placements.get(key)
        if placement is not None:
            return self.name_id(placement.likeness_key), self.name_id(placement.entity_key)
        row = self.stored[key].row
        return row.likeness_id, row.entity_id
