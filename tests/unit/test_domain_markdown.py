from __future__ import annotations

import time
from dataclasses import replace

import pytest

from indexers.domain.frontmatter import Frontmatter
from indexers.domain.markdown import FoundLink, Heading, Occurrence, ParsedNote, parse

GLAZE = """\
# Glaze index
| batch | note |
| --- | --- |
| 12 | [[ash-glaze\\|the grey one]] |
Plain: [[ash-glaze|grey]] and `[[not-a-link]]`.
~~~
[[also-not-a-link]]
~~~
"""


def read(text: str, path: str = "notes/here.md") -> ParsedNote:
    return parse(text, path=path, frontmatter_max_bytes=65_536)


def edges(text: str, path: str = "notes/here.md") -> list[tuple[str, str, list[str]]]:
    note = read(text, path)
    return [
        (link.target_key, link.link_type, [text[seen.start : seen.end] for seen in link.occurrences])
        for link in note.links
    ]


def test_c01_aliased_link_in_a_table_and_links_inside_code() -> None:
    assert read(GLAZE, "pottery/glaze-index.md").links == (
        FoundLink(
            target="ash-glaze",
            target_key="ash-glaze.md",
            link_type="wikilink",
            occurrences=(
                Occurrence(
                    start=52,
                    end=79,
                    display="the grey one",
                    context="| 12 | [[ash-glaze\\|the grey one]] |",
                    heading=None,
                ),
                Occurrence(
                    start=89,
                    end=107,
                    display="grey",
                    context="Plain: [[ash-glaze|grey]] and `[[not-a-link]]`.",
                    heading=None,
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [[plan]]", [("plan.md", "wikilink", ["[[plan]]"])]),
        ("see [[ Ops/Plan B ]]", [("ops/plan b.md", "wikilink", ["[[ Ops/Plan B ]]"])]),
        ("[[a|b]] [[A.md]]", [("a.md", "wikilink", ["[[a|b]]", "[[A.md]]"])]),
        ("![[a]] [[a]]", [("a.md", "embed", ["![[a]]"]), ("a.md", "wikilink", ["[[a]]"])]),
        ("![[photo.png]] ![alt](photo.png)", []),
        ("[[#local]] [[]] [[ ]] [[|x]]", []),
        ("\\[[a]] `[[b]]` %%[[c]]%% $[[d]]$ <!-- [[e]] -->", []),
        ("    [[indented code]]", []),
        ("%%\n[[a]]\n\n[[b]]\n%%\n\n[[c]]", [("c.md", "wikilink", ["[[c]]"])]),
        ("$$\n[[a]]\n$$\n[[c]]", [("c.md", "wikilink", ["[[c]]"])]),
        ("costs $5 [[a]] and $6", [("a.md", "wikilink", ["[[a]]"])]),
        ("<!--\n[[a]]\n-->\n\n[[b]]", [("b.md", "wikilink", ["[[b]]"])]),
        ("[[[a]]]", [("a.md", "wikilink", ["[[a]]"])]),
        ("[[open [[a]]", [("a.md", "wikilink", ["[[a]]"])]),
        ("[[a\nb]]", []),
        (
            "[x](b.md) [y](<b c.md>)",
            [("b.md", "reference", ["[x](b.md)"]), ("b c.md", "reference", ["[y](<b c.md>)"])],
        ),
        ("[x](b%20c.md#top)", [("b c.md", "reference", ["[x](b%20c.md#top)"])]),
        ("[x](../b.md) [y](/b.md)", [("/b.md", "reference", ["[x](../b.md)", "[y](/b.md)"])]),
        ("[x](https://a.example/b.md) [y](mailto:a.md) [z](//a/b.md) [p](a.pdf) [f](sub/) [h](#top)", []),
        ("[x][r]\n\n[r]: b.md", [("b.md", "reference", ["[x][r]"])]),
        (
            "> quoted\n> - [[a]]\n>   and [[b|c]]",
            [("a.md", "wikilink", ["[[a]]"]), ("b.md", "wikilink", ["[[b|c]]"])],
        ),
        ("## [[a]] ##\n\nT [[a]]\n===\n", [("a.md", "wikilink", ["[[a]]", "[[a]]"])]),
        (
            "one\r\ntwo [[a]]\r\nthree [[b]]",
            [("a.md", "wikilink", ["[[a]]"]), ("b.md", "wikilink", ["[[b]]"])],
        ),
        ("## H\n\t- [[a]]\n\t\t- [[b]]\nend", [(f"{n}.md", "wikilink", [f"[[{n}]]"]) for n in "ab"]),
        ("\tcode [[a]]\n\n    - code [[b]]", []),
        (
            "- [ ] task [[a]]\n\t- deep [[b]]",
            [("a.md", "wikilink", ["[[a]]"]), ("b.md", "wikilink", ["[[b]]"])],
        ),
        (
            '---\nrelated: "[[a]]"\nup: [[b]]\n---\n[[c]]',
            [(f"{n}.md", "wikilink", [f"[[{n}]]"]) for n in "abc"],
        ),
        ("\ufeff---\ntitle: x\n---\n[[a]]", [("a.md", "wikilink", ["[[a]]"])]),
    ],
)
def test_links_of_every_form(text: str, expected: list[tuple[str, str, list[str]]]) -> None:
    assert edges(text) == expected


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("[[a#The heading]]", "#The heading"),
        ("[[a#^block-1|x]]", "^block-1"),
        ("[[a]]", None),
        ("[x](a.md#top)", "#top"),
    ],
)
def test_fragments_are_kept_as_written(text: str, fragment: str | None) -> None:
    assert [seen.heading for link in read(text).links for seen in link.occurrences] == [fragment]


