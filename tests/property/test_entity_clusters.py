"""Names in any order, in any batches, with any decisions: what is stored is what the reference says."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexers.domain.entities.clusters import (
    Clusters,
    Doubt,
    Pair,
    Placement,
    Proposal,
    cluster_all,
    pair_of,
)
from indexers.domain.entities.likeness import alike
from indexers.domain.entities.names import (
    Verdict,
    compare,
    like_lengths,
    minimum_shared,
    name_key,
    shape_of,
)
from indexers.domain.entities.reclustering import Changes, Reclustering, StoredName

LABEL = "service"
#: Few letters and lengths, so that most names are like many others; short ones have no block.
KEYS = st.text("ab", min_size=6, max_size=10) | st.builds(
    "{} {}".format, st.text("ab", min_size=3, max_size=6), st.text("ab", min_size=3, max_size=5)
)
#: Ten letters with few changed: most pairs are doubts, and more than a name may be proposed to.
DENSE = st.builds(
    lambda changed: "".join("b" if at in changed else "a" for at in range(10)),
    st.sets(st.integers(0, 9), max_size=4),
)
POOLS = st.lists(KEYS, min_size=2, max_size=12, unique=True) | st.lists(
    DENSE, min_size=4, max_size=12, unique=True
)


@dataclass(kw_only=True)
class Graph:
    """The rows of one label, as the link agent keeps them."""

    placements: dict[str, Placement] = field(default_factory=dict)
    proposals: dict[str, tuple[Proposal, ...]] = field(default_factory=dict)
    apart: set[Pair] = field(default_factory=set)
    merges: set[Pair] = field(default_factory=set)
    #: Whether look-ups tell of the proposals of names.
    telling: bool = False

    def stored(self, keys: Iterable[str]) -> list[StoredName]:
        return [
            StoredName(key=key, placement=self.placements[key], proposals=self.doubts(key))
            for key in keys
            if key in self.placements
        ]

    def doubts(self, key: str) -> tuple[Doubt, ...] | None:
        found = self.proposals.get(key, ())
        doubts = tuple(Doubt(earlier=p.key, similarity=p.similarity, reason=p.reason) for p in found)
        return doubts if self.telling else None

    def similar(self, key: str) -> list[StoredName]:
        return self.stored(
            other
            for other in self.placements
            if other == key or compare(key, other, LABEL).verdict is not Verdict.DIFFERENT
        )

    def changes(self, added: Collection[str], removed: Collection[str], touched: Collection[str]) -> Changes:
        work = Reclustering(
            LABEL,
            added=added,
            removed=removed,
            touched=touched,
            apart=self.apart,
            merges=self.merges,
            merge_names=self.stored({key for pair in self.merges for key in pair}),
        )
        while wanted := work.wanted():
            work.supply({key: self.similar(key) for key in wanted})
        return work.changes()

    def apply(self, changes: Changes, removed: Collection[str]) -> None:
        self.write_effects(changes, set())
        self.placements.update(changes.placements)
        for key in removed:
            self.placements.pop(key, None)

    def write_effects(self, changes: Changes, new: Collection[str]) -> None:
        self.placements.update({k: p for k, p in changes.placements.items() if k not in new})
        self.proposals.update(changes.proposals)
        self.proposals = {key: found for key, found in self.proposals.items() if found}

    def state(self) -> Clusters:
        return Clusters(placements=self.placements, proposals=self.proposals)

    def reference(self) -> Clusters:
        return cluster_all(self.placements, LABEL, self.apart, self.merges)


GRAPHS = st.builds(Graph, telling=st.booleans())


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[set[str], set[str], list[tuple[str, Pair]]]]:
    """Batches of (names that come, names that go, decisions that come or go)."""
    pool = draw(POOLS)
    name = st.sampled_from(pool)
    pairs = st.tuples(name, name).filter(lambda pair: pair[0] != pair[1]).map(lambda pair: pair_of(*pair))
    decision = st.tuples(st.sampled_from(["merge", "apart"]), pairs)
    batch = st.tuples(st.sets(name, max_size=5), st.sets(name, max_size=3), st.lists(decision, max_size=2))
    return draw(st.lists(batch, min_size=1, max_size=6))


def decide(graph: Graph, decisions: list[tuple[str, Pair]]) -> set[str]:
    """Each decision turns its pair over: made, or taken back."""
    for kind, pair in decisions:
        (graph.merges if kind == "merge" else graph.apart).symmetric_difference_update({pair})
    return {key for _, pair in decisions for key in pair}


@given(histories(), GRAPHS)
@settings(max_examples=500, deadline=None)
def test_every_history_leads_to_what_the_reference_says(
    history: list[tuple[set[str], set[str], list[tuple[str, Pair]]]], graph: Graph
) -> None:
    for come, go, decisions in history:
        touched = decide(graph, decisions)
        added, removed = come - go - graph.placements.keys(), go & graph.placements.keys()
        graph.apply(graph.changes(added, removed, touched), removed)
        assert graph.state() == graph.reference()


@given(POOLS, st.sets(st.integers(0, 11)), GRAPHS)
@settings(max_examples=200, deadline=None)
def test_a_batch_cut_off_half_way_and_sent_again_in_other_batches_ends_the_same(
    pool: list[str], written: set[int], graph: Graph
) -> None:
    half = len(pool) // 2
    graph.apply(graph.changes(pool[:half], (), ()), ())
    late = pool[half:]
    interrupted = graph.changes(late, (), ())
    survived = {key for at, key in enumerate(late) if at in written}
    graph.write_effects(interrupted, set(late) - survived)
    for key in late:
        if key not in graph.placements:
            graph.apply(graph.changes([key], (), ()), ())
    assert graph.state() == graph.reference()


@given(POOLS, st.permutations(range(12)))
@settings(max_examples=200, deadline=None)
def test_the_order_of_arrival_changes_nothing(pool: list[str], arrival: list[int]) -> None:
    graph = Graph(telling=True)
    for at in arrival:
        if at < len(pool):
            graph.apply(graph.changes([pool[at]], (), ()), ())
    assert graph.state() == cluster_all(pool, LABEL)


@given(KEYS, KEYS)
@settings(max_examples=1500, deadline=None)
@example("aaaaaaab", "aaaaaabb")
def test_names_that_are_not_different_are_found_by_their_grams_from_either_side(key: str, other: str) -> None:
    verdict = compare(key, other, LABEL)
    assert compare(other, key, LABEL) == verdict
    if verdict.verdict is Verdict.DIFFERENT or key == other:
        return
    for one, two in ((key, other), (other, key)):
        mine, theirs = shape_of(one, LABEL), shape_of(two, LABEL)
        shared = len(set(mine.grams[1:]) & set(theirs.grams[1:]))
        shortest, longest = like_lengths(mine)
        assert mine.grams[0] == theirs.grams[0] or (
            shared >= minimum_shared(mine) and shortest <= theirs.length <= longest
        )


#: Codes, spaces and dots, CJK, names too short to be compared.
MIXED = KEYS | DENSE | st.from_regex(r"[ab]{2,5}([ .][ab1]{1,4}){0,2}|[가나]{5,8}( 7)?", fullmatch=True)


@given(
    st.lists(MIXED, max_size=10, unique=True),
    st.lists(MIXED, max_size=10, unique=True),
    st.sampled_from(["service", "person", "code"]),
)
@settings(max_examples=300, deadline=None)
def test_many_compared_with_many_are_alike_as_each_compared_with_each(
    keys: list[str], others: list[str], label: str
) -> None:
    assert alike(keys, others, label) == {
        key: {other for other in others if compare(key, other, label).verdict is not Verdict.DIFFERENT}
        for key in keys
    }


def test_a_matrix_is_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexers.domain.entities.likeness._CELLS_MAX", 4)
    names = ["payments gateway", "payment gateway", "payments gateways", "payout gatekeeper"]
    near = set(names[:3])
    assert alike(names, names, LABEL) == {
        **dict.fromkeys(names[:3], near),
        "payout gatekeeper": {"payout gatekeeper"},
    }


@given(st.text(max_size=40), st.sampled_from(["person", "organization", "service", "code", "location"]))
@settings(max_examples=800, deadline=None)
def test_a_key_has_single_spaces_and_no_case(surface: str, label: str) -> None:
    key = name_key(surface, label)
    assert key == " ".join(key.split())
    assert name_key(surface.upper(), label) == name_key(surface.upper().casefold(), label)
