from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from uuid import UUID

from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexers.domain.chunking import chunk, embedding_text
from indexers.domain.excerpts import excerpt
from indexers.domain.frontmatter import read_frontmatter
from indexers.domain.links import Candidate, document_keys, resolve, target_keys
from indexers.domain.markdown import parse
from indexers.domain.memory_file import path_for, render
from indexers.domain.names import LinkType, target_key, target_name_key
from indexers.domain.scores import normalise_keyword, normalise_place, normalise_vector, shares, total
from indexers.domain.text import decode_text

PIECES = (
    "\n",
    "\n\n",
    " ",
    "\t",
    "\n\t- ",
    "\r\n",
    "# ",
    "## ",
    "---\n",
    "title: x\n",
    "tags: [a, b]\n",
    "- ",
    "> ",
    "1. ",
    "```\n",
    "~~~",
    "`",
    "|",
    "| a | b |\n|---|---|\n| ",
    "\\|",
    "\\",
    "[[a]]",
    "[[b|c]]",
    "![[d]]",
    "[[e\\|f]]",
    "[x](y.md)",
    "[x](<y z.md> 't')",
    "[r]: q.md\n",
    "[r]",
    "[[",
    "]]",
    "[",
    "](",
    "$",
    "$$",
    "%%",
    "<!--",
    "-->",
    "<b>",
    "#tag",
    "**",
    "=== \n",
    "word",
    "가나다는",
    "\ufeff",
    "\x00",
    "é",
    "\u0301",
    "👩‍👩",
    ".",
    "\x0b",
    "\u2028",
    "\x85",
)
markdown = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)
names = (
    st.text(
        st.characters(
            exclude_characters="[]|#^\\\n\r/.`$%<>&*_~!:\x85\u2028\u2029", exclude_categories=["Cs", "Cc"]
        ),
        min_size=1,
        max_size=20,
    )
    .map(str.strip)
    .filter(bool)
)
segments = st.sampled_from(["a", "b", "Plan", "plan.md", "회의록", unicodedata.normalize("NFD", "회의록")])
paths = st.lists(segments, min_size=1, max_size=3).map(
    lambda parts: "/".join(parts).removesuffix(".md") + ".md"
)
link_types: st.SearchStrategy[LinkType] = st.sampled_from(["wikilink", "embed", "reference"])
scores = st.dictionaries(st.text(max_size=3), st.floats(), max_size=8)
unit_scores = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1), max_size=6)


class Words:
    tokenizer_id = "words-3"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(re.findall(r"\S{1,3}", text)) for text in texts]


ESCAPES = [r"\ud800", r"\udfff", r"\ud83d\ude00", r"\0", r"\x00", r"\U0000D800", "a", " ", ",", "#", "/"]
FIELDS = [
    "title",
    "tags",
    "aliases",
    "category",
    "type",
    "source",
    "created",
    "updated",
    "valid_from",
    "session",
    "position",
    "speaker",
    "superseded_by",
    "other",
]
FORMS = ['{}: "{}"', '{}: ["{}", b]', '{}: &a "{}"', '{}: x: "{}"']


def strings_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | tuple | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_of(item)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(FORMS),
            st.sampled_from(FIELDS),
            st.lists(st.sampled_from(ESCAPES)).map("".join),
        )
    ),
    markdown.filter(lambda text: re.search("[\x00\ud800-\udfff]", text) is None),
)
@settings(max_examples=300, deadline=None)
def test_nothing_of_a_note_holds_what_no_file_holds(fields: list[tuple[str, str, str]], body: str) -> None:
    block = "".join(f"{form.format(name, value)}\n" for form, name, value in fields)
    note = parse(f"---\n{block}---\n{body} [x](a%00.md)", path="a.md", frontmatter_max_bytes=65_536)
    assert [said for said in strings_of(asdict(note)) if re.search("[\x00\ud800-\udfff]", said)] == []


@given(markdown)
@example("[[\0]]")
@settings(max_examples=600, deadline=None)
def test_parse_never_raises_and_offsets_are_the_links_as_written(text: str) -> None:
    note = parse(text, path="x/y.md", frontmatter_max_bytes=65_536)
    assert note.text == text
    for link in note.links:
        for seen in link.occurrences:
            written = text[seen.start : seen.end]
            if link.link_type == "reference":
                assert re.fullmatch(r"!?\[.*[\])]", written, re.DOTALL)
            else:
                assert re.fullmatch(r"!?\[\[[^\n]*\]\]", written)
                assert link.target_key == target_key(
                    # CommonMark (2.3) reads NUL as U+FFFD.
                    re.split(r"\\?\||#", written.lstrip("!")[2:-2])[0].replace("\0", "\ufffd"),
                    from_path="x/y.md",
                    link_type=link.link_type,
                )
            assert " ".join(written.split())[:10] in seen.context
    for heading in note.headings:
        assert text[heading.start : heading.end].strip()


@given(st.text())
def test_parse_takes_any_text(text: str) -> None:
    assert parse(text, path="a.md", frontmatter_max_bytes=100).text == text


