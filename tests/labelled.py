"""Texts with the names that stand in them, and how well found names agree with those."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: 30 sentences, 94 names, written after the model's training texts.
AGENT_MEMORY = Path(__file__).parent / "data" / "entities_agent_memory.txt"
_NAME = re.compile(r"\[([^\]|]+)\|([^\]]+)\]")

Place = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """`names`: (start, end, label), code points, end exclusive."""

    text: str
    names: frozenset[Place]


def read_labelled(path: Path) -> list[Labelled]:
    """`.txt`: a text a line, names as `[name|label]`, `#` comments. `.jsonl`, `.jsonl.gz`: words and word spans."""
    if path.suffix == ".txt":
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_from_marks(line) for line in lines if line.strip() and not line.startswith("#")]
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [_from_words(json.loads(line)) for line in raw.splitlines() if line.strip()]


def labels_of(texts: Iterable[Labelled]) -> list[str]:
    return sorted({label for text in texts for *_, label in text.names})


def joined(texts: Iterable[Labelled], separator: str) -> Labelled:
    """All in one."""
    parts: list[str] = []
    names: set[Place] = set()
    at = 0
    for text in texts:
        names |= {(start + at, end + at, label) for start, end, label in text.names}
        parts.append(text.text)
        at += len(text.text) + len(separator)
    return Labelled(text=separator.join(parts), names=frozenset(names))


def micro_f1(pairs: Iterable[tuple[Iterable[Place], Iterable[Place]]]) -> float:
    """Of (expected, found) by text; a name counts with its exact place and label. 0 to 100."""
    right = total = 0
    for expected, found in pairs:
        wanted, got = set(expected), set(found)
        right += len(wanted & got)
        total += len(wanted) + len(got)
    return 200 * right / total if total else 100.0


def stored_places(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], set[Place]]:
    """Of mention rows: by (path, source). A row holds the first 20 places of its name."""
    found: defaultdict[tuple[str, str], set[Place]] = defaultdict(set)
    for row in rows:
        found[row["path"], row["source"]] |= {
            (o["start"], o["end"], row["label"]) for o in row["occurrences"]
        }
    return found


def apart_from(places: Iterable[Place], others: Iterable[Place]) -> set[Place]:
    """Those that overlap none of the others: a rule's name takes the place of the model's."""
    taken = list(others)
    return {
        (start, end, label)
        for start, end, label in places
        if not any(a < end and start < b for a, b, _ in taken)
    }


def _from_marks(line: str) -> Labelled:
    text, names, at = "", set(), 0
    for match in _NAME.finditer(line):
        text += line[at : match.start()]
        names.add((len(text), len(text) + len(match[1]), match[2]))
        text += match[1]
        at = match.end()
    return Labelled(text=text + line[at:], names=frozenset(names))


def _from_words(record: dict[str, Any]) -> Labelled:
    starts, at = [], 0
    words: list[str] = record["tokenized_text"]
    for word in words:
        starts.append(at)
        at += len(word) + 1
    names = {(starts[a], starts[b] + len(words[b]), label) for a, b, label in record["ner"]}
    return Labelled(text=" ".join(words), names=frozenset(names))
