"""A corpus as a Markdown vault: one file a passage, found again by its path."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hopline.evaluation.sets import Passage, Question

_REFUSED = re.compile(r"[^\w.-]+")
#: With `.md` and a hash far below the 255 bytes of a file name, also in three-byte scripts.
_SEGMENT_MAX_CHARS = 60
#: Part of a name that vaults leave out: copies that synchronisers make.
_CONFLICT = re.compile("sync-conflict", re.IGNORECASE)
#: Beside ISO 8601: how people date conversations, `1:56 pm on 8 May, 2023`.
_SPOKEN = ("%I:%M %p on %d %B, %Y", "%d %B %Y", "%d %B, %Y", "%B %d, %Y")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPassage:
    path: str
    passage: Passage
    #: Place within its session, from 1; 0 for a passage of none.
    position: int


def placed(passages: Sequence[Passage]) -> Iterator[PlacedPassage]:
    """Each with a path of its own, also on a file system that doesn't tell upper case from lower."""
    taken: set[str] = set()
    turns: Counter[str] = Counter()
    for passage in passages:
        path = safe_path(passage)
        if path.casefold() in taken:
            path = f"{path.removesuffix('.md')}-{hashlib.sha256(passage.id.encode()).hexdigest()[:12]}.md"
        taken.add(path.casefold())
        session = session_of(passage)
        if session is not None:
            turns[session] += 1
        yield PlacedPassage(path=path, passage=passage, position=turns[session] if session else 0)


def safe_path(passage: Passage) -> str:
    """The id as a path: no way out of the folder, nothing hidden, no character that some system refuses.

    Passages of a conversation lie in its folder, which is what a question's group filters by.
    """
    segments = [safe_name(segment) for segment in passage.id.split("/") if segment.strip(". ")] or ["passage"]
    group = passage.about.conversation
    if group is not None and (len(segments) < 2 or segments[0] != safe_name(group)):
        segments.insert(0, safe_name(group))
    return "/".join(segments) + ".md"


def safe_name(text: str) -> str:
    clean = _REFUSED.sub("_", unicodedata.normalize("NFC", text))
    clean = _CONFLICT.sub("sync_conflict", clean)[:_SEGMENT_MAX_CHARS].rstrip(".")
    return f"_{clean}" if not clean or clean.startswith(".") else clean


def session_of(passage: Passage) -> str | None:
    """`conversation/session`, unique in the set; None for a passage of no session."""
    about = passage.about
    if about.session is None:
        return None
    return str(about.session) if about.conversation is None else f"{about.conversation}/{about.session}"


def note_of(place: PlacedPassage) -> str:
    """Frontmatter and text. Values are JSON strings, which YAML reads as they are."""
    about = place.passage.about
    values = {
        "title": place.passage.title,
        "session": session_of(place.passage),
        "position": place.position or None,
        "created": moment(about.date_time),
        "speaker": about.speaker,
        "tags": about.tags or None,
        "aliases": about.aliases or None,
        "category": about.category,
        "doc_type": about.doc_type,
        "source": about.source,
        "updated": about.updated,
        "valid_from": about.valid_from,
        "expires_at": about.expires_at,
    }
    lines = [
        f"{key}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in values.items()
        if value is not None
    ]
    return "\n".join(("---", *lines, "---", place.passage.text)) + "\n"


def moment(text: str | None) -> str | None:
    """ISO 8601, or None for what is no date."""
    if text is None:
        return None
    clean = " ".join(text.split())
    try:
        return datetime.fromisoformat(clean).isoformat()
    except ValueError:
        pass
    for form in _SPOKEN:
        try:
            return datetime.strptime(clean, form).isoformat()  # noqa: DTZ007 - a date as it is told has no zone
        except ValueError:
            continue
    return None


def write_vault(passages: Sequence[Passage], folder: Path) -> dict[str, str]:
    """One file each below `folder`; gives path → id. Raises OSError."""
    ids: dict[str, str] = {}
    for place in placed(passages):
        file = folder / place.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(note_of(place), encoding="utf-8")
        ids[place.path] = place.passage.id
    return ids


def path_prefixes(questions: Sequence[Question], passages: Sequence[Passage]) -> Mapping[str, str]:
    """By group: the beginning of the paths that it searches. Groups that no passage is of search everything."""
    folders = {passage.about.conversation for passage in passages} - {None}
    groups = {question.group for question in questions} - {None}
    return {str(group): f"{safe_name(str(group))}/" for group in groups & folders}
