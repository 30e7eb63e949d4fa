"""What a comparison of vault and index says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "unreadable_file",
    "missing_document",
    "stale_document",
    "orphan_document",
    "missing_gate",
    "stale_gate",
    "orphan_gate",
    "missing_chunk",
    "stale_chunk",
    "orphan_chunk",
    "missing_vector",
    "missing_link",
    "stale_link",
    "orphan_link",
    "dangling_link",
    "wrong_link",
    "wrong_ambiguity",
    "missing_unlinked_mention",
    "wrong_unlinked_mention",
    "orphan_unlinked_mention",
    "missing_extraction",
    "stale_extraction",
    "orphan_extraction",
    "missing_mention",
    "stale_mention",
    "orphan_mention",
    "missing_relation",
    "stale_relation",
    "orphan_relation",
    "missing_name",
    "stale_name",
    "orphan_name",
    "wrong_count",
    "wrong_entity",
    "wrong_proposal",
    "duplicate_row",
]
#: Findings kept in words; the rest is counted.
FINDINGS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    kind: Kind
    #: Path in the vault, or the row's id where no path is known.
    where: str
    detail: str


@dataclass(slots=True, kw_only=True)
class VerifyReport:
    """Of one vault root. Clean means: vault and index say the same."""

    root: str
    files: int = 0
    documents: int = 0
    chunks: int = 0
    links: int = 0
    dangling: int = 0
    tombstones: int = 0
    #: Edges that no link makes, but a title or alias in the text.
    unlinked_mentions: int = 0
    #: Edges document → name; and names of the namespace, which its first root tells of.
    mentions: int = 0
    names: int = 0
    #: Edges name → name that somebody stated.
    relations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.counts

    def add(self, kind: Kind, where: str, detail: str) -> None:
        self.counts[kind] += 1
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(kind=kind, where=where, detail=detail))
