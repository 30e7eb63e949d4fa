"""Frontmatter: YAML read as strings, never as dates, numbers or booleans.

Read from parser events, so that neither anchors nor nesting can blow up: an alias stands only for a scalar,
nesting is limited. Nearly-YAML (`title: Phase: two`) is read key by key. A block that is no mapping is body
text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime

import yaml

from indexers.domain.names import fold
from indexers.domain.text import REPLACEMENT, storable

#: A value of the block: a string, or the strings of a list (deeper values are left out).
Value = str | tuple[str, ...]

DOC_TYPES = ("note", "memory", "context", "skill", "session_summary")

WARNING_NOT_YAML = "frontmatter_not_yaml"
WARNING_NEARLY_YAML = "frontmatter_nearly_yaml"
WARNING_TOO_LARGE = "frontmatter_too_large"
WARNING_REPLACED = "frontmatter_characters_replaced"
WARNING_INVALID_DATE = "frontmatter_invalid_date"
WARNING_UNKNOWN_DOC_TYPE = "frontmatter_unknown_doc_type"

_MAX_DEPTH = 16
_MAX_ITEMS = 200
_MAX_CHARACTERS = 500
_FENCE = re.compile(r"\ufeff?---[ \t]*(?:\r\n?|\n)")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)", re.MULTILINE)
_KEY_LINE = re.compile(r"([^\W\d][\w .-]{0,63}):(?:[ \t]+(.*)|[ \t]*)$")
_CONTINUATION = re.compile(r"[ \t]|-(?:[ \t]|$)|#|$")
_NULLS = frozenset({"", "~", "null", "none"})

_SYNONYMS = {
    "tag": "tags",
    "alias": "aliases",
    "created_at": "created",
    "date": "created",
    "updated_at": "updated",
    "modified": "updated",
    "type": "doc_type",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontmatter:
    """Metadata of a note. Dates are ISO 8601; tags are folded (`Harbour` and `harbour` are one tag)."""

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
    #: Where the body begins: 0, or behind the closing fence.
    body_start: int = 0
    warnings: tuple[str, ...] = ()


def read_frontmatter(text: str, *, max_bytes: int) -> Frontmatter:
    """Never raises. Where the block can't be read, the body starts at 0 and a warning says so."""
    span = _block_span(text)
    if span is None:
        return Frontmatter()
    start, end, body_start = span
    if end - start > max_bytes or len(text[start:end].encode("utf-8", "replace")) > max_bytes:
        return Frontmatter(warnings=(WARNING_TOO_LARGE,))
    block = text[start:end]
    warnings: list[str] = []
    values = _read_yaml(block)
    if values is None:
        values = _read_lines(block)
        warnings.append(WARNING_NEARLY_YAML if values is not None else WARNING_NOT_YAML)
    if values is None:
        return Frontmatter(warnings=tuple(warnings))
    return _frontmatter(values, body_start, warnings)


def likely_body_start(text: str) -> int:
    """As `read_frontmatter` says it, without reading the values: a block that has a key is frontmatter."""
    span = _block_span(text)
    if span is None or not any(
        _KEY_LINE.match(line) for line in text[span[0] : span[1]].splitlines()[:_MAX_ITEMS]
    ):
        return 0
    return span[2]


def normalise_tag(tag: str) -> str:
    return fold(tag.strip().lstrip("#").strip().strip("/"))


def _block_span(text: str) -> tuple[int, int, int] | None:
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
    return Frontmatter(
        title=_scalar(values.get("title")),
        tags=unique(normalise_tag(tag) for tag in _items(values.get("tags"), r"[,\s]+")),
        aliases=unique(_items(values.get("aliases"), r",")),
        category=_scalar(values.get("category")),
        doc_type=doc_type,
        source=_scalar(values.get("source")),
        created=_date(values.get("created"), warnings),
        updated=_date(values.get("updated"), warnings),
        valid_from=_date(values.get("valid_from"), warnings),
        expires_at=_date(values.get("expires_at"), warnings),
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


def _key(written: str) -> str:
    name = fold(written.strip()).replace("-", "_").replace(" ", "_")
    return _SYNONYMS.get(name, name)


def _put(values: dict[str, Value], written: str, value: Value | None) -> None:
    """A key's own name wins over its synonyms (`created` over `date`), else the first one written."""
    if value is None:
        return
    key = _key(written)
    if key not in values or fold(written.strip()) == key:
        values[key] = value


@dataclass(slots=True)
class _Reader:
    """Values from YAML events; `yaml.YAMLError` where the block isn't readable."""

    events: Iterator[yaml.events.Event]
    scalars: dict[str, str] = field(default_factory=dict)

    def mapping(self) -> dict[str, Value] | None:
        values: dict[str, Value] = {}
        while not isinstance(event := next(self.events), yaml.events.MappingEndEvent):
            key = self.value(event, 1)
            value = self.value(next(self.events), 1)
            if isinstance(key, str):
                _put(values, key, value)
        return values

    def value(self, event: yaml.events.Event, depth: int) -> Value | None:
        if depth > _MAX_DEPTH:
            raise yaml.YAMLError(f"nested deeper than {_MAX_DEPTH}")
        match event:
            case yaml.events.ScalarEvent():
                if event.anchor is not None:
                    self.scalars[event.anchor] = event.value
                return str(event.value)
            case yaml.events.AliasEvent():
                return self.scalars.get(event.anchor or "")
            case yaml.events.SequenceStartEvent():
                items = []
                while not isinstance(item := next(self.events), yaml.events.SequenceEndEvent):
                    items.append(self.value(item, depth + 1))
                return tuple(item for item in items if isinstance(item, str))
        while not isinstance(item := next(self.events), yaml.events.MappingEndEvent):
            self.value(item, depth + 1)
        return None


def _read_yaml(block: str) -> dict[str, Value] | None:
    try:
        events = yaml.parse(block, Loader=yaml.BaseLoader)
        for event in events:
            if isinstance(event, yaml.events.StreamEndEvent):
                return {}  # blank, or comments only
            if isinstance(event, yaml.events.MappingStartEvent):
                reader = _Reader(events)
                values = reader.mapping()
                if isinstance(next(events), yaml.events.DocumentEndEvent):
                    list(events)  # errors behind the mapping count too
                    return values
                return None
            if isinstance(event, yaml.events.NodeEvent):
                return None
    except (yaml.YAMLError, ValueError, IndexError, StopIteration):
        return None
    return None


def _read_lines(block: str) -> dict[str, Value] | None:
    """Key by key: a line is `key: value`, or belongs to the key above (indented, a list item, a comment)."""
    entries: list[tuple[str, str, list[str]]] = []
    for line in block.splitlines():
        match = _KEY_LINE.match(line)
        if match is not None:
            entries.append((match[1], (match[2] or "").strip(), [line]))
        elif _CONTINUATION.match(line) and (entries or not line.strip() or line.startswith("#")):
            if entries:
                entries[-1][2].append(line)
        else:
            return None
    values: dict[str, Value] = {}
    for written, first, lines in entries:
        alone = _read_yaml("\n".join(lines))
        if alone:
            for key, value in alone.items():
                values.setdefault(key, value)
        elif alone is None:
            _put(values, written, first.strip("\"'"))
    return values or None
