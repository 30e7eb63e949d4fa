"""Names and shape of the topics and groups; every name takes the prefix setting."""

from __future__ import annotations

from dataclasses import dataclass

DAY_MS = 24 * 60 * 60 * 1000
#: A segment is closed after it, so that its oldest record doesn't wait a week for the newest to expire.
SEGMENT_MS = DAY_MS


@dataclass(frozen=True, slots=True)
class Topics:
    prefix: str = "hopline"

    @property
    def file_changes(self) -> str:
        return f"{self.prefix}.file-changes"

    @property
    def memory_writes(self) -> str:
        return f"{self.prefix}.memory-writes"

    @property
    def documents(self) -> str:
        return f"{self.prefix}.documents"

    @property
    def mentions(self) -> str:
        return f"{self.prefix}.mentions"

    @property
    def extract_requests(self) -> str:
        """Namespaces whose documents shall be extracted again, page by page."""
        return f"{self.prefix}.extract-requests"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}.dead-letters"

    def group(self, agent: str) -> str:
        return f"{self.prefix}.{agent}"

    @property
    def inputs(self) -> tuple[str, str]:
        """The two topics of document events: same key, same partition count, one reader."""
        return (self.file_changes, self.memory_writes)

    def read_by(self, agent: str) -> tuple[str, ...]:
        return {
            "ingest": self.inputs,
            "embed": (self.documents,),
            "extract": (self.documents, self.extract_requests),
            "link": (self.mentions,),
        }[agent]

    @property
    def text_kept_ms(self) -> int:
        """So long after it was written a record may stand in a log: retention, then the age of its segment."""
        return max(self.retention_ms.values()) + SEGMENT_MS

    @property
    def retention_ms(self) -> dict[str, int]:
        return {
            self.file_changes: 7 * DAY_MS,
            self.memory_writes: 7 * DAY_MS,
            self.documents: 7 * DAY_MS,
            self.mentions: 30 * DAY_MS,
            self.extract_requests: 7 * DAY_MS,
            self.dead_letters: 30 * DAY_MS,
        }
