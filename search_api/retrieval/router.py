"""What a query says of itself: tags, times, quoted titles, paths, ids. Pure; the clock is an argument.

It leaves no document out. What it finds lifts documents that have it (factors above 1), and what is named exactly
comes first. Only the filters of a request exclude.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal

from indexers.domain.entities.asked import asked_keys
from indexers.domain.frontmatter import normalise_tag
from indexers.domain.title_names import (
    HEAD_TOKENS,
    Said,
    heads_among,
    long_grams,
    name_of,
    read_pieces,
    short_grams,
)
from search_api.retrieval.time_ranges import TimeRange, time_ranges

#: Characters of a query that are read for names and signs; of a longer one the rest is only searched.
READ_CHARS: Final = 600
#: Quoted texts, paths and ids that are looked up, each.
EXACT_MAX: Final = 8
#: Names that titles are looked up by.
TITLE_KEYS_MAX: Final = 600
_TAG: Final = re.compile(r"(?:^|(?<=[\s(,]))#([^\W\d_][\w/-]*|\d+[^\W\d][\w/-]*)")
_QUOTED: Final = re.compile(
    r"\"([^\"]+)\"|\u201c([^\u201d]+)\u201d|「([^」]+)」|『([^』]+)』|`([^`]+)`|«([^»]+)»"
)
_ID: Final = re.compile(
    r"(?<![0-9a-f-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f-])"
)
_PATH: Final = re.compile(r"[^\s\"`]*[^\s\"`/]/[^\s\"`]+|[^\s\"`]+\.(?:md|markdown|txt)\b", re.IGNORECASE)
_SUFFIX: Final = ".md"

Kind = Literal["tag", "time", "quoted", "path", "id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """For the trace: what was read out of the query, and what that does."""

    kind: Kind
    said: str
    effect: Literal["boost", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Under what the index keeps names that the query may say."""

    said: tuple[Said, ...] = ()
    #: Lookup keys of titles and aliases, whole names only.
    title_keys: tuple[str, ...] = ()
    #: Keys of names of entities.
    entity_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    now: datetime
    #: Runs of up to three words of the query, as names are compared.
    words: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    times: tuple[TimeRange, ...] = ()
    quoted: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    doc_ids: tuple[str, ...] = ()
    recognised: tuple[Recognised, ...] = ()

    def says(self, phrase: str) -> bool:
        """Whether words of the query are this tag, category or agent, or the last part of a nested tag."""
        return not self.words.isdisjoint(_phrases(phrase))


def route(query: str, now: datetime) -> Route:
    text = query[:READ_CHARS]
    tags = tuple(dict.fromkeys(tag for found in _TAG.findall(text) if (tag := normalise_tag(found))))
    quoted = _few(next(filter(None, found)) for found in _QUOTED.findall(text))
    doc_ids = _few(_ID.findall(text))
    paths = _few(_paths(text, quoted))
    times = time_ranges(text, now)
    recognised = (
        *(Recognised(kind="tag", said=tag, effect="boost") for tag in tags),
        *(Recognised(kind="time", said=time.said, effect="boost") for time in times),
        *(Recognised(kind="quoted", said=said, effect="exact") for said in quoted),
        *(Recognised(kind="path", said=path, effect="exact") for path in paths),
        *(Recognised(kind="id", said=doc_id, effect="exact") for doc_id in doc_ids),
    )
    return Route(
        now=now,
        words=frozenset(short_grams(_said(text))),
        tags=frozenset(tags),
        times=times,
        quoted=quoted,
        paths=tuple(dict.fromkeys(form for path in paths for form in _with_suffix(path))),
        doc_ids=doc_ids,
        recognised=recognised,
    )


def names_in(query: str) -> Names:
    """Of the query's beginning."""
    text = query[:READ_CHARS]
    said = _said(text)
    grams = short_grams(said)
    heads = heads_among(grams)
    keys = sorted((grams - heads) | long_grams(said, heads), key=lambda key: (-len(key), key))
    # A name of one word that is as common as a word is no title that somebody named: `name_of` refuses those.
    titles = tuple(key for key in keys if len(key.split(" ")) > HEAD_TOKENS or name_of(key) is not None)
    return Names(said=said, title_keys=titles[:TITLE_KEYS_MAX], entity_keys=asked_keys(text))


def _said(text: str) -> tuple[Said, ...]:
    return read_pieces(text, [((0, len(text)),)])


def _few(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in found if text.strip()))[:EXACT_MAX]


def _paths(text: str, quoted: tuple[str, ...]) -> Iterable[str]:
    """The query as a whole and what is quoted may hold blanks; other paths are words."""
    whole = text.strip()
    if whole.lower().endswith(_SUFFIX):
        yield whole
    yield from (said for said in quoted if "/" in said or said.lower().endswith(_SUFFIX))
    for found in _PATH.findall(text):
        bare = found.strip(".,;:!?()[]<>'")
        if not bare.startswith("#"):
            yield bare


def _with_suffix(path: str) -> tuple[str, ...]:
    bare = path.removeprefix("./").lstrip("/")
    return (bare,) if bare.lower().endswith((_SUFFIX, ".txt")) else (bare, bare + _SUFFIX)


@lru_cache(maxsize=16_384)
def _phrases(phrase: str) -> frozenset[str]:
    """A nested tag (`ops/payouts`) is said by its last part too."""
    parts = (phrase, phrase.rpartition("/")[2])
    return frozenset(key for part in parts for said in _said(part) if (key := " ".join(said.keys)))