def test_context_is_cut_to_its_own_line_and_about_fifty_characters() -> None:
    line = f"{'left ' * 20}[[a]]{' right' * 20}"
    assert (
        read(f"above\n{line}\nbelow").links[0].occurrences[0].context
        == f"{'left ' * 10}[[a]]{' right' * 8} r"
    )


@pytest.mark.parametrize(
    ("text", "front", "title", "abstract"),
    [
        (
            "---\n**MARLOWE BOATYARD**\nslipway 3\n---\nHull repaired.",
            Frontmatter(warnings=("frontmatter_not_yaml",)),
            "here",
            "Hull repaired.",
        ),
        (
            "---\ntitle: Phase: two\ntags: [tar, rope]\n---\nBody b.",
            Frontmatter(
                title="Phase: two", tags=("tar", "rope"), body_start=44, warnings=("frontmatter_nearly_yaml",)
            ),
            "Phase: two",
            "Body b.",
        ),
        (
            "---\njust a line\n---\nBody c.",
            Frontmatter(warnings=("frontmatter_not_yaml",)),
            "here",
            "Body c.",
        ),
        (
            "---\ntitle: 2031-04-05\ndate: 2031-04-05\ntags: tar, rope\n---\nBody d.",
            Frontmatter(title="2031-04-05", tags=("tar", "rope"), created="2031-04-05", body_start=59),
            "2031-04-05",
            "Body d.",
        ),
    ],
)
def test_c03_frontmatter_that_is_not_or_nearly_yaml(
    text: str, front: Frontmatter, title: str, abstract: str
) -> None:
    note = read(text)
    assert (note.frontmatter, note.title, note.abstract) == (front, title, abstract)
    assert note.text == text


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            "session: 2031-04-05 crane talk\nposition: 0\nspeaker: 김민준",
            Frontmatter(session="2031-04-05 crane talk", position=0, speaker="김민준"),
        ),
        ("position: '0012'", Frontmatter(position=12)),
        ("position: 2147483647", Frontmatter(position=2_147_483_647)),
        ("position: 2147483648", Frontmatter(warnings=("frontmatter_invalid_position",))),
        ("position: -1", Frontmatter(warnings=("frontmatter_invalid_position",))),
        ("position: 1.0", Frontmatter(warnings=("frontmatter_invalid_position",))),
        ("position: １", Frontmatter(warnings=("frontmatter_invalid_position",))),
        ("position: first", Frontmatter(warnings=("frontmatter_invalid_position",))),
        ("position: null\nsession: ~", Frontmatter()),
        ("superseded_by: Ops/Crane v2.md", Frontmatter(superseded_by="Ops/Crane v2.md")),
        ("superseded-by: /ops//crane", Frontmatter(superseded_by="ops/crane.md")),
        ("superseded_by: C# notes.md", Frontmatter(superseded_by="C# notes.md")),
        ("superseded_by: '[[ops/crane#New|the new one]]'", Frontmatter(superseded_by="ops/crane.md")),
        (
            "superseded_by: 6F1D6F5E-3c1b-5d0a-9c53-5b8d2f6a7e41",
            Frontmatter(superseded_by="6f1d6f5e-3c1b-5d0a-9c53-5b8d2f6a7e41"),
        ),
        ("superseded_by: ../other.md", Frontmatter(warnings=("frontmatter_invalid_superseded_by",))),
        (
            "superseded_by: '[[#only a heading]]'",
            Frontmatter(warnings=("frontmatter_invalid_superseded_by",)),
        ),
        ("superseded_by: [[crane]]", Frontmatter(warnings=("frontmatter_invalid_superseded_by",))),
        ("superseded_by: ''", Frontmatter()),
        ("category: Ops Gear", Frontmatter(category="ops gear")),
    ],
)
def test_place_in_a_session_and_what_supersedes_a_note(block: str, expected: Frontmatter) -> None:
    text = f"---\n{block}\n---\n"
    assert read(text).frontmatter == replace(expected, body_start=len(text))


