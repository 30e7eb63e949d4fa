"""Curators' commands as a fold: order of arrival and repeats never matter, and what is taken back never was."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.entities.curation import (
    PAIRED,
    Curation,
    CurationKind,
    CurationOp,
    curation_of,
    keys_concerned,
)

KEYS = "abcd"


def op(
    version: int, kind: CurationKind, *keys: str, name: str | None = None, undoes: int | None = None
) -> CurationOp:
    return CurationOp(
        event_id=f"e{version}",
        version=version,
        kind=kind,
        keys=keys,
        name=name,
        undoes=None if undoes is None else f"e{undoes}",
    )


@st.composite
def histories(draw: st.DrawFn) -> list[CurationOp]:
    kinds: list[CurationKind] = ["merge", "unmerge", "rename", "block", "unblock", "accept", "reject"]
    ops: list[CurationOp] = []
    for version in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(kinds))
        keys = draw(st.permutations(KEYS))[: 2 if kind in PAIRED else 1]
        undoes = draw(st.none() | st.integers(0, 12)) if kind == "unmerge" else None
        name = draw(st.sampled_from("XYZ")) if kind == "rename" else None
        ops.append(op(version, kind, *keys, name=name, undoes=undoes))
    return ops


@given(histories(), st.randoms(use_true_random=False))
def test_any_order_and_repeats_give_the_same(ops: list[CurationOp], rnd: random.Random) -> None:
    arrived = ops + rnd.sample(ops, len(ops) // 2)
    rnd.shuffle(arrived)
    assert curation_of(arrived) == curation_of(ops)


@given(histories(), st.permutations(KEYS), st.sampled_from(["merge", "accept"]))
def test_a_merge_taken_back_was_never_given(
    ops: list[CurationOp], keys: list[str], kind: CurationKind
) -> None:
    merge = op(50, kind, *keys[:2])
    assert curation_of([*ops, merge, op(51, "unmerge", *keys[:2], undoes=50)]) == curation_of(ops)


@given(histories(), st.permutations(KEYS))
def test_after_an_unmerge_its_pair_is_apart_and_not_united(ops: list[CurationOp], keys: list[str]) -> None:
    found = curation_of([*ops, op(50, "unmerge", *keys[:2])])
    pair = tuple(sorted(keys[:2]))
    assert pair in found.apart
    united = {keys[0]}
    for _ in KEYS:
        united |= {key for merged in found.merges if united & set(merged) for key in merged}
    assert keys[1] not in united


def test_the_later_word_wins() -> None:
    found = curation_of(
        [
            op(1, "reject", "a", "b"),
            op(2, "accept", "b", "a"),
            op(3, "merge", "c", "d"),
            op(4, "reject", "d", "c"),
            op(5, "rename", "a", name="First"),
            op(6, "rename", "b", name="Second"),
            op(7, "block", "a"),
            op(8, "unblock", "a"),
            op(9, "block", "c"),
        ]
    )
    assert found == Curation(
        merges=frozenset({("a", "b")}),
        apart=frozenset({("c", "d")}),
        renamed={"a": ((5, "e5"), "First"), "b": ((6, "e6"), "Second")},
        blocks={"a": ((8, "e8"), False), "c": ((9, "e9"), True)},
    )
    assert [found.name_of(keys) for keys in ("a", "ab", "c")] == ["First", "Second", None]
    assert [found.is_blocked(keys) for keys in ("a", "ac", "d")] == [False, True, False]


def test_unmerging_by_name_leaves_the_other_names_together() -> None:
    star = [op(1, "merge", "a", "b"), op(2, "merge", "a", "c")]
    assert curation_of([*star, op(3, "unmerge", "c", "a")]).merges == {("a", "b")}
    # The canonical name first: the merge of the very pair is enough.
    assert curation_of([*star, op(3, "unmerge", "a", "c")]).merges == {("a", "b")}
    # Merged with an alias of the entity, not with its canonical name: likeness isn't known here.
    assert curation_of([op(1, "merge", "b", "c"), op(2, "unmerge", "c", "a")]).merges == frozenset()
    # Rejecting a proposal touches no merge.
    assert curation_of([*star, op(3, "reject", "a", "d")]).merges == {("a", "b"), ("a", "c")}


def test_taking_back_concerns_the_names_of_the_merge() -> None:
    merge, undo = op(1, "merge", "a", "b"), op(2, "unmerge", "c", "d", undoes=1)
    assert keys_concerned(undo, [merge, undo]) == {"a", "b", "c", "d"}
    assert keys_concerned(op(3, "block", "c"), [merge, undo]) == {"c"}


@pytest.mark.parametrize(
    ("kind", "keys", "more"),
    [
        ("merge", ("a",), {}),
        ("merge", ("a", "a"), {}),
        ("merge", ("a", ""), {}),
        ("block", ("a", "b"), {}),
        ("rename", ("a",), {}),
        ("rename", ("a",), {"name": " "}),
        ("block", ("a",), {"name": "A"}),
        ("merge", ("a", "b"), {"undoes": "e1"}),
        ("unmerge", ("a", "b"), {"undoes": ""}),
    ],
)
def test_commands_that_contradict_themselves(
    kind: CurationKind, keys: tuple[str, ...], more: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"different names|has a name|can't undo"):
        CurationOp(event_id="e", version=1, kind=kind, keys=keys, **more)
