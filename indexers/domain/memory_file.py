"""A memory write as a file of the vault: Markdown with frontmatter, at a path that follows from the event."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import yaml

from indexers.domain.text import storable

MEMORY_FOLDER = "memories"
_SLUG_BYTES = 80
_SLUG_GAP = re.compile(r"[^\w]+")
#: Folder for ids that carry no time.
_NO_TIME = "undated"
#: Fields of a memory's file that most memories lack; a file without them is rendered as ever.
FURTHER_FIELDS = ("valid_from", "expires_at", "session", "speaker", "position")


def path_for(event_id: str, title: str | None) -> str:
    """`memories/2026/<slug>-<id8>.md`: the same event gives the same path, however often it is delivered.

    The year is that of the event id (UUIDv7), not of a clock; the id's random tail keeps equal titles apart.
    """
    identity = UUID(event_id)
    year = _NO_TIME
    if identity.version == 7:
        year = f"{datetime.fromtimestamp((identity.int >> 80) / 1000, tz=UTC):%Y}"
    return f"{MEMORY_FOLDER}/{year}/{slug(title or '')}-{identity.hex[-8:]}.md"


def slug(title: str) -> str:
    """Letters and digits of any script, joined by `-`, at most 80 bytes; `memory` where nothing is left."""
    folded = unicodedata.normalize("NFC", title).casefold()
    words = _SLUG_GAP.sub("-", unicodedata.normalize("NFC", folded)).strip("-_")
    cut = words.encode("utf-8", "ignore")[:_SLUG_BYTES].decode("utf-8", "ignore")
    return cut.strip("-_") or "memory"


def render(
    *,
    title: str | None,
    content: str,
    tags: Sequence[str] = (),
    category: str | None = None,
    doc_type: str = "memory",
    source: str | None = None,
    created: str | None = None,
    **further: str | int | None,
) -> bytes:
    """UTF-8; reading it back gives the same fields (NUL as U+FFFD, like every text) and the content as it was.

    `further`: any of `FURTHER_FIELDS`.
    """
    fields: dict[str, object] = {
        "title": title,
        "doc_type": doc_type,
        "tags": list(tags) or None,
        "category": category,
        "source": source,
        "created": created,
        **{name: further.get(name) for name in FURTHER_FIELDS},
    }
    head = head_lines(fields)
    return f"---\n{head}---\n{body_of(content)}".encode("utf-8", "replace")


def head_lines(fields: Mapping[str, object]) -> str:
    """Frontmatter lines of the fields that have a value."""
    kept = {name: _clean(value) for name, value in fields.items() if value is not None}
    if not kept:
        return ""
    return yaml.dump(
        kept,
        Dumper=yaml.SafeDumper,
        allow_unicode=True,
        sort_keys=False,
        default_flow_style=False,
        width=10_000,
    )


def body_of(content: str) -> str:
    return content if not content or content.endswith("\n") else f"{content}\n"


def _clean(value: object) -> object:
    """YAML would escape what no file holds, and the note would come back with a warning."""
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return storable(value) if isinstance(value, str) else value
