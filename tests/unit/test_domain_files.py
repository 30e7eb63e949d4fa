from __future__ import annotations

from dataclasses import dataclass

import pytest

from indexers.domain.hashing import Decision, content_hash, decide, versions_fingerprint
from indexers.domain.markdown import parse
from indexers.domain.memory_file import path_for, render, slug
from indexers.domain.text import DecodedText, decode_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    content_hash: str = "h1"
    versions: str = "v1"
    version: int = 10
    event_id: str = "e5"
    deleted: bool = False


@pytest.mark.parametrize(
    ("version", "event_id", "hashed", "versions", "row", "expected"),
    [
        (1, "e1", "h1", "v1", None, Decision.INDEX),
        (1, "e1", None, "v1", None, Decision.INDEX),
        (9, "e9", "h2", "v1", Row(), Decision.SKIP_OLDER),
        (10, "e4", "h2", "v1", Row(), Decision.SKIP_OLDER),
        (10, "e5", "h1", "v1", Row(), Decision.SKIP_SAME),
        (10, "e5", "h1", "v2", Row(), Decision.INDEX),
        (11, "e1", "h1", "v1", Row(), Decision.SKIP_SAME),
        (11, "e1", "h1", "v2", Row(), Decision.INDEX),
        (11, "e1", "h2", "v1", Row(), Decision.INDEX),
        (11, "e1", "h1", "v1", Row(deleted=True), Decision.INDEX),
        (9, "e1", "h1", "v1", Row(deleted=True), Decision.SKIP_OLDER),
        (11, "e1", None, "v1", Row(), Decision.INDEX),
        # The tombstone rises: else what came between the two deletions would bring the document back.
        (11, "e1", None, "v1", Row(deleted=True), Decision.INDEX),
        (10, "e5", None, "v1", Row(deleted=True), Decision.SKIP_SAME),
        (10, "e4", None, "v1", Row(deleted=True), Decision.SKIP_OLDER),
        (9, "e1", None, "v1", Row(), Decision.SKIP_OLDER),
    ],
)
def test_the_hash_gate(
    version: int, event_id: str, hashed: str | None, versions: str, row: Row | None, expected: Decision
) -> None:
    decision = decide(
        event_version=version, event_id=event_id, content_hash=hashed, versions=versions, row=row
    )
    assert decision is expected


def test_hashes_are_of_the_raw_bytes() -> None:
    assert content_hash(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert versions_fingerprint("p1", "c1", "m1", "h1") == "p1|c1|m1|h1"


@pytest.mark.parametrize(
    ("raw", "limit", "expected"),
    [
        (b"", 10, DecodedText(text="", left_out_bytes=0, warnings=(), is_text=True)),
        ("\ufeff가".encode(), 10, DecodedText(text="\ufeff가", left_out_bytes=0, warnings=(), is_text=True)),
        (
            "가나다".encode(),
            7,
            DecodedText(text="가나", left_out_bytes=3, warnings=("truncated",), is_text=True),
        ),
        ("a😀".encode(), 4, DecodedText(text="a", left_out_bytes=4, warnings=("truncated",), is_text=True)),
        (b"a\x00b", 10, DecodedText(text="", left_out_bytes=0, warnings=("nul_bytes",), is_text=False)),
        (
            "한글 파일".encode("cp949"),
            99,
            DecodedText(text="", left_out_bytes=0, warnings=("not_utf8",), is_text=False),
        ),
        (
            b"caf\xe9 au lait",
            99,
            DecodedText(
                text="caf\ufffd au lait", left_out_bytes=0, warnings=("invalid_utf8_replaced",), is_text=True
            ),
        ),
        ("a\ufffdb".encode(), 99, DecodedText(text="a\ufffdb", left_out_bytes=0, warnings=(), is_text=True)),
        (
            b"abcdefgh" * 4 + b"\x80" * 8,
            38,
            DecodedText(text="", left_out_bytes=2, warnings=("truncated", "not_utf8"), is_text=False),
        ),
    ],
)
def test_bytes_to_text(raw: bytes, limit: int, expected: DecodedText) -> None:
    assert decode_text(raw, max_bytes=limit) == expected


EVENT = "0190163d-8694-739b-aea5-966c26f8ad91"


def test_a_memory_file_is_found_again_by_its_event() -> None:
    assert path_for(EVENT, "Crane: 2nd report!") == "memories/2024/crane-2nd-report-26f8ad91.md"
    assert path_for(EVENT, None) == "memories/2024/memory-26f8ad91.md"
    assert path_for("6f1d6f5e-3c1b-5d0a-9c53-5b8d2f6a7e41", "부산") == "memories/undated/부산-2f6a7e41.md"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("...", "memory"),
        ("A" * 300, "a" * 80),
        ("회의록 " * 30, "회의록-" * 8),
    ],
)
def test_slugs_are_safe(title: str, expected: str) -> None:
    assert slug(title) == expected.strip("-") or slug(title).startswith(expected.strip("-")[:20])
    assert len(slug(title).encode()) <= 80


def test_a_rendered_memory_reads_back() -> None:
    raw = render(
        title="Phase: two",
        content="---\nNot frontmatter\n---\n[[a]]",
        tags=["tar", "a, b"],
        category="ops",
        source="memory_tool",
        created="2031-04-05T10:00:00+00:00",
    )
    note = parse(raw.decode(), path="m.md", frontmatter_max_bytes=65_536)
    front = note.frontmatter
    assert (
        front.title,
        front.tags,
        front.category,
        front.doc_type,
        front.source,
        front.created,
        front.warnings,
    ) == (
        "Phase: two",
        ("tar", "a, b"),
        "ops",
        "memory",
        "memory_tool",
        "2031-04-05T10:00:00+00:00",
        (),
    )
    assert note.text[note.body_start :] == "---\nNot frontmatter\n---\n[[a]]\n"
