"""Frontmatter: YAML read as strings, never as dates, numbers or booleans.

Nearly-YAML (`title: Phase: two`) is read key by key. A block that is no mapping is body text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal, get_args
from uuid import UUID

from indexers.domain.frontmatter_yaml import Value, begins_mapping, read_lines, read_yaml
from indexers.domain.identity import normalise_path
from indexers.domain.names import NOTE_SUFFIXES, fold, with_suffix
from indexers.domain.text import REPLACEMENT, storable

DocType = Literal["note", "memory", "context", "skill", "session_summary"]
DOC_TYPES: Final[tuple[DocType, ...]] = get_args(DocType)

WARNING_NOT_YAML = "frontmatter_not_yaml"
WARNING_NEARLY_YAML = "frontmatter_nearly_yaml"
WARNING_TOO_LARGE = "frontmatter_too_large"
WARNING_REPLACED = "frontmatter_characters_replaced"
WARNING_INVALID_DATE = "frontmatter_invalid_date"
WARNING_UNKNOWN_DOC_TYPE = "frontmatter_unknown_doc_type"
WARNING_INVALID_POSITION = "frontmatter_invalid_position"
WARNING_INVALID_SUPERSEDED_BY = "frontmatter_invalid_superseded_by"

#: What the index's integers hold.
POSITION_MAX = 2**31 - 1

_MAX_ITEMS = 200
_MAX_CHARACTERS = 500
_FENCE = re.compile(r"\ufeff?---[ \t]*(?:\r\n?|\n)")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)", re.MULTILINE)
_DIGITS = re.compile(r"[0-9]{1,10}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NULLS = frozenset({"", "~", "null", "none"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontmatter:
    """Metadata of a note. Dates are ISO 8601; tags and the category are folded (`Harbour` and `harbour` are one)."""

    title: str | None = None
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    category: str | None = None
    doc_type: str | None = None
    source: str | None = None
    created: str | None = None
    updated: str | None = None
    valid_from: str | None = None
    expires_at: str | None = None
    #: The conversation or log that this is a part of, its place there from 0 on, and who says it.
    session: str | None = None
    position: int | None = None
    speaker: str | None = None
    #: A document's id, or a path from the vault's root with its suffix.
    superseded_by: str | None = None
    #: Where the body begins: 0, or behind the closing fence.
    body_start: int = 0
    warnings: tuple[str, ...] = ()


def read_frontmatter(text: str, *, max_bytes: int) -> Frontmatter:
    """Never raises. Where the block can't be read, the body starts at 0 and a warning says so."""
    span = block_span(text)
    if span is None:
        return Frontmatter()
    start, end, body_start = span
    if end - start > max_bytes or len(text[start:end].encode("utf-8", "replace")) > max_bytes:
        return Frontmatter(warnings=(WARNING_TOO_LARGE,))
    block = text[start:end]
    warnings: list[str] = []
    values = read_yaml(block)
    if values is None:
        values = read_lines(block)
        warnings.append(WARNING_NEARLY_YAML if values is not None else WARNING_NOT_YAML)
    if values is None:
        return Frontmatter(warnings=tuple(warnings))
    return _frontmatter(values, body_start, warnings)


def likely_body_start(text: str) -> int:
    """As `read_frontmatter` says it, mostly without reading the values: a block that begins with a key has keys.

    Never 0 where that gives a body's start; a block that only its end or its size spoils is taken for one, too.
    """
    span = block_span(text)
    return span[2] if span is not None and begins_mapping(text[span[0] : span[1]]) else 0


def normalise_tag(tag: str) -> str:
    return fold(tag.strip().lstrip("#").strip().strip("/"))


def block_span(text: str) -> tuple[int, int, int] | None:
    opening = _FENCE.match(text)
    closing = _CLOSE.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return None
    return opening.end(), closing.start(), closing.end()


def _frontmatter(written: dict[str, Value], body_start: int, warnings: list[str]) -> Frontmatter:
    values = {key: _storable(value, warnings) for key, value in written.items()}
    doc_type = _scalar(values.get("doc_type"))
    if doc_type is not None and doc_type not in DOC_TYPES:
        warnings.append(WARNING_UNKNOWN_DOC_TYPE)
        doc_type = None
    category = _scalar(values.get("category"))
    return Frontmatter(
        title=_scalar(values.get("title")),
        tags=unique(normalise_tag(tag) for tag in _items(values.get("tags"), r"[,\s]+")),
        aliases=unique(_items(values.get("aliases"), r",")),
        category=None if category is None else fold(category),
        doc_type=doc_type,
        source=_scalar(values.get("source")),
        created=_date(values.get("created"), warnings),
        updated=_date(values.get("updated"), warnings),
        valid_from=_date(values.get("valid_from"), warnings),
        expires_at=_date(values.get("expires_at"), warnings),
        session=_scalar(values.get("session")),
        position=_position(values.get("position"), warnings),
        speaker=_scalar(values.get("speaker")),
        superseded_by=_superseded_by(values.get("superseded_by"), warnings),
        body_start=body_start,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def unique(items: Iterator[str]) -> tuple[str, ...]:
    """Without blanks and repetitions, in order, bounded in number and length."""
    kept = dict.fromkeys(item[:_MAX_CHARACTERS] for item in items if item)
    return tuple(kept)[:_MAX_ITEMS]


def _scalar(value: Value | None) -> str | None:
    text = value[0] if isinstance(value, tuple) and value else value
    if not isinstance(text, str):
        return None
    line = " ".join(unicodedata.normalize("NFC", text).split())[:_MAX_CHARACTERS]
    return None if line.casefold() in _NULLS else line


def _storable(value: Value, warnings: list[str]) -> Value:
    """YAML can escape what no file holds: one such character must not cost the whole note."""
    if not isinstance(value, str):
        return tuple(str(_storable(item, warnings)) for item in value)
    kept = storable(value)
    if kept.count(REPLACEMENT) > value.count(REPLACEMENT):
        warnings.append(WARNING_REPLACED)
    return kept


def _items(value: Value | None, separator: str) -> Iterator[str]:
    parts = re.split(separator, value) if isinstance(value, str) else value or ()
    for part in parts:
        if (item := _scalar(part)) is not None:
            yield item


def _date(value: Value | None, warnings: list[str]) -> str | None:
    text = _scalar(value)
    if text is None:
        return None
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(text).isoformat()
        except ValueError:
            continue
    warnings.append(WARNING_INVALID_DATE)
    return None


def _position(value: Value | None, warnings: list[str]) -> int | None:
    text = _scalar(value)
    if text is None:
        return None
    if _DIGITS.fullmatch(text) is None or int(text) > POSITION_MAX:
        warnings.append(WARNING_INVALID_POSITION)
        return None
    return int(text)


def _superseded_by(value: Value | None, warnings: list[str]) -> str | None:
    """Brackets of a wikilink, its display text and heading are left off."""
    text = _scalar(value)
    if text is None:
        # YAML takes a wikilink without quotes for a list of lists, of which no string is left.
        warnings.extend([WARNING_INVALID_SUPERSEDED_BY] if value == () else [])
        return None
    try:
        return str(UUID(text)) if _UUID.fullmatch(text) else _note_path(text)
    except ValueError:
        warnings.append(WARNING_INVALID_SUPERSEDED_BY)
        return None


def _note_path(text: str) -> str:
    linked = text.startswith("[[") and text.endswith("]]")
    target = re.split(r"[|#]", text[2:-2])[0].strip() if linked else text
    path = normalise_path(target.lstrip("/"))
    return path if path.casefold().endswith(NOTE_SUFFIXES) else with_suffix(path)
