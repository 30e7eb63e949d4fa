from __future__ import annotations

import pytest

from indexers.domain.entities.masking import readable_text, readings


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("**Dana** leads _the_ ~~old~~ ==new== team", "Dana leads the old new team"),
        (
            "# Title\n- item\n- [x] done\n1. first\n> said\n> - more",
            "Title . item . done . first . said . more",
        ),
        ("[[Dana Cole]] and [[people/Dana Cole#Work|Dana]]", "Dana Cole and Dana"),
        ("[[services/payout-ledger.md]] ![[plan]] [[#Work]] [[x\\|Jo]]", "payout-ledger plan Work Jo"),
        ('see [the plan](plan.md "t") and [x][ref] ![alt](a.png)', "see the plan and x alt"),
        ("go to https://a.example/x, <b>now</b> <https://b.example>", "go to now"),
        ("`payment_retry` and ``a`b`` keep_snake __init__", "payment_retry and a`b keep_snake init"),
        ("so $a \\cdot b$ costs $5 and $6\n$$\nx\n$$", "so costs $5 and $6"),
        ("a %%b%% c <!-- d\ne --> f", "a c f"),
        ("text[^1] #tag ^block-1\n[^1]: note", "text note"),
        ("> [!warning] Careful", "Careful"),
        ("| Who | Team |\n| --- | :-: |\n| Dana | Tally |", "Who , Team . Dana , Tally ."),
        ("before\n```py\nx = 1\n```\nafter\n~~~\nopen", "before after"),
        ("- ```\n  x\n  ```\nafter", "after"),
        ("[r]: https://a.example 'R'\nkept", "kept"),
        ("2 \\* 3 \\[x\\]", "2 * 3 [x ]"),
        ("Title\n=====\n\n---\n***", "Title"),
        ("snake_case and a*b", "snake_case and a b"),
        ("[open [[never `closed", "open never closed"),
    ],
)
def test_prose_is_what_a_reader_sees(text: str, prose: str) -> None:
    read = readable_text(text)
    assert len(read) == len(text)
    assert " ".join(read.split()) == prose


def test_of_the_frontmatter_only_the_title_is_read() -> None:
    text = '---\ntags: [a]\ntitle: "Dana: plan"\nowner: "[[Team Tally]]"\n---\nBody'
    read = readings(text, body_start=text.index("Body"))
    assert read.prose.split() == ["Dana:", "plan", ".", "Body"]
    assert read.shown.split() == ["Dana:", "plan", "Body"]
    assert read.prose.index("Dana") == text.index("Dana")


def test_a_title_that_the_first_heading_repeats_is_read_once() -> None:
    text = "---\ntitle: Dana\n---\n# Dana\n"
    read = readings(text, body_start=20)
    assert (read.shown.split(), read.prose.split()) == (["#", "Dana"], ["Dana"])


def test_shown_keeps_code_addresses_and_tags() -> None:
    text = (
        "`PAY-1` #PAY-2\n```\nPAY-3\n```\nhttps://a.example [t](https://b.example) [n](c/d.md) %%e%% [[f|g]]"
    )
    assert readings(text).shown == text.replace("](c/d.md)", " " * 9).replace("%%e%%", " " * 5).replace(
        "f|", " |"
    )
