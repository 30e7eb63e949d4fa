"""The clustering brought up to date after names came, went or were decided upon, without looking at all of them.

Pure; the caller fetches. What comes out equals `clusters.cluster_all` of the new set. Names to judge wait in the fixed
order, so what is earlier is settled. Judging one needs the names like it (`wanted`, `supply`); only when it became
canonical or ceased to be are the later ones judged too that may join it; of those that it is only proposed to, the
list is amended. Mostly one round of look-ups, and a second where a new name stands before one that joins it.

    work = Reclustering(label, added=..., removed=..., ...)
    while wanted := work.wanted():
        work.supply(await similar_names(wanted))
    changes = work.changes()

The store must not change meanwhile. Write `changes` in this order: placements of names that were there and all
proposals, then the new names' rows, at last the removals. So a name that is there has had its effects, and one that
was cut off half-way is new (or still there) when its event comes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from indexers.domain.entities.clusters import (
    PROPOSALS_MAX,
    Doubt,
    Pair,
    Placement,
    Proposal,
    entity_keys,
    pair_of,
    place,
    proposals_of,
    unions,
)
from indexers.domain.entities.likeness import alike
from indexers.domain.entities.names import Verdict, compare, order, shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredName:
    key: str
    placement: Placement
    #: All that is stored with it as `other`; None: not asked, then it is looked up where that matters.
    proposals: tuple[Doubt, ...] | None = None

    @property
    def canonical(self) -> bool:
        return self.placement.likeness_key == self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    #: Of names that exist afterwards and are new or stand elsewhere than stored.
    placements: Mapping[str, Placement]
    #: By later key: all proposals that shall be stored with it as `other`; empty: none shall be left.
    proposals: Mapping[str, tuple[Proposal, ...]]


class Reclustering:
    """`touched`: names of decisions (merges, pairs held apart) that came or went; they need not exist.

    `apart` and `merges` are all that hold for the label now, and `merge_names` the stored ones of the names that
    `merges` speak of (new and removed ones make no difference). A name in `added` may be stored already; one in
    both `added` and `removed` is removed.
    """

    def __init__(
        self,
        label: str,
        *,
        added: Iterable[str] = (),
        removed: Iterable[str] = (),
        touched: Iterable[str] = (),
        apart: Collection[Pair] = frozenset(),
        merges: Collection[Pair] = frozenset(),
        merge_names: Iterable[StoredName] = (),
    ) -> None:
        self._label = label
        self._removed = frozenset(removed)
        self._added = frozenset(added) - self._removed
        self._touched = frozenset(touched)
        self._apart = frozenset(apart)
        self._merges = frozenset(merges)
        self._merge_names = tuple(merge_names)
        self._stored = {name.key: name for name in self._merge_names}
        self._near: dict[str, set[str]] = {}
        self._likeness: dict[str, str] = {}
        self._doubts: dict[str, list[Doubt]] = {}
        self._amended: dict[str, list[Doubt]] = {}
        self._members: set[str] = set()
        self._queued = {*self._added, *self._removed, *self._touched}
        self._queue = [order(key) for key in self._queued]
        heapify(self._queue)
        self._entities: dict[str, str] = {}

    def wanted(self) -> frozenset[str]:
        """Names to look up now; empty: done."""
        while self._queue and not self._lacks(self._queue[0][1]):
            self._judge(heappop(self._queue)[1])
        if self._queue:
            return frozenset(key for _, key in self._queue if self._lacks(key))
        return frozenset(self._settle_entities())

    def supply(self, found: Mapping[str, Collection[StoredName]]) -> None:
        """Of each wanted name: all stored names that `compare` doesn't call different, and itself if it is stored.

        More do no harm.
        """
        for key, names in found.items():
            for name in names:
                known = self._stored.get(name.key)
                if known is None or known.proposals is None:
                    self._stored[name.key] = name
            self._near[key] = {name.key for name in names}
        for key, near in alike(found.keys(), self._added, self._label).items():
            self._near[key] |= near

    def changes(self) -> Changes:
        placements: dict[str, Placement] = {}
        for key in self._likeness.keys() | self._members:
            root = self._root(key)
            placement = Placement(likeness_key=root, entity_key=self._entities.get(root, root))
            stored = self._stored.get(key)
            if stored is None or stored.placement != placement:
                placements[key] = placement
        proposals = {
            key: proposals_of(key, doubts, self._entities)
            for key, doubts in (self._amended | self._doubts).items()
            if doubts or key in self._stored
        }
        return Changes(placements=placements, proposals=proposals)

    def _lacks(self, key: str) -> bool:
        """A new name without a block is like no other; of others at least whether they are stored is asked."""
        return key not in self._near and (
            key not in self._added or shape_of(key, self._label).block is not None
        )

    def _exists(self, key: str) -> bool:
        return key not in self._removed and (key in self._added or key in self._stored)

    def _root(self, key: str) -> str:
        """What an existing name joined, as far as it is known by now."""
        decided = self._likeness.get(key)
        return decided if decided is not None else self._stored[key].placement.likeness_key

    def _canonical(self, key: str) -> bool:
        """New names that wait are not, until they are judged."""
        return (key in self._likeness or key in self._stored) and self._root(key) == key

    def _neighbours(self, key: str) -> Iterator[str]:
        return (other for other in self._near.get(key, ()) if other != key and self._exists(other))

    def _judge(self, key: str) -> None:
        stored = self._stored.get(key)
        was_canonical = stored is not None and stored.canonical
        if self._exists(key):
            self._place(key)
        else:
            self._doubts[key] = []
        is_canonical = self._likeness.get(key) == key
        for other in self._neighbours(key):
            if other not in self._queued and order(other) > order(key):
                self._tell(other, key, was_canonical=was_canonical, is_canonical=is_canonical)

    def _tell(self, other: str, key: str, *, was_canonical: bool, is_canonical: bool) -> None:
        """A later name that is not to be judged so far: what `key` became may change that."""
        found = compare(key, other, self._label)
        left_alone = not is_canonical and self._root(other) == key
        if left_alone or (found.verdict is Verdict.JOIN and was_canonical != is_canonical):
            self._enqueue(other)
        elif found.verdict is Verdict.PROPOSE and self._canonical(other):
            if is_canonical and not was_canonical and pair_of(key, other) not in self._apart:
                self._offer(other, Doubt(earlier=key, similarity=found.similarity, reason=found.reason))
            elif not is_canonical:
                self._withdraw(other, key)

    def _offer(self, other: str, doubt: Doubt) -> None:
        known = self._proposals(other)
        if known is None:
            self._enqueue(other)
        elif doubt not in known:
            self._amended[other] = [*known, doubt]

    def _withdraw(self, other: str, key: str) -> None:
        """From a full list: then others may move up, which only a look-up can tell."""
        known = self._proposals(other)
        if known is None or (len(known) >= PROPOSALS_MAX and any(doubt.earlier == key for doubt in known)):
            self._enqueue(other)
        elif any(doubt.earlier == key for doubt in known):
            self._amended[other] = [doubt for doubt in known if doubt.earlier != key]

    def _proposals(self, key: str) -> Sequence[Doubt] | None:
        amended = self._amended.get(key)
        return self._stored[key].proposals if amended is None else amended

    def _place(self, key: str) -> None:
        earlier = [
            other for other in self._neighbours(key) if order(other) < order(key) and self._canonical(other)
        ]
        self._likeness[key], self._doubts[key] = place(key, earlier, self._label, self._apart)

    def _enqueue(self, key: str) -> None:
        if key not in self._queued:
            self._queued.add(key)
            heappush(self._queue, order(key))

    def _settle_entities(self) -> set[str]:
        """Names to look up before every name of a changed entity and its proposals are known."""
        moved = self._moved_roots()
        if lacking := {root for root in moved if root not in self._near}:
            return lacking
        moved = {root for root in moved if self._exists(root) and self._canonical(root)}
        again = set(moved)
        for root in moved:
            self._members.add(root)
            for other in self._neighbours(root):
                if self._root(other) == root:
                    self._members.add(other)
                elif self._canonical(other) and order(other) > order(root):
                    again.add(other)
        again -= self._doubts.keys()
        lacking = {key for key in again if self._lacks(key)}
        for key in again - lacking:
            self._place(key)
        return lacking

    def _moved_roots(self) -> set[str]:
        """Canonical names that merges give another entity than before, or that a decision spoke of."""
        before = {name.key: name.placement.likeness_key for name in self._merge_names}
        spoken = {key for pair in self._merges for key in pair} | self._touched
        likeness = {key: self._root(key) for key in spoken if self._exists(key)}
        old, self._entities = entity_keys(before, self._merges), entity_keys(likeness, self._merges)
        roots = {
            root
            for root in old.keys() | self._entities.keys()
            if old.get(root, root) != self._entities.get(root, root)
        }
        groups = unions(likeness, self._merges)
        for key in self._touched:
            root = likeness.get(key, key)
            roots |= groups.get(root, {root})
        return {root for root in roots if root in likeness.values() or self._exists(root)}
