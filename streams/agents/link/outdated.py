"""Which rows of former versions no longer stand, asked for a slice of a batch in one query. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import DocumentId, MentionId
from indexers.opensearch.rows import MentionRow
from indexers.opensearch.visibility import Query
from streams.agents.link.decode import Word

#: Of the one query that tells of a slice; the engine takes 1,024.
CLAUSES_MAX: Final = 500
_CLAUSES_WITH_ROWS: Final = 5
_CLAUSES_WITHOUT: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`rows` None: nothing of it stands. Rows of the versions from `since` to `upto` are outdated, but for `rows`."""

    word: Word
    rows: Mapping[MentionId, MentionRow] | None
    upto: int
    since: int = 0


#: What one query tells of together.
Group = tuple[Verdict, ...]


def slices(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Parts of a batch for `write_edges`. Most words say that a document has nothing of a label: they cost little."""
    by_document: defaultdict[DocumentId, list[Word]] = defaultdict(list)
    for word in words:
        by_document[word.doc_id].append(word)
    part: list[Word] = []
    clauses = 0
    for members in by_document.values():
        told = set[int]()
        for word in members:
            version = word.event.version
            own = _CLAUSES_WITH_ROWS if word.event.mentions else 0 if version in told else _CLAUSES_WITHOUT
            if clauses + own > CLAUSES_MAX:
                yield part
                part, clauses = [], 0
                told.clear()
            if not word.event.mentions:
                told.add(version)
            part.append(word)
            clauses += own
    if part:
        yield part


def groups_of(verdicts: Sequence[Verdict]) -> list[Group]:
    """Each with rows by itself; those without, of one document and the same versions, together."""
    groups: list[Group] = []
    without: defaultdict[tuple[DocumentId, int, int], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.rows:
            groups.append((verdict,))
        else:
            without[verdict.word.doc_id, verdict.since, verdict.upto].append(verdict)
    return groups + [tuple(members) for members in without.values()]


def outdated_query(group: Group) -> Query:
    """Never rows of a newer version: those are another event's affair. Five leaf clauses, or three without rows."""
    [first, *_] = group
    terms: list[Query] = [
        {"term": {"doc_id": first.word.doc_id}},
        {"terms": {"label": sorted(verdict.word.event.label for verdict in group)}},
        {"range": {"version": {"gte": first.since, "lte": first.upto}}},
    ]
    if not first.rows:
        return {"bool": {"filter": terms}}
    present: list[Query] = [
        {"term": {"version": first.word.event.version}},
        {"terms": {"name_id": sorted(row.name_id for row in first.rows.values())}},
    ]
    return {"bool": {"filter": terms, "must_not": [{"bool": {"filter": present}}]}}
