"""Which names are one entity: a function of the set of names and of what curators decided. Pure.

Names are taken in the fixed order (`names.order`). Each joins the best earlier canonical name by likeness: the most
similar one, of equals the earliest; else it is canonical itself. A name that joined another is never joined, so
A~B and B~C never brings A and C together. Curators' merges then unite canonical names, across names that no longer
exist too; the earliest canonical name of such a union is the entity's. Pairs held apart never join by likeness.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from indexers.domain.entities.names import Verdict, compare, order

#: Two keys of one label, in sorted order.
Pair = tuple[str, str]
#: A canonical name is proposed to so many earlier ones at most, the most similar first.
PROPOSALS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    #: The canonical name that it joined by likeness, its own key where it joined none.
    likeness_key: str
    #: With merges on top.
    entity_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Two canonical names of different entities, the earlier one in `key`."""

    key: str
    other: str
    similarity: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    placements: Mapping[str, Placement]
    #: By later key, then by similarity.
    proposals: tuple[Proposal, ...]


def pair_of(key: str, other: str) -> Pair:
    return (key, other) if key <= other else (other, key)


def cluster_all(
    keys: Collection[str], label: str, apart: Collection[Pair], merges: Collection[Pair]
) -> Clusters:
    """The reference: every name against every canonical one."""
    canonical: list[str] = []
    likeness: dict[str, str] = {}
    proposed: dict[str, list[Proposal]] = {}
    for key in sorted(set(keys), key=order):
        joined, proposals = place(key, canonical, label, apart)
        likeness[key] = joined
        if joined == key:
            canonical.append(key)
            proposed[key] = proposals
    entities = entity_keys(likeness, merges)
    return Clusters(
        placements={
            key: Placement(likeness_key=root, entity_key=entities.get(root, root))
            for key, root in likeness.items()
        },
        proposals=tuple(
            proposal
            for key in sorted(proposed, key=order)
            for proposal in proposed[key]
            if entities.get(proposal.key, proposal.key) != entities.get(key, key)
        ),
    )


def place(
    key: str, earlier: Iterable[str], label: str, apart: Collection[Pair]
) -> tuple[str, list[Proposal]]:
    """Which of these canonical names it joins (itself: none), and then the ones that it is proposed to."""
    joins: list[tuple[float, tuple[int, str]]] = []
    doubts: list[Proposal] = []
    for other in earlier:
        if pair_of(key, other) in apart:
            continue
        found = compare(key, other, label)
        if found.verdict is Verdict.JOIN:
            joins.append((-found.similarity, order(other)))
        elif found.verdict is Verdict.PROPOSE:
            doubts.append(Proposal(key=other, other=key, similarity=found.similarity, reason=found.reason))
    if joins:
        return min(joins)[1][1], []
    return key, sorted(doubts, key=lambda p: (-p.similarity, order(p.key)))[:PROPOSALS_MAX]


def entity_keys(likeness: Mapping[str, str], merges: Collection[Pair]) -> dict[str, str]:
    """Canonical names that merges touch → the canonical name of their entity.

    `likeness`: of every existing name that the merges speak of. A name that doesn't exist stands for itself.
    """
    groups: dict[str, set[str]] = {}
    for one, other in merges:
        united = groups.get(a := likeness.get(one, one), {a}) | groups.get(
            b := likeness.get(other, other), {b}
        )
        groups.update(dict.fromkeys(united, united))
    survivors: dict[str, str] = {}
    for root, group in groups.items():
        if existing := [member for member in group if likeness.get(member) == member]:
            survivors[root] = min(existing, key=order)
    return {root: survivor for root, survivor in survivors.items() if likeness.get(root) == root}