def test_all_fields_of_frontmatter() -> None:
    text = (
        "---\ntitle: 'The: crane'\ntags:\n  - '#Harbour'\n  - Ops/Crane\nalias: Big Red, C1\ncategory: gear\n"
        "type: skill\nsource: cron\ncreated_at: 2031-04-05T10:00:00+09:00\nmodified: yesterday\n"
        "valid-from: 2031-01-01\nexpires_at: 2032-01-01\nnested: {a: [b]}\n---\nx"
    )
    assert read(text).frontmatter == Frontmatter(
        title="The: crane",
        tags=("harbour", "ops/crane"),
        aliases=("Big Red", "C1"),
        category="gear",
        doc_type="skill",
        source="cron",
        created="2031-04-05T10:00:00+09:00",
        valid_from="2031-01-01",
        expires_at="2032-01-01",
        body_start=text.index("x", text.index("nested")),
        warnings=("frontmatter_invalid_date",),
    )


@pytest.mark.parametrize(
    "block",
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{c}: &{c} [{','.join([f'*{p}'] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        "a: " + "[" * 20_000,
        "a: " + "{b: " * 5_000,
        "a: &x\n  b: *x",
        "? " * 2_000,
        "- " * 2_000,
        "a: !!python/object/apply:os.system ['true']",
        "\x00\x01: \x02",
    ],
)
def test_hostile_frontmatter_is_bounded(block: str) -> None:
    started = time.process_time()
    assert "Body" in read(f"---\n{block}\n---\nBody words.").abstract + "Body"
    assert time.process_time() - started < 5


REPLACED = ("frontmatter_characters_replaced",)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (r'title: "a\ud800b"', Frontmatter(title="a\ufffdb", warnings=REPLACED)),
        (r'title: "a\0b"', Frontmatter(title="a\ufffdb", warnings=REPLACED)),
        (r'title: "\udc00\ud800"', Frontmatter(title="\ufffd\ufffd", warnings=REPLACED)),
        (r'title: "\ud83d\ude00"', Frontmatter(title="\U0001f600")),
        (r'tags: ["x\ud800", y]', Frontmatter(tags=("x\ufffd", "y"), warnings=REPLACED)),
        (r'aliases: ["x\x00"]', Frontmatter(aliases=("x\ufffd",), warnings=REPLACED)),
        (r'category: "\udfff"', Frontmatter(category="\ufffd", warnings=REPLACED)),
        (r'source: &s "\ud800"', Frontmatter(source="\ufffd", warnings=REPLACED)),
        (r'created: "\ud800"', Frontmatter(warnings=(*REPLACED, "frontmatter_invalid_date"))),
        (r'type: "\0"', Frontmatter(warnings=(*REPLACED, "frontmatter_unknown_doc_type"))),
        (
            'title: "a\\ud800"\nsource: b: c',
            Frontmatter(title="a\ufffd", source="b: c", warnings=("frontmatter_nearly_yaml", *REPLACED)),
        ),
    ],
)
def test_what_yaml_escapes_and_no_file_holds_is_replaced(block: str, expected: Frontmatter) -> None:
    text = f"---\n{block}\n---\n"
    assert read(text).frontmatter == replace(expected, body_start=len(text))


