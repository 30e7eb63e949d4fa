"""Titles as names: tokens, what is too little for a name, and which name is meant where several stand."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.domain.markdown import parse
from indexers.domain.title_names import (
    NameSet,
    Place,
    Said,
    heads_among,
    indexed_text,
    long_grams,
    lookup_key,
    name_keys,
    name_of,
    names_of,
    phrases,
    read_pieces,
    short_grams,
)
from tests.mentions import Doc, tokens

HOME = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)


def said(raw: str) -> tuple[Said, ...]:
    note = parse(raw, path="a.md", frontmatter_max_bytes=65_536)
    return read_pieces(note.text, note.prose)


def surfaces(raw: str, *names: str) -> list[tuple[str, str]]:
    keys = [key for name in names if (key := name_of(name)) is not None]
    return [(place.name, raw[place.start : place.end]) for place in NameSet(keys).places_in(said(raw))]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Payments Team", "payments team"),
        ("  Payments – team's ", "payments team s"),
        ("payment_retry", "payment retry"),
        ("INC-2041", "inc 2041"),
        ("Ｈｏｐｌｉｎｅ ﬁle", "hopline file"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "café"),
        ("결제팀", "결제팀"),
        ("회의", "회의"),
        ("東京", "東京"),
        ("प्रशासन", "प्रशासन"),
        ("C++", None),
        ("v1.2", None),
        ("2026-11-30", None),
        ("팀", None),
        ("What is it?", None),
        ("", None),
    ],
)
def test_what_a_title_is_called(title: str, name: str | None) -> None:
    assert name_of(title) == name


def test_names_are_found_in_prose_alone() -> None:
    raw = (
        "---\ntitle: Payments team\n---\n# Payments team\n\n"
        "The **payments**\n> team's `payments team` [[payments team]] [payments team](x.md) $payments team$\n\n"
        "https://x.y/payments-team payments@team.org #payments-team <b>payments team</b> <!-- payments team -->\n\n"
        "    payments team\n\n| payments | team |\n|---|---|\n| a | Payments \\| Team |\n\n- payments\n- team\n"
    )
    assert surfaces(raw, "Payments team") == [
        ("payments team", "Payments team"),
        ("payments team", "payments team"),
        ("payments team", "Payments \\| Team"),
    ]


def test_the_longest_name_is_meant_and_no_token_is_used_twice() -> None:
    raw = "Harbour office crane harbour office harbour"
    assert surfaces(raw, "harbour", "harbour office", "office crane", "crane harbour office") == [
        ("harbour office", "Harbour office"),
        ("crane harbour office", "crane harbour office"),
        ("harbour", "harbour"),
    ]


def test_a_particle_may_stand_behind_the_last_token() -> None:
    raw = "결제팀은 서울에서 Hopline은 새 결제팀의 회의에는 결제팀회의 결제팀도"
    assert surfaces(raw, "결제팀", "서울", "Hopline", "결제팀 회의", "결제팀은") == [
        ("결제팀은", "결제팀은"),
        ("서울", "서울"),
        ("hopline", "Hopline"),
        ("결제팀", "결제팀"),
    ]


def test_longer_names_are_looked_up_by_their_beginning() -> None:
    long = " ".join(f"word{n}" for n in range(14))
    assert name_keys(["tide", "a b c d", long]) == tuple(
        sorted(["tide", "a b c +", "a b c d", "word0 word1 word2 +", lookup_key(long)])
    )
    text = said(f"x {long} y")
    heads = heads_among(short_grams(text) & set(name_keys([long])))
    assert heads == {"word0 word1 word2 +"}
    assert lookup_key(long) in long_grams(text, heads)


NAME = st.lists(st.sampled_from(["tide", "crane", "결제팀", "office", "Ⅷ", "o"]), min_size=1, max_size=5).map(
    " ".join
)


@given(
    st.lists(NAME, max_size=6),
    st.lists(st.sampled_from(["tide", "crane", "결제팀은", "office", "Ⅷ", "o", ".\n\n"])),
)
def test_every_name_that_a_text_says_is_among_its_grams(titles: list[str], words: list[str]) -> None:
    text = said(" ".join(words))
    names = {name for title in titles for name in names_of(title, [])}
    grams = short_grams(text)
    grams |= long_grams(text, heads_among(grams))
    indexed = f" {indexed_text(text)} ".replace("|", " | ")
    for name in NameSet(names).said_in(text):
        assert lookup_key(name) in grams
        last = [phrase.rsplit(" ", 1)[-1] for phrase in phrases(name)]
        assert any(f" {end} " in indexed for end in last)


@given(st.text(max_size=60))
@example("\u0e33")  # a letter that NFKC parts into a mark and a letter
@example("\ufc5e")  # one that it parts into a blank and marks
@example("\u845b\U000e0100\u57ce")  # a mark that says which form of the letter is meant
def test_tokens_are_those_of_the_plain_matcher(text: str) -> None:
    found = read_pieces(text, [((0, len(text)),)])
    assert [t for piece in found for t in zip(piece.keys, piece.starts, piece.ends, strict=True)] == tokens(
        text, 0, len(text)
    )


def test_a_place_ends_before_the_particle() -> None:
    assert NameSet(["결제팀"]).places_in(said("결제팀은")) == [Place("결제팀", 0, 3)]


def test_the_plain_matcher_reads_names_alike() -> None:
    raw = "---\ntitle: The Long Ledger\naliases: [Ledger, it is]\n---\ntext"
    assert Doc.of(HOME, "a.md", raw).names == {("the", "long", "ledger"), ("ledger",)}
    assert names_of("The Long Ledger", ["Ledger", "it is"]) == ("ledger", "the long ledger")


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Ebb Tide (song)", ("ebb tide", "ebb tide song")),
        ("결제팀（서울）", ("결제팀", "결제팀 서울")),
        ("Ebb Tide (song) live", ("ebb tide song live",)),
        ("(untitled draft)", ("untitled draft",)),
        ("Ebb (a (b))", ("ebb a b",)),
        ("It (1990)", ("it 1990",)),
    ],
)
def test_what_stands_in_brackets_at_the_end_is_not_said(title: str, names: tuple[str, ...]) -> None:
    """`It` alone would be found everywhere."""
    assert names_of(title, []) == names
    assert Doc.of(HOME, "a.md", f"---\ntitle: {title}\n---\ntext").names == {
        tuple(name.split(" ")) for name in names
    }
