"""No excerpt shows what the parser takes for frontmatter."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from indexers.domain.excerpts import excerpt
from indexers.domain.frontmatter import likely_body_start, read_frontmatter
from indexers.domain.memory_file import render

#: What blocks are made of, well or badly.
PIECES = (
    *("title: Bike key\n", "key: [a, b]\n", '"quoted": x\n', "? asked\n: told\n", "2031: year\n", "- item\n"),
    *(
        "{title: Bike key, tags: [a]}\n",
        "{",
        "}\n",
        "{{ x }}\n",
        "# comment\n",
        " # indented\n",
        "  below: x\n",
    ),
    *(
        "%YAML 1.1\n",
        "prose\n",
        "---\n",
        "...\n",
        "--- {a: b}\n",
        "\n",
        "\r\n",
        "&a k: *a\n",
        "!!map {a: b}\n",
    ),
    *(": ", "'", '"', "\t", "\ufeff", "\u2028", "\x85", "\x0c"),
)
blocks = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=12).map("".join)
plain = st.text(max_size=8) | st.integers() | st.none() | st.lists(st.text(max_size=5), max_size=3)
mappings = st.dictionaries(st.text(max_size=8) | st.integers(), plain, max_size=4)
dumped = st.builds(
    lambda mapping, flow: yaml.safe_dump(mapping, default_flow_style=flow, allow_unicode=True),
    mappings,
    st.sampled_from([True, False, None]),
)


@given(blocks | dumped)
@example("# a comment\n" * 300 + "title: x\n")
@example("{title: Bike key, doc_type: memory, source: memory_tool, created: '2026-05-01T10:00:00+00:00'}\n")
@example("{long: " + "word " * 1_000 + "}\n")
@example("  indented: key\n" + "  other: key\n" * 300)
@example("")
def test_no_excerpt_shows_frontmatter(block: str) -> None:
    text = f"---\n{block}---\nThe spare one hangs behind the door.\n"
    parsed = read_frontmatter(text, max_bytes=65_536)
    likely = likely_body_start(text)
    assert parsed.body_start in (likely, 0)
    if parsed.body_start:
        assert excerpt(text, "nothing of it", max_chars=80, body_start=likely).start >= parsed.body_start


@pytest.mark.parametrize(
    "block",
    ["prose\nkey: value\n", "- a\n- b\n", "A line, then: another\n\nb\n", "{a, b", "plain words\n" * 300],
)
def test_what_begins_as_text_is_text(block: str) -> None:
    text = f"---\n{block}\n---\nbody\n"
    assert (likely_body_start(text), read_frontmatter(text, max_bytes=65_536).body_start) == (0, 0)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
@example("Bike key")
def test_a_memory_shows_its_content(title: str) -> None:
    text = render(title=title, content="It hangs behind the door.", source="memory_tool").decode()
    assert text.startswith("---\ntitle:")
    start = likely_body_start(text)
    assert excerpt(text, "nothing of it", max_chars=80, body_start=start).text == "It hangs behind the door."
