"""What of a text may stand in a context: blocks, cuts, and what speaks for each; hostile texts cost little."""

from __future__ import annotations

import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.markdown import parse
from search_api.context.accounts import Source
from search_api.context.assembly import Assembled, assemble
from search_api.context.blocks import Block, Blocks, Heading, read_blocks
from search_api.context.cutting import BY_SENTENCE, cut
from search_api.context.excerpts import compared
from search_api.context.frames import read_frame
from search_api.context.rendering import Line
from search_api.context.scoring import Sought, Span
from search_api.context.units import outline

NOTE = """---
title: x
---
# Harbour

A crane.
It lifts.

- one
- two
  goes on
  1. inner

> said
> twice

| a | b |
| - | - |
| 1 | 2 |

Cold store
----------

```sh
# no heading

- no item
```

***

$$
x
$$
"""


def words(texts: object) -> list[int]:
    return [len(text.split()) for text in texts]  # type: ignore[attr-defined]


def shown(text: str, query: str, *, budget: int = 10_000, limit: int = 2_000, **sought: object) -> list[str]:
    found = outline(text, Sought(query=query, **sought))  # type: ignore[arg-type]
    line = Line(number=1, title="T", path="t.md", abstract="")
    source = Source(line=line, score=1.0, outline=found)
    made = assemble([source], count=words, budget=budget, document_tokens=limit)
    return [excerpt.text for excerpt in made.taken[0].excerpts]


def test_blocks_of_a_note_with_their_kinds_and_sections() -> None:
    found = read_blocks(NOTE, NOTE.index("# Harbour"))
    assert [(NOTE[b.start : b.end], b.kind, b.section) for b in found.blocks] == [
        ("A crane.\nIt lifts.", "text", 1),
        ("- one", "item", 1),
        ("- two\n  goes on", "item", 1),
        ("1. inner", "item", 1),
        ("> said\n> twice", "quote", 1),
        ("| a | b |\n| - | - |\n| 1 | 2 |", "table", 1),
        ("```sh\n# no heading\n\n- no item\n```", "code", 2),
        ("$$\nx\n$$", "code", 2),
    ]
    assert [(NOTE[h.start : h.end], h.level) for h in found.path_of(2)] == [
        ("# Harbour", 1),
        ("Cold store", 2),
    ]


class _Counted(tuple[Heading, ...]):  # noqa: SLOT001 - a tuple may have none that hold anything
    """Headings that count how often one of them is looked at by its number."""

    looks = 0

    def __getitem__(self, number: Any) -> Any:
        self.looks += 1
        return super().__getitem__(number)


@given(st.lists(st.integers(1, 6), max_size=40))
def test_the_path_of_a_section_is_the_nearest_headings_of_lower_levels(levels: list[int]) -> None:
    headings = tuple(Heading(level, at, at + 1) for at, level in enumerate(levels))
    found = Blocks(blocks=(), headings=headings)
    assert found.path_of(0) == ()
    for section in range(1, len(levels) + 1):
        above: list[Heading] = []
        for heading in reversed(headings[:section]):
            if not above or heading.level < above[0].level:
                above.insert(0, heading)
        assert found.path_of(section) == tuple(above)


def test_a_path_costs_its_length_however_many_headings_are_before_it() -> None:
    headings = _Counted(Heading(3 if at else 2, at, at + 1) for at in range(5_000))
    found = Blocks(blocks=(), headings=headings)
    headings.looks = 0
    assert [heading.start for heading in found.path_of(5_000)] == [0, 4_999]
    assert headings.looks <= 6


def test_a_note_of_headings_alone_is_shown_by_them() -> None:
    assert read_blocks("# A\n## B\n", 0).blocks == (Block(0, 3, "text", 0), Block(4, 8, "text", 1))
    assert read_blocks("# A\n", 0).headings == (Heading(1, 0, 3),)


def test_the_chunk_of_a_vector_and_the_evidence_of_a_path_are_shown_where_no_word_stands() -> None:
    text = "\n\n".join(f"Paragraph {number} is about nothing." for number in range(50))
    start = text.index("Paragraph 33")
    assert "Paragraph 33" in shown(text, "zyzzyva", spans=(Span(start=start, end=start + 20),))[0]
    assert "Paragraph 21" in shown(text, "zyzzyva", evidence=("paragraph  21 IS about",))[0]
    assert shown(text, "zyzzyva")[0].startswith("Paragraph 0")


