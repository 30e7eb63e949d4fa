"""The clustering that verify makes of all names is the one by reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexers.domain.entities.clusters import cluster_all, pair_of
from indexers.domain.entities.names import order
from indexers.verify.clustering import cluster_names

WORDS = (
    "northwind",
    "northwnd",
    "trader",
    "traders",
    "trading",
    "hollis",
    "hollies",
    "rue",
    "v2",
    "2041",
    "부산물류",
)


@st.composite
def spellings(draw: st.DrawFn) -> str:
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
    # Two words written as one, or with a dot, have other initials and join all the same.
    text = draw(st.sampled_from([" ", " ", "", "."])).join(words)
    at = draw(st.integers(0, len(text)))
    return (text[:at] + draw(st.sampled_from(["", "", "x", "s"])) + text[at:]).strip()


@settings(max_examples=200, deadline=None)
@given(st.sets(spellings(), max_size=40), st.data(), st.sampled_from(["organization", "person", "code"]))
def test_equal_to_the_reference(keys: set[str], data: st.DataObject, label: str) -> None:
    pairs = st.tuples(spellings(), spellings()).filter(lambda p: p[0] != p[1]).map(lambda p: pair_of(*p))
    apart, merges = data.draw(st.sets(pairs, max_size=4)), data.draw(st.sets(pairs, max_size=4))
    assert cluster_names(keys, label, apart, merges) == cluster_all(keys, label, apart, merges)


@pytest.mark.parametrize(("key", "other"), [("front matter", "frontmatter"), ("os platform", "os.platform")])
def test_names_that_differ_in_spaces_and_dots_are_one_whatever_their_initials(key: str, other: str) -> None:
    found = cluster_names([key, other], "technology", (), ())
    assert found == cluster_all([key, other], "technology")
    assert {one.entity_key for one in found.placements.values()} == {min(key, other, key=order)}