@given(names, names, st.booleans())
def test_a_wikilink_survives_the_round_trip(target: str, display: str, embed: bool) -> None:  # noqa: FBT001 - given by place
    written = f"{'!' * embed}[[{target}|{display}]]"
    text = f"before {written} after"
    (link,) = parse(text, path="a.md", frontmatter_max_bytes=100).links
    (seen,) = link.occurrences
    assert (link.target, seen.display, text[seen.start : seen.end]) == (target, display, written)


@given(markdown, st.integers(16, 40))
@settings(max_examples=400, deadline=None)
def test_chunks_cover_the_body_within_the_limit(text: str, max_tokens: int) -> None:
    note = parse(text, path="a.md", frontmatter_max_bytes=65_536)
    chunks = chunk(note, counter=Words(), max_tokens=max_tokens)
    assert chunks == chunk(note, counter=Words(), max_tokens=max_tokens)
    assert [c.ordinal for c in chunks] == list(range(len(chunks)))
    covered = note.body_start
    for piece in chunks:
        assert not text[covered : piece.start].strip().strip("\ufeff").strip()
        assert covered <= piece.start < piece.end
        said = text[piece.start : piece.end]
        assert said.strip()
        assert Words().count_tokens([embedding_text(piece.heading_path, said)])[0] <= max_tokens
        covered = piece.end
    assert not text[covered:].strip().strip("\ufeff").strip()


def candidates_of(paths: list[str]) -> list[Candidate]:
    found = []
    for number, path in enumerate(paths):
        keys = document_keys(path, [path.partition("/")[0]])
        found.append(
            Candidate(
                doc_id=f"{number}",
                path=path,
                path_key=keys.path_key,
                name_key=keys.name_key,
                alias_keys=keys.alias_keys,
                scope_width=number % 3,
                agent_id=f"agent-{number % 2}",
            )
        )
    return found


@given(paths, paths, link_types, st.lists(paths, max_size=6), st.randoms())
def test_resolution_does_not_depend_on_the_order(
    target: str, from_path: str, link_type: LinkType, documents: list[str], rnd: random.Random
) -> None:
    key = target_key(target, from_path=from_path, link_type=link_type)
    candidates = candidates_of(documents)
    shuffled = rnd.sample(candidates, len(candidates))
    first = resolve(key, from_path=from_path, link_type=link_type, candidates=candidates)
    assert first == resolve(key, from_path=from_path, link_type=link_type, candidates=shuffled)
    # What resolves is found by the keys that the store looks under, from both sides.
    for candidate in candidates:
        if candidate.doc_id == first.to_doc_id:
            keys = target_keys(key, from_path=from_path, link_type=link_type)
            document = document_keys(candidate.path, [candidate.path.partition("/")[0]])
            assert (
                candidate.path_key in keys.path_keys
                or candidate.name_key == keys.name_key
                or keys.alias_key in candidate.alias_keys
            )
            assert target_name_key(key) == document.name_key or key in document.target_keys


@given(scores, st.floats(0.01, 100))
def test_normalised_scores_lie_within_0_and_1(raw: dict[str, float], floor: float) -> None:
    for normalised in (normalise_keyword(raw, floor=floor), normalise_vector(raw, cosine_floor=0.7)):
        assert set(normalised.scores) == set(raw)
        assert all(0 <= score <= 1 for score in normalised.scores.values())


@given(unit_scores, st.randoms())
def test_places_and_sums_do_not_depend_on_the_order(raw: dict[str, float], rnd: random.Random) -> None:
    shuffled = dict(rnd.sample(list(raw.items()), len(raw)))
    assert normalise_place(raw) == normalise_place(shuffled)
    assert shares(raw) == shares(shuffled)
    assert total(raw.values()) == total(shuffled.values())


@given(st.binary(max_size=60), st.integers(0, 60))
def test_decoding_never_raises_and_accounts_for_every_byte(raw: bytes, limit: int) -> None:
    decoded = decode_text(raw, max_bytes=limit)
    assert 0 <= decoded.left_out_bytes <= len(raw)
    assert len(raw) - decoded.left_out_bytes <= limit
    if decoded.is_text and not decoded.warnings:
        assert decoded.text.encode() == raw


@given(markdown, st.text(max_size=10) | st.sampled_from(["word", "가나다", "title a"]), st.integers(10, 80))
def test_excerpts_are_a_part_of_the_text(text: str, query: str, max_chars: int) -> None:
    shown = excerpt(text, query, max_chars=max_chars)
    assert shown.text == text[shown.start : shown.end]
    assert len(shown.text) <= max_chars


TITLES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(TITLES, markdown, st.lists(names, max_size=4), st.uuids(version=4))
@example("\0a", "", [], UUID("e3e70682-c209-4cac-a29f-6fbed82c07cd"))
def test_a_memory_file_reads_back(title: str, content: str, tags: list[str], event_id: object) -> None:
    raw = render(title=title, content=content, tags=tags)
    front = read_frontmatter(raw.decode(), max_bytes=65_536)
    expected = " ".join(unicodedata.normalize("NFC", title).split()).replace("\0", "\ufffd")
    assert front.warnings == ()
    assert front.title == (expected if expected.casefold() not in ("", "~", "null", "none") else None)
    body = raw.decode()[front.body_start :]
    assert body == content if content.endswith("\n") or not content else body == f"{content}\n"
    assert re.fullmatch(r"memories/undated/[\w-]+-[0-9a-f]{8}\.md", path_for(str(event_id), title))
