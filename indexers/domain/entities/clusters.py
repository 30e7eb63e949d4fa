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
#: A canonical name is proposed to so many earlier ones at most, the most similar first. So there are never more
#: proposals than five times the names, and of a pair it is always the later name's five that count.
PROPOSALS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    #: The canonical name that it joined by likeness, its own key where it joined none.
    likeness_key: str
    #: With merges on top.
    entity_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A canonical name may be an earlier canonical one."""

    earlier: str
    similarity: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Two canonical names of different entities, the earlier one in `key`."""

    key: str
    entity_key: str
    other: str
    other_entity_key: str
    similarity: float
    #: similar, conflicting_tokens.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    placements: Mapping[str, Placement]
    #: By the later key, most similar first; without the names that have none.
    proposals: Mapping[str, tuple[Proposal, ...]]


def pair_of(key: str, other: str) -> Pair:
    return (key, other) if key <= other else (other, key)


def cluster_all(
    keys: Collection[str], label: str, apart: Collection[Pair] = (), merges: Collection[Pair] = ()
) -> Clusters:
    """The reference: every name against every canonical one before it. Equal keys are one name."""
    canonical: list[str] = []
    likeness: dict[str, str] = {}
    doubts: dict[str, list[Doubt]] = {}
    for key in sorted(set(keys), key=order):
        likeness[key], doubts[key] = place(key, canonical, label, apart)
        if likeness[key] == key:
            canonical.append(key)
    entities = entity_keys(likeness, merges)
    return Clusters(
        placements={
            key: Placement(likeness_key=root, entity_key=entities.get(root, root))
            for key, root in likeness.items()
        },
        proposals={
            key: found for key, some in doubts.items() if (found := proposals_of(key, some, entities))
        },
    )


def place(key: str, earlier: Iterable[str], label: str, apart: Collection[Pair]) -> tuple[str, list[Doubt]]:
    """Which of these canonical names it joins (itself: none), and then those that it may be as well."""
    joins: list[tuple[float, tuple[int, str]]] = []
    doubts: list[Doubt] = []
    for other in earlier:
        if pair_of(key, other) in apart:
            continue
        found = compare(key, other, label)
        if found.verdict is Verdict.JOIN:
            joins.append((-found.similarity, order(other)))
        elif found.verdict is Verdict.PROPOSE:
            doubts.append(Doubt(earlier=other, similarity=found.similarity, reason=found.reason))
    if joins:
        return min(joins)[1][1], []
    return key, doubts


def proposals_of(key: str, doubts: Iterable[Doubt], entities: Mapping[str, str]) -> tuple[Proposal, ...]:
    """The strongest, without those that a merge has settled. `entities`: see `entity_keys`."""
    entity = entities.get(key, key)
    strongest = sorted(
        (doubt for doubt in doubts if entities.get(doubt.earlier, doubt.earlier) != entity),
        key=lambda doubt: (-doubt.similarity, order(doubt.earlier)),
    )
    return tuple(
        Proposal(
            key=doubt.earlier,
            entity_key=entities.get(doubt.earlier, doubt.earlier),
            other=key,
            other_entity_key=entity,
            similarity=doubt.similarity,
            reason=doubt.reason,
        )
        for doubt in strongest[:PROPOSALS_MAX]
    )


def unions(likeness: Mapping[str, str], merges: Iterable[Pair]) -> dict[str, set[str]]:
    """What merges unite: from each canonical name (or name that doesn't exist) to all of its union.

    `likeness`: of every existing name that the merges speak of.
    """
    groups: dict[str, set[str]] = {}
    for pair in merges:
        one, other = (likeness.get(key, key) for key in pair)
        united = groups.get(one, {one}) | groups.get(other, {other})
        groups.update(dict.fromkeys(united, united))
    return groups


def entity_keys(likeness: Mapping[str, str], merges: Iterable[Pair]) -> dict[str, str]:
    """Canonical names in unions, each with the earliest of its union that exists."""
    existing = set(likeness.values())
    return {
        root: min(existing & group, key=order)
        for root, group in unions(likeness, merges).items()
        if root in existing
    }
