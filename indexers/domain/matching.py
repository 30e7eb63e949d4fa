"""Which words of a query stand in which field of a document: what a keyword hit is explained by. Pure.

Words are compared as the index compares them (`indexers.domain.excerpts`): codes whole first, then by their
parts, because the index breaks words at `_`, `-` and `/` too; Korean and CJK by pairs of letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from indexers.domain.excerpts import CJK, MAX_TERMS, may_occur, occurs, query_terms
from indexers.domain.folding import nfc_fold

#: As many words as a search holds.
MAX_WORDS = 100
_PART = re.compile(r"[^\W_]+")
#: Letters that two forms of one word share; endings are what stemmers take off.
_SHARED, _ENDING = 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A word of the query, folded, or a part of it (`inc` of `inc-2041`), and the fields that hold it."""

    term: str
    fields: tuple[str, ...]
    part_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWords:
    """A query's words with their parts: made once a query, used for every document."""

    query: str
    #: Each word, and the parts that differ from it.
    parts: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, query: str) -> QueryWords:
        words = query_terms(query, limit=MAX_WORDS)
        return cls(
            query=query,
            parts={word: tuple(p for p in dict.fromkeys(_parts(word)) if p != word) for word in words},
        )

    @property
    def terms(self) -> tuple[str, ...]:
        """What an excerpt is chosen by: `query_terms` of the query."""
        return tuple(self.parts)[:MAX_TERMS]


def matched_words(query: str, fields: Mapping[str, str]) -> tuple[Match, ...]:
    return matched(QueryWords.of(query), {name: nfc_fold(text) for name, text in fields.items()})


def matched(words: QueryWords, folded: Mapping[str, str]) -> tuple[Match, ...]:
    """In the query's order, by folded fields. A word that stands whole in one may stand in part in others."""
    everything = "\n".join(folded.values())
    found = tuple(
        match for word, parts in words.parts.items() for match in _of_word(word, parts, folded, everything)
    )
    return found or tuple(match for word in words.parts for match in _alike(word, folded))


def _of_word(
    word: str, parts: tuple[str, ...], fields: Mapping[str, str], everything: str
) -> Iterator[Match]:
    whole = _holding(word, fields, everything)
    if whole:
        yield Match(term=word, fields=whole)
        return
    for part in parts:
        holding = _holding(part, fields, everything)
        if holding:
            yield Match(term=part, fields=holding, part_of=word)


def _holding(term: str, fields: Mapping[str, str], everything: str) -> tuple[str, ...]:
    """Most words of a query stand in no field: one plain search tells that of all of them."""
    if not may_occur(everything, term):
        return ()
    return tuple([name for name, text in fields.items() if occurs(text, term)])


def _parts(word: str) -> Iterator[str]:
    for part in _PART.findall(word):
        if CJK.search(part) and len(part) > 2:
            yield from (part[at : at + 2] for at in range(len(part) - 1))
        else:
            yield part


def _alike(word: str, fields: Mapping[str, str]) -> Iterator[Match]:
    """The engine's dictionary of English forms is larger than ours: words that share all but an ending."""
    if not word.isascii() or not word.isalpha() or len(word) < _SHARED:
        return
    begin = word[: max(_SHARED, len(word) - _ENDING)]
    pattern = re.compile(rf"(?<![^\W_]){begin}[a-z]{{0,{_ENDING + 3}}}(?![^\W_])")
    holding = tuple(name for name, text in fields.items() if pattern.search(text))
    if holding:
        yield Match(term=word, fields=holding)
