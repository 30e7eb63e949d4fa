"""A file that stands already, with some fields of its frontmatter or its body replaced. Pure.

The rest of the bytes stays as a person left it. Doing it twice is doing it once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any, Final

from indexers.domain.frontmatter import Frontmatter, block_span, read_frontmatter
from indexers.domain.frontmatter_yaml import KEY_LINE, key_of
from indexers.domain.memory_file import body_of, head_lines

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
#: Said about the reading, not by the file.
_ABOUT: Final = frozenset({"warnings", "body_start"})


def revise(
    raw: bytes, fields: Mapping[str, object], content: str | None = None, *, frontmatter_max_bytes: int
) -> bytes | None:
    """`fields`: as the frontmatter names them, None takes one away; `content` None: the body stays.

    None where the file is no text: nothing can be said in it.
    """
    if b"\x00" in raw:
        return None
    text = raw.decode("utf-8", "surrogateescape")
    present = read_frontmatter(text, max_bytes=frontmatter_max_bytes)
    body = text[present.body_start :] if content is None else body_of(_encodable(content))
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    if not present.body_start:
        head = head_lines(fields)
        body = body.removeprefix(mark) if content is None else body
        return _encoded(f"{mark}---\n{head}---\n{body}" if head else f"{mark}{body}")
    start, end, _ = block_span(text) or (0, 0, 0)
    block = _replaced(text[start:end], fields, line_end="\r\n" if text[:start].endswith("\r\n") else "\n")
    revised = f"{text[:start]}{block}{text[end : present.body_start]}{body}"
    if _says(revised, present, fields, frontmatter_max_bytes):
        return _encoded(revised)
    # Frontmatter of an unusual form (a flow mapping, quoted keys): written anew from what was read of it.
    return _encoded(f"{mark}---\n{head_lines(_values(present) | dict(fields))}---\n{body}")


def _replaced(block: str, fields: Mapping[str, object], *, line_end: str) -> str:
    """Each field where it first stood, new ones behind the others."""
    kept: list[str] = []
    left = dict(fields)
    skipping = False
    for line in _LINES.findall(block):
        match = KEY_LINE.match(line.rstrip("\r\n"))
        name = None if match is None else key_of(match[1])
        if name is not None:
            skipping = name in fields
        if name in left:
            kept.append(_line({name: left.pop(name)}, line_end))
        if not skipping:
            kept.append(line)
    if kept and kept[-1] and not kept[-1].endswith(("\n", "\r")):
        kept[-1] += line_end
    return "".join(kept) + _line(left, line_end)


def _line(fields: Mapping[str, object], line_end: str) -> str:
    return head_lines(fields).replace("\n", line_end)


def _says(revised: str, before: Frontmatter, fields: Mapping[str, object], max_bytes: int) -> bool:
    """Whether the fields read as given and all else as before."""
    now = read_frontmatter(revised, max_bytes=max_bytes)
    alone = read_frontmatter(f"---\n{head_lines(fields)}---\n", max_bytes=max_bytes)
    if not now.body_start:
        return False
    return all(getattr(now, name) == getattr(alone if name in fields else before, name) for name in _names())


def _values(present: Frontmatter) -> dict[str, object]:
    found: dict[str, Any] = {name: getattr(present, name) for name in _names()}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items() if v not in (None, ())}


def _names() -> list[str]:
    return [field.name for field in fields_of(Frontmatter) if field.name not in _ABOUT]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _encoded(text: str) -> bytes:
    """Bytes that were no UTF-8 come back as they were."""
    return text.encode("utf-8", "surrogateescape")
