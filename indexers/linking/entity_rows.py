"""Rows of names and proposals as they follow from the names, the clustering and what curators decided. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from indexers.domain.entities.clusters import Proposal
from indexers.domain.entities.curation import Curation
from indexers.domain.entities.names import shape_of
from indexers.domain.identity import EntityNamespace, NameId, ProposalId
from indexers.opensearch.rows import EntityRow, ProposalRow, owner_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedName:
    """A name that is mentioned, and where it stands: the id of the canonical name that it joined, of its entity."""

    key: str
    mentions: int
    #: Its most frequent spelling.
    spelling: str
    likeness_id: str
    entity_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRows:
    """Makes the rows of one label of one namespace."""

    namespace: EntityNamespace
    label: str
    curation: Curation

    def name_id(self, key: str) -> NameId:
        return self.namespace.name_id(self.label, key)

    def entity_row(self, name: CountedName, keys: Sequence[str], documents: int | None) -> EntityRow:
        """`keys`: of all names of the entity; `documents`: its mention count, where it has several names."""
        name_id = self.name_id(name.key)
        canonical = name_id == name.entity_id
        said = self.curation.name_of(keys) if canonical else None
        total = name.mentions if len(keys) == 1 or documents is None else documents
        shape = shape_of(name.key, self.label)
        return EntityRow(
            **owner_fields(self.namespace.namespace),
            name_id=name_id,
            likeness_id=name.likeness_id,
            entity_id=name.entity_id,
            namespace=self.namespace.owner,
            label=self.label,
            key=name.key,
            name=name.spelling if said is None else said,
            canonical=canonical,
            mentions=name.mentions,
            mention_count=total if canonical else 0,
            blocked=self.curation.is_blocked(keys),
            grams=list(shape.grams),
            block=shape.block,
            length=shape.length,
        )

    def proposal_rows(self, proposals: Iterable[Proposal]) -> dict[ProposalId, ProposalRow]:
        return {
            self.namespace.proposal_id(self.label, proposal.key, proposal.other): self._proposal(proposal)
            for proposal in proposals
        }

    def _proposal(self, proposal: Proposal) -> ProposalRow:
        return ProposalRow(
            **owner_fields(self.namespace.namespace),
            namespace=self.namespace.owner,
            label=self.label,
            entity_id=self.name_id(proposal.entity_key),
            other_id=self.name_id(proposal.other_entity_key),
            key=proposal.key,
            other_key=proposal.other,
            similarity=round(proposal.similarity, 4),
            reason=proposal.reason,
        )
