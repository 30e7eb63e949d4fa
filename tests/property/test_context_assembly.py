"""The assembly of a context: budget, order, no repetition, and excerpts that stand in their files."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from indexers.embedders.tokens import FileTokenizer
from search_api.context.accounts import Source
from search_api.context.assembly import Assembled, BudgetTooSmallError, assemble
from search_api.context.blocks import read_blocks
from search_api.context.cutting import BY_LINE, BY_SENTENCE, cut, lines, sentences
from search_api.context.excerpts import LEAST_CHARS, compared, said_by
from search_api.context.rendering import Line
from search_api.context.scoring import Sought, Span
from search_api.context.units import BLOCK_CHARS, outline

TOKENIZER = Path(__file__).parents[2] / "models/e5-small-enko/tokenizer.json"
PIECES = (
    *("\n", "\n\n", "\r\n", " ", "\t", "    ", "\n\n\n\n\n\n", "\u3000", "\u2028", "\x0b", "\x85"),
    *("# ", "## ", "---\n", "===\n", "---\ntitle: x\n---\n", "- ", "  * ", "1. ", "> ", "```\n", "~~~", "```py\n"),
    *("| a | b |\n|---|---|\n| c | d |\n", "$$\n", "%%\n", "\\", "[[Berth 4]]", "[^1]", "<div>"),
    *("harbour ", "The crane stopped at berth four. ", "Ferry INC-2041 waited for the tide, and nobody knew why. "),
    *("부두에서 크레인이 멈췄다. ", "\u1107\u116e\u1103\u116e\u11a8", "e\u0301", "a" + "\u0301" * 40, "👩‍👩‍👧‍👦"),
    *("👍🏽", "🇰🇷🇩🇪", "שלום עולם ", "مرحبا بالعالم ", "\u202e", "\u200d", "。", "港は静かだった。"),
    *("word" * 200, "x " * 700),
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
booleans: st.SearchStrategy[bool] = st.booleans()
queries = st.sampled_from(
    ("harbour crane", "INC-2041", "부두 크레인", "why did the ferry wait", "the", "🇰🇷", "x")
)


@functools.cache
def tokenizer() -> FileTokenizer:
    return FileTokenizer(TOKENIZER, name="e5-small-enko")


def joining(counted: Sequence[str]) -> list[int]:
    """A tokenizer for which a whole is dearer than its parts: every line end is worth two tokens, a text one more."""
    return [1 + len(text.split()) + 2 * text.count("\n") for text in counted]


@st.composite
def sources(draw: st.DrawFn) -> list[tuple[Source, str]]:
    query = draw(queries)
    made: list[tuple[Source, str]] = []
    for number in range(draw(st.integers(0, 6))):
        repeats = draw(booleans)
        text = draw(texts) + (made[-1][1] if made and repeats else "")
        start = draw(st.integers(0, len(text)))
        spans = (Span(start=start, end=min(len(text), start + 50)),) if draw(booleans) else ()
        sought = Sought(query=query, spans=spans, evidence=("crane stopped at berth",))
        line = Line(
            number=number + 1,
            title=draw(st.sampled_from(("Berth 4", "부두", "A title of several words", ""))),
            path=f"notes/{number}.md",
            abstract=draw(st.sampled_from(("", "The crane stopped at berth four.", "harbour"))),
        )
        read = draw(booleans)
        source = Source(line=line, score=1 / (1 + number), outline=outline(text, sought) if read else None)
        made.append((source, text))
    return made


def assembled(made: list[tuple[Source, str]], budget: int, limit: int, count: str) -> Assembled:
    counter = joining if count == "joining" else tokenizer().count_tokens
    try:
        return assemble([source for source, _ in made], count=counter, budget=budget, document_tokens=limit)
    except BudgetTooSmallError:
        assume(False)
        raise


counters = st.sampled_from(("joining", "real"))
budgets = st.integers(1, 900)
limits = st.integers(20, 400)


@settings(max_examples=60, deadline=None)
@given(sources(), budgets, limits, counters)
def test_the_text_has_as_many_tokens_as_it_says_and_never_more_than_allowed(
    made: list[tuple[Source, str]], budget: int, limit: int, count: str
) -> None:
    found = assembled(made, budget, limit, count)
    counter = joining if count == "joining" else tokenizer().count_tokens
    assert found.tokens == (counter([found.text])[0] if found.text else 0)
    assert found.tokens <= budget


@settings(max_examples=60, deadline=None)
@given(sources(), budgets, limits, counters)
def test_documents_keep_their_order_and_excerpts_stand_in_their_texts(
    made: list[tuple[Source, str]], budget: int, limit: int, count: str
) -> None:
    found = assembled(made, budget, limit, count)
    assert [taken.source for taken in found.taken] == [source for source, _ in made[: len(found.taken)]]
    at = 0
    for taken, (_, text) in zip(found.taken, made, strict=False):
        at = found.text.index(f"## {taken.source.line.number}. ", at)
        for excerpt in taken.excerpts:
            assert excerpt.text == text[excerpt.start : excerpt.end]
            assert excerpt.text.strip()
            assert excerpt.text[-1:].strip()
            at = found.text.index(excerpt.text, at) + len(excerpt.text)
        assert all(one.end <= other.start for one, other in pairwise(taken.excerpts))


@settings(max_examples=60, deadline=None)
@given(sources(), budgets, limits, counters)
def test_no_excerpt_says_what_another_says(
    made: list[tuple[Source, str]], budget: int, limit: int, count: str
) -> None:
    found = assembled(made, budget, limit, count)
    shown = [(taken, excerpt) for taken in found.taken for excerpt in taken.excerpts]
    for taken, excerpt in shown:
        for other_taken, other in shown:
            if other is excerpt:
                continue
            assert compared(excerpt.text) != compared(other.text), (taken, other_taken)
            if len(compared(excerpt.text)) > LEAST_CHARS:
                assert compared(excerpt.text) not in compared(other.text)
    for taken, (_, text) in zip(found.taken, made, strict=False):
        for repeat in taken.repeats:
            said = compared(text[repeat.start : repeat.end])
            assert any(said in compared(e.text) for e in found.taken[repeat.shown_in].excerpts)


SAID = "The crane stopped at berth four."
#: Every sentence, line, item and row of it is of its own kind and none is long.
BLOCKS = (
    f"{SAID} Nobody knew why the ferry waited for the tide. The harbour was shut at noon.",
    f"Ropes lay on the quay. {SAID} The pilot went home.",
    "- paint the shed of the harbour\n- grease the crane\n  before the frost comes",
    "| berth | crane | holder |\n| --- | --- | --- |\n| 4 | harbour | Mira |\n| 5 | no ferry | Jon |\n| 6 | - | Oda |",
    "```sh\ncrane --lift harbour\nferry --wait\n```",
    "Berth: 4\nCrane: harbour\nHolder: Mira",
)  # fmt: skip


@st.composite
def notes(draw: st.DrawFn) -> list[tuple[Source, str]]:
    query, made = draw(st.sampled_from(("harbour crane", "why did the ferry wait", "who has berth 5"))), []
    for number in range(draw(st.integers(1, 4))):
        text = "\n\n".join(draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4, unique=True)))
        begin = slice(*sentences(text.partition("\n\n")[0])[0]) if text[0].isalpha() else slice(0)
        line = Line(number=number + 1, title="Quay", path=f"{number}.md", abstract=text[begin])
        source = Source(line=line, score=1 / (1 + number), outline=outline(text, Sought(query=query)))
        made.append((source, text))
    return made


@settings(max_examples=200, deadline=None)
@given(notes(), st.integers(10, 400), limits)
def test_excerpts_are_whole_sentences_lines_and_rows_under_their_head(
    made: list[tuple[Source, str]], budget: int, limit: int
) -> None:
    found = assembled(made, budget, limit, "joining")
    for taken, (_, text) in zip(found.taken, made, strict=False):
        blocks = [(block.start, block.end) for block in read_blocks(text, 0).blocks]
        parts = [
            (start + begin, start + end)
            for start, until in blocks
            for split in (sentences, lines)
            for begin, end in split(text[start:until])
        ]
        for excerpt in taken.excerpts:
            assert excerpt.start in {start for start, _ in parts}
            assert excerpt.end in {end for _, end in parts}
            if excerpt.text.startswith("|"):
                shown = "\n".join(part for part in (excerpt.units[0].opening, excerpt.text) if part)
                head, _, rows = shown.partition("| --- | --- | --- |")
                assert (head, rows.count("\n") >= 1) == ("| berth | crane | holder |\n", True)
                assert shown in found.text


@settings(max_examples=200, deadline=None)
@given(notes(), st.integers(10, 400), limits)
def test_no_line_says_what_an_excerpt_or_another_line_says(
    made: list[tuple[Source, str]], budget: int, limit: int
) -> None:
    found = assembled(made, budget, limit, "joining")
    shown = [excerpt.text for taken in found.taken for excerpt in taken.excerpts]
    for abstract in {taken.source.line.abstract for taken in found.taken}:
        for sentence in said_by(abstract):
            within = sum(compared(text).count(sentence) for text in shown)
            assert compared(found.text).count(sentence) <= max(within, 1)


@settings(max_examples=20, deadline=None)
@given(sources(), budgets)
def test_the_same_documents_give_the_same_context(made: list[tuple[Source, str]], budget: int) -> None:
    assert assembled(made, budget, 200, "joining") == assembled(made, budget, 200, "joining")


@settings(max_examples=100, deadline=None)
@given(texts)
def test_blocks_are_apart_in_order_and_hold_all_but_headings_rules_and_blanks(text: str) -> None:
    found = read_blocks("first\n\n" + text, 0)
    assert all(block.start < block.end for block in found.blocks)
    assert all(one.end <= other.start for one, other in pairwise(found.blocks))
    for one, other in pairwise(found.blocks):
        held = [heading for heading in found.headings if one.end <= heading.start < other.start]
        assert one.section + len(held) == other.section


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(1, 80))
@example("👩‍👩‍👧‍👦" * 30, 10)
@example("e\u0301" * 30, 7)
@example("\u1107\u116e\u11ab" * 30, 10)
@example("🇰🇷" * 30, 9)
def test_pieces_hold_all_that_is_not_blank(text: str, limit: int) -> None:
    for boundaries in (BY_LINE, BY_SENTENCE):
        pieces = list(cut(text, 0, len(text), limit, boundaries))
        assert all(0 < end - start <= limit for start, end in pieces)
        kept = "".join(text[start:end] for start, end in pieces)
        assert "".join(kept.split()) == "".join(text.split())


@settings(max_examples=60, deadline=None)
@given(texts, queries)
def test_units_are_bounded_apart_and_in_order(text: str, query: str) -> None:
    found = outline(text, Sought(query=query)).units
    assert all(unit.text == text[unit.start : unit.end] for unit in found)
    assert all(len(unit.text) <= BLOCK_CHARS and 0 <= unit.focus < len(unit.text) for unit in found)
    assert all(one.number < other.number and one.end <= other.start for one, other in pairwise(found))