def test_a_word_in_a_heading_speaks_for_what_stands_under_it() -> None:
    text = "# A\n\nfirst\n\n## Ferry\n\nsecond\n\n### Below\n\nthird\n\n## Other\n\nfourth\n"
    assert shown(text, "ferry") == ["second", "third"]


def test_a_cut_piece_of_code_stands_in_its_fence_and_rows_under_their_head() -> None:
    code = "```py\n" + "".join(f"line_{number} = compute({number})\n" for number in range(200)) + "```\n"
    table = "| name | value |\n| --- | --- |\n" + "".join(f"| berth_{n} | {n} |\n" for n in range(200))
    line = Line(number=1, title="T", path="t.md", abstract="")
    for text, query, first, last in (
        (code, "line_150", "```\nline_", "\n```"),
        (table, "berth_150", "| name | value |\n| --- | --- |\n| berth_", " |"),
    ):
        source = Source(line=line, score=1.0, outline=outline(text, Sought(query=query)))
        made = assemble([source], count=words, budget=200, document_tokens=200)
        body = made.text.partition("\n\n")[2]
        assert (body.startswith(first), body.endswith(last), query in body) == (True, True, True)


def test_a_paragraph_that_does_not_fit_is_shown_around_the_word_in_whole_sentences() -> None:
    text = " ".join(f"Sentence {number} says that all is well." for number in range(40))
    [excerpt] = shown(text.replace("Sentence 20", "Marigold 20"), "marigold", budget=30)
    assert "Marigold 20" in excerpt
    assert excerpt.endswith("well.")


EXAMPLE = Path(__file__).parents[2] / "examples/vault"


def made_of(paths: list[str], query: str, budget: int) -> Assembled:
    sources = []
    for number, path in enumerate(paths):
        text = (EXAMPLE / path).read_text(encoding="utf-8")
        note = parse(text, path=path, frontmatter_max_bytes=10_000)
        line = Line(number=number + 1, title=note.title, path=path, abstract=note.abstract)
        sources.append(Source(line=line, score=1 / (1 + number), outline=outline(text, Sought(query=query))))
    return assemble(sources, count=words, budget=budget, document_tokens=800)


def test_a_table_found_by_a_word_of_its_head_is_shown_with_rows() -> None:
    made = made_of(["On-call rota.md"], "who is on call this week", 55)
    [excerpt] = made.taken[0].excerpts
    assert excerpt.text == (
        "| 45 (2 Nov) | [[Mirela Voss]] | [[Callum Reith]] | [[Greta Moss]] | [[한소라]] | [[Ines Barragan]] |"
    )
    head = (
        "| week | Tally | Compass | Lantern | Gangway | Doorbell |\n| --- | --- | --- | --- | --- | --- |\n"
    )
    assert head + excerpt.text in made.text


def test_a_table_is_shown_around_the_row_with_the_word() -> None:
    [excerpt] = made_of(["On-call rota.md"], "on call week 배지우", 55).taken[0].excerpts
    assert excerpt.text.startswith("| 47 (16 Nov) |")


def test_names_of_all_and_the_best_excerpt_come_before_what_lines_say() -> None:
    paths = ["services/payout-ledger.md", "people/Mirela Voss.md", "people/Jonah Adeyemi.md"]
    made = made_of(paths, "what has each courier earned", 55)
    assert made.text == (
        "## 1. payout-ledger (services/payout-ledger.md)\n\n"
        "Keeps what each courier has earned and pays it every night. Owned by [[Team Tally]]; the lead is "
        "[[Mirela Voss]]. Written in Kotlin over an Oracle 19c database, version 5.3.1 in production.\n\n"
        "## 2. Mirela Voss (people/Mirela Voss.md)\n\n## 3. Jonah Adeyemi (people/Jonah Adeyemi.md)"
    )