def test_an_escaped_nul_in_a_link_is_replaced() -> None:
    [link] = read("[x](a%00b.md#%00)").links
    assert (link.target, link.occurrences[0].heading) == ("a\ufffdb.md", "#\ufffd")


def test_too_large_frontmatter_is_body() -> None:
    text = f"---\ntitle: x\nnote: {'é' * 600}\n---\nBody."
    assert parse(text, path="a.md", frontmatter_max_bytes=1_024).frontmatter == Frontmatter(
        warnings=("frontmatter_too_large",)
    )


def test_c06_frontmatter_only() -> None:
    note = read("---\ntitle: Lantern\n---\n")
    assert (note.title, note.abstract, note.headings, note.text[note.body_start :]) == ("Lantern", "", (), "")


@pytest.mark.parametrize("text", ["", " \n\n\t\n", "\ufeff"])
def test_c06_empty_notes_have_the_name_as_title(text: str) -> None:
    note = read(text, "ops/Empty one.md")
    assert (note.title, note.abstract, note.links, note.terms, note.language) == (
        "Empty one",
        "",
        (),
        (),
        None,
    )


def test_title_abstract_headings_tags_terms_language() -> None:
    text = (
        "Intro\n=====\n\n## A **bold** [[x|name]] ##\n\n![only a picture](a.png)\n\n"
        "The *crane* at [pier 9](p.md) broke with ORA-01555. #Ops/Crane #123 a#b\n\nThe crane crane. `#no`\n"
    )
    note = read(text)
    assert note.title == "Intro"
    assert note.abstract == "The crane at pier 9 broke with ORA-01555. #Ops/Crane #123 a#b"
    assert note.headings == (
        Heading(level=1, text="Intro", start=0, end=11),
        Heading(level=2, text="A bold name", start=13, end=40),
    )
    assert note.tags == ("ops/crane",)
    assert note.terms == ("crane", "ora-01555", "ops/crane", "intro", "broke", "bold", "pier")
    assert note.language == "en"


def test_korean_terms_lose_their_particles() -> None:
    note = read("# 출항 기록\n\n가람호는 부산에서 출항했다. 가람호가 부산으로 돌아왔다. #항해/일지")
    assert note.terms == ("출항", "항해/일지", "가람호", "기록", "부산", "돌아왔다")
    assert (note.language, note.tags) == ("ko", ("항해/일지",))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 120_000,
        "[[x " * 30_000,
        "![" * 60_000,
        "<a" * 60_000,
        "$a " * 40_000,
        "`a``b" * 24_000,
        ">" * 120_000,
        "> " * 60_000,
        "- " * 60_000,
        "[a]: " * 24_000,
        "[a](" * 30_000,
        "<!-- " * 24_000,
        "**a *b " * 17_000,
        "#a " * 40_000,
        "| a " * 30_000 + "\n" + "|-" * 30_000,
        "%% " * 40_000,
    ],
    ids=range(16),
)
def test_pathological_input_takes_seconds_at_most(text: str) -> None:
    started = time.process_time()
    read(text)
    assert time.process_time() - started < 8
