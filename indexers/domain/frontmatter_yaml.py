"""The keys and values of a frontmatter block: from YAML's parser events, or else line by line.

Nothing is built from the events but strings, so that neither anchors nor nesting can blow up: an alias stands only
for a scalar, nesting is limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from indexers.domain.names import fold

#: A value of the block: a string, or the strings of a list (deeper values are left out).
Value = str | tuple[str, ...]

#: `key: value`, as most blocks write it.
KEY_LINE = re.compile(r"([^\W\d][\w .-]{0,63}):(?:[ \t]+(.*)|[ \t]*)$")
_MAX_DEPTH = 16
#: Characters of an unusual block that are parsed to their end (some 20 ms) only to know whether it is one.
_READ_WHOLE = 2_048
_CONTINUATION = re.compile(r"[ \t]|-(?:[ \t]|$)|#|$")

_SYNONYMS = {
    "tag": "tags",
    "alias": "aliases",
    "created_at": "created",
    "date": "created",
    "updated_at": "updated",
    "modified": "updated",
    "type": "doc_type",
}


def read_yaml(block: str) -> dict[str, Value] | None:
    """None: no mapping, or no YAML at all. A blank block has no keys."""
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


def read_lines(block: str) -> dict[str, Value] | None:
    """Key by key: a line is `key: value`, or belongs to the key above (indented, a list item, a comment)."""
    entries: list[tuple[str, str, list[str]]] = []
    for line in block.splitlines():
        match = KEY_LINE.match(line)
        if match is not None:
            entries.append((match[1], (match[2] or "").strip(), [line]))
        elif _CONTINUATION.match(line) and (entries or not line.strip() or line.startswith("#")):
            if entries:
                entries[-1][2].append(line)
        else:
            return None
    values: dict[str, Value] = {}
    for written, first, lines in entries:
        alone = read_yaml("\n".join(lines))
        if alone:
            for key, value in alone.items():
                values.setdefault(key, value)
        elif alone is None:
            _put(values, written, first.strip("\"'"))
    return values or None


def begins_mapping(block: str) -> bool:
    """True wherever `read_yaml` or `read_lines` reads it; they aren't asked where the first line is a key."""
    first = next((line for line in block.splitlines() if line.strip() and not line.startswith("#")), None)
    if first is None or KEY_LINE.match(first):
        return True
    if len(block) <= _READ_WHOLE:
        return read_yaml(block) is not None
    try:
        # Parsed lazily, so that a page of hits doesn't wait for a whole flow mapping.
        for event in yaml.parse(block, Loader=yaml.BaseLoader):
            if isinstance(event, (yaml.events.NodeEvent, yaml.events.StreamEndEvent)):
                return isinstance(event, (yaml.events.MappingStartEvent, yaml.events.StreamEndEvent))
    except (yaml.YAMLError, ValueError, IndexError, StopIteration):
        return False
    return False


def key_of(written: str) -> str:
    name = fold(written.strip()).replace("-", "_").replace(" ", "_")
    return _SYNONYMS.get(name, name)


def _put(values: dict[str, Value], written: str, value: Value | None) -> None:
    """A key's own name wins over its synonyms (`created` over `date`), else the first one written."""
    if value is None:
        return
    key = key_of(written)
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
