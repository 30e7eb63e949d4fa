"""Where a text comes from, and how much that is worth when two hits are nearly equal. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

UNKNOWN: Final = "unknown"
RANK_MAX: Final = 9
#: DESIGN §7: the more somebody meant it to be remembered, the higher.
SOURCE_RANKS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "memory_tool": 9,
        "identity.md": 8,
        "USER.md": 8,
        "MEMORY.md": 7,
        "session_search": 7,
        "sync": 6,
        "cron": 5,
        "manual_fix": 4,
        "test": 2,
        UNKNOWN: 0,
    }
)
#: Files that say by their name where their text comes from.
_BY_NAME: Final = MappingProxyType({"identity": "identity.md", "user": "USER.md", "memory": "MEMORY.md"})


def source_of(written: str | None, name_key: str) -> str:
    """What the frontmatter says, else what the file's name says."""
    return written or _BY_NAME.get(name_key, UNKNOWN)


def weight(source: str, ranks: Mapping[str, int] = SOURCE_RANKS) -> float:
    """0.9 + 0.1 · rank/9, rank 0..9: it only breaks close ties. A source without a rank has `unknown`'s, else 0."""
    rank = ranks.get(source, ranks.get(UNKNOWN, 0))
    return 0.9 + 0.1 * rank / RANK_MAX
