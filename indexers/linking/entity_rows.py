"""Rows of names and proposals as they follow from the names, the clustering and what curators decided. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from indexers.domain.entities.clusters import Proposal
from indexers.domain.entities.curation import Curation
from indexers.domain.entities.names import shape_of
from indexers.domain.identity import EntityNamespace, NameId, ProposalId
from indexers.opensearch.rows import EntityRow, ProposalRow, owner_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedName:
    """A name that is mentioned. `likeness_key`: the canonical name that it joined by likeness, or itself."""

    key: str
    mentions: int
    #: Its most frequent spelling.
    spelling: str
    likeness_key: str
    #: Of its entity, with merges on top.
    entity_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRows:
    """Makes the rows of one label of one namespace."""

    namespace: EntityNamespace
    label: str
    curation: Curation

    def name_id(self, key: str) -> NameId:
        return self.namespace.name_id(self.label, key)

    def entity_rows(
        self, names: Mapping[str, CountedName], documents: Mapping[str, int]
    ) -> dict[NameId, EntityRow]:
        """`names`: all names of each entity in it. `documents`: mention counts of entities with several names."""
        members: defaultdict[str, list[str]] = defaultdict(list)
        for key, name in names.items():
            members[name.entity_key].append(key)
        rows: dict[NameId, EntityRow] = {}
        for entity_key, keys in members.items():
            blocked = self.curation.is_blocked(keys)
            said = self.curation.name_of(keys)
            total = documents[entity_key] if len(keys) > 1 else names[entity_key].mentions
            for key in keys:
                canonical = key == entity_key
                shown = said if canonical and said is not None else names[key].spelling
                rows[self.name_id(key)] = self._row(
                    names[key], shown=shown, mention_count=total if canonical else 0, blocked=blocked
                )
        return rows

    def proposal_rows(
        self, proposals: Mapping[str, tuple[Proposal, ...]], entities: Mapping[str, str]
    ) -> dict[ProposalId, ProposalRow]:
        """`proposals` by their later name; `entities`: entity keys of all names in them."""
        return {
            self.namespace.proposal_id(self.label, proposal.key, proposal.other): self._proposal(
                proposal, entities
            )
            for found in proposals.values()
            for proposal in found
            if entities[proposal.key] != entities[proposal.other]
        }

    def _row(self, name: CountedName, *, shown: str, mention_count: int, blocked: bool) -> EntityRow:
        shape = shape_of(name.key, self.label)
        return EntityRow(
            **owner_fields(self.namespace.namespace),
            name_id=self.name_id(name.key),
            likeness_id=self.name_id(name.likeness_key),
            entity_id=self.name_id(name.entity_key),
            namespace=self.namespace.owner,
            label=self.label,
            key=name.key,
            name=shown,
            canonical=name.key == name.entity_key,
            mentions=name.mentions,
            mention_count=mention_count,
            blocked=blocked,
            grams=list(shape.grams),
            block=shape.block,
            length=shape.length,
        )

    def _proposal(self, proposal: Proposal, entities: Mapping[str, str]) -> ProposalRow:
        return ProposalRow(
            **owner_fields(self.namespace.namespace),
            namespace=self.namespace.owner,
            label=self.label,
            entity_id=self.name_id(entities[proposal.key]),
            other_id=self.name_id(entities[proposal.other]),
            key=proposal.key,
            other_key=proposal.other,
            similarity=round(proposal.similarity, 4),
            reason=proposal.reason,
        )