def test_a_cut_code_block_of_any_size_keeps_its_fence() -> None:
    text = "```py\n" + "".join(f"line_{number} = compute({number})\n" for number in range(20)) + "```\n"
    line = Line(number=1, title="T", path="t.md", abstract="")
    source = Source(line=line, score=1.0, outline=outline(text, Sought(query="line_15")))
    made = assemble([source], count=words, budget=14, document_tokens=200)
    assert made.text == "## 1. T (t.md)\n\n```\nline_15 = compute(15)\nline_16 = compute(16)\n```"


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        pytest.param("| a | b |\r\n| - | - |\r\n| 1 | 2 |", "| 1 | 2 |", id="table"),
        pytest.param("```py\nx\n````", "x\n", id="fence"),
        pytest.param("```py\nx", "x", id="never closed"),
        pytest.param("```\n```", "```\n```", id="empty"),
        pytest.param("\u2028$$\nx\n$$", "x\n", id="line separator"),
        pytest.param(f"{' ' * 400}```\nx\n```", f"{' ' * 400}```\nx\n```", id="far indented"),
    ],
)
def test_what_a_frame_stands_around_is_never_empty(text: str, inner: str) -> None:
    [block] = read_blocks(text, 0).blocks
    frame = read_frame(text, block)
    assert text[frame.inner_start : frame.inner_end] == inner


def test_a_sentence_that_does_not_fit_is_left_out_not_cut() -> None:
    text = "The marigold of the harbour grows on the third quay behind the shed. It blooms."
    assert shown(text, "marigold", budget=15) == []
    assert shown(text, "marigold", budget=18) == [text.removesuffix(" It blooms.")]


def test_lines_that_end_no_sentence_are_cut_between_lines() -> None:
    text = "Berth: 4\nCrane: the harbour's\nHolder: Mira"
    assert shown(text, "crane", budget=8) == ["Crane: the harbour's"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        pytest.param("lantern of the pilot " * 10_000, "pilot", id="one line"),
        pytest.param("x" * 250_000, "pilot", id="one word"),
        pytest.param("- a pilot\n" * 26_000, "pilot", id="list"),
        pytest.param("\n" * 250_000 + "pilot", "pilot", id="blank"),
        pytest.param("# pilot\n" * 32_000, "pilot", id="headings"),
        pytest.param(
            "".join(f"{'#' * (1 + n % 6)} pilot\n\nx\n\n" for n in range(18_000)), "pilot", id="tree"
        ),
        pytest.param("```\n" * 62_000, "pilot", id="fences"),
        pytest.param("$$\n" * 80_001, "pilot", id="formulas"),
        pytest.param("a" + "\u0301" * 120_000 + " pilot", "pilot", id="marks"),
        pytest.param("👩‍👩‍👧‍👦" * 20_000, "👩", id="emoji"),
        pytest.param("\u202eשלום עולם pilot " * 12_000, "שלום", id="right to left"),
        pytest.param(unicodedata.normalize("NFD", "부산에서 출항한 배 ") * 9_000, "부산", id="NFD"),
        pytest.param("|" * 120_000 + "\n" + "|-" * 60_000, "pilot", id="columns"),
        pytest.param("- " * 120_000, "pilot", id="markers"),
        pytest.param(" " * 250_000 + "pilot", "pilot", id="spaces"),
    ],
)
def test_hostile_texts_of_256_kilobytes_cost_little_and_give_little(text: str, query: str) -> None:
    begun = time.process_time()
    found = outline(text, Sought(query=query, spans=(Span(start=0, end=len(text)),), evidence=("pilot x",)))
    assert sum(len(unit.text) for unit in found.units) < 200_000
    assert shown(text, query, budget=500)
    assert time.process_time() - begun < 4.0


@pytest.mark.parametrize(
    "cluster",
    ["e\u0301", "👩‍👩‍👧‍👦", "👍🏽", "🇰🇷", unicodedata.normalize("NFD", "각"), "क्षि", "☀\ufe0f"],
)
def test_no_cut_splits_what_a_reader_sees_as_one_character(cluster: str) -> None:
    text = cluster * 60
    pieces = [text[start:end] for start, end in cut(text, 0, len(text), 25, BY_SENTENCE)]
    assert all(len(piece) % len(cluster) == 0 for piece in pieces)
    assert "".join(pieces) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The *crane*\nof  `berth_4`", "the crane of berth_4"),
        ("Ask [[people/Mira Voss|Mira]] or [[Tally]].", "Ask Mira or Tally."),
        ("See [the map](maps/harbour.md) now", "See the map now"),
        (unicodedata.normalize("NFD", "부산 항구"), "부산 항구"),
    ],
)
def test_texts_are_compared_as_a_reader_sees_them(one: str, other: str) -> None:
    assert compared(one) == compared(other)
    assert compared(one) == f" {compared(one).strip()} "
