"""Titles and aliases as names, and where a text says them: exact after normalisation, no model, no likeness. Pure.

A name is the sequence of its tokens' keys (`name_tokens`); a text says a name where these keys follow one another
within one piece of prose. In the text the last token may carry a Korean particle (`결제팀은` says `결제팀`). Of several
names at one place the one with most tokens is meant, then the longest; the text is read from left to right and no
token belongs to two names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from indexers.domain.entities.particles import without_particle
from indexers.domain.name_tokens import tokens_of
from indexers.domain.prose import is_stop_word

#: The type of an edge that such a name makes.
UNLINKED_MENTION = "unlinked_mention"
#: Names of up to this many tokens are looked up whole, longer ones by their beginnings.
HEAD_TOKENS = 3
#: A lookup key holds no more tokens than this; what a longer name says beyond is compared in the text.
KEY_TOKENS = 12
#: Characters of a name in all its tokens, and fewer where it holds a script of syllables or words.
NAME_CHARACTERS = 4
NAME_CHARACTERS_CJK = 2
#: Ends the key of a head, so that it is no name's. No token holds a blank or this sign.
_HEAD_MARK = " +"
#: Ends a stem in the indexed text: it may be the last token of a name and none before it.
_STEM_MARK = "~"
#: Between a token and its stem, which stand at one position of the indexed text.
POSITION_MARK = "|"
#: Between pieces of prose.
BREAK = "/"
_CJK = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
#: Brackets at the end of a title, with something before them.
_QUALIFIER = re.compile(r"(?<=\S)\s*[(（][^()（）]*[)）]\s*\Z")
_HANGUL_END = re.compile(r"[\uac00-\ud7a3]\Z")

Span = tuple[int, int]
#: A piece of prose: spans of the text, in order, without what is no prose.
Piece = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """The tokens of one piece of prose: keys, and where each stands in the text (code points)."""

    keys: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    start: int
    end: int


def read_pieces(text: str, pieces: Iterable[Piece]) -> tuple[Said, ...]:
    """Tokens of the prose of a text; pieces without any are left out."""
    found: list[Said] = []
    for piece in pieces:
        tokens = [token for start, end in piece for token in tokens_of(text, start, end)]
        if tokens:
            found.append(Said(*map(tuple, zip(*tokens, strict=True))))
    return tuple(found)


def name_of(title: str) -> str | None:
    """The name's key, its tokens joined by blanks; None for what would be found everywhere and mean nothing.

    A name holds a letter, has four characters (two with Hangul, kana or Han), and more than stop words.
    """
    keys = [key for key, _, _ in tokens_of(title, 0, len(title))]
    joined = "".join(keys)
    least = NAME_CHARACTERS_CJK if _CJK.search(joined) else NAME_CHARACTERS
    if len(joined) < least or not any(map(str.isalpha, joined)) or all(map(is_stop_word, keys)):
        return None
    return " ".join(keys)


def names_of(title: str, aliases: Iterable[str]) -> tuple[str, ...]:
    """All names of a document, in order.

    What stands in brackets at the end tells a title from others of its kind (`Ebb (song)`, `결제팀（서울）`), and no
    text says it: the title without it is a name too.
    """
    said = [form for one in (title, *aliases) for form in (one, _QUALIFIER.sub("", one))]
    return tuple(sorted({name for form in said if (name := name_of(form)) is not None}))


def name_keys(names: Iterable[str]) -> tuple[str, ...]:
    """What the index keeps of a document's names: `lookup_key` of each, and of longer ones `head_key` too."""
    keys: set[str] = set()
    for name in names:
        tokens = name.split(" ")
        keys.add(" ".join(tokens[:KEY_TOKENS]))
        if len(tokens) > HEAD_TOKENS:
            keys.add(_head(tokens[:HEAD_TOKENS]))
    return tuple(sorted(keys))


def lookup_key(name: str) -> str:
    return " ".join(name.split(" ")[:KEY_TOKENS])


def short_grams(said: Sequence[Said]) -> set[str]:
    """Keys under which the names of up to `HEAD_TOKENS` tokens stand that the text may say, and heads of others."""
    grams: set[str] = set()
    for piece in said:
        keys = piece.keys
        for at, key in enumerate(keys):
            for before in range(min(HEAD_TOKENS, at + 1)):
                start = keys[at - before : at]
                grams.update(" ".join((*start, last)) for last in _forms(key))
            if at + 1 >= HEAD_TOKENS:
                grams.add(_head(keys[at + 1 - HEAD_TOKENS : at + 1]))
    return grams


def long_grams(said: Sequence[Said], heads: Collection[str]) -> set[str]:
    """Lookup keys of the longer names that begin with one of these heads."""
    grams: set[str] = set()
    for piece in said:
        keys = piece.keys
        for at in range(len(keys) - HEAD_TOKENS):
            if _head(keys[at : at + HEAD_TOKENS]) not in heads:
                continue
            for end in range(at + HEAD_TOKENS, min(at + KEY_TOKENS, len(keys))):
                start = keys[at:end]
                grams.update(" ".join((*start, last)) for last in _forms(keys[end]))
    return grams


def heads_among(keys: Iterable[str]) -> set[str]:
    return {key for key in keys if key.endswith(_HEAD_MARK)}


class NameSet:
    """Names made ready to be looked for in many texts."""

    def __init__(self, names: Iterable[str]) -> None:
        self._begins: dict[str, list[tuple[str, ...]]] = {}
        for name in names:
            tokens = tuple(name.split(" "))
            self._begins.setdefault(tokens[0], []).append(tokens)

    def said_in(self, said: Sequence[Said]) -> set[str]:
        """Names that the text says, also within or across one another."""
        return {
            " ".join(tokens)
            for piece in said
            for at in range(len(piece.keys))
            for tokens in self._names_at(piece.keys, at)
        }

    def places_in(self, said: Sequence[Said]) -> list[Place]:
        """Where the text says names: longest first, from left to right, no token twice."""
        found: list[Place] = []
        for piece in said:
            at = 0
            while at < len(piece.keys):
                best = max(self._names_at(piece.keys, at), key=_length, default=None)
                if best is None:
                    at += 1
                    continue
                end = at + len(best)
                found.append(Place(" ".join(best), piece.starts[at], _end(piece, end - 1, best[-1])))
                at = end
        return found

    def _names_at(self, keys: Sequence[str], at: int) -> Iterator[tuple[str, ...]]:
        for form in _forms(keys[at]):
            for tokens in self._begins.get(form, ()):
                end = at + len(tokens)
                if (
                    end <= len(keys)
                    and tokens[-1] in _forms(keys[end - 1])
                    and (len(tokens) == 1 or tokens[:-1] == tuple(keys[at : end - 1]))
                ):
                    yield tokens


def indexed_text(said: Sequence[Said]) -> str:
    """The prose as the index searches it for phrases (analyzer `hopline_names`)."""
    return f" {BREAK} ".join(" ".join(map(_indexed, piece.keys)) for piece in said)


def phrases(name: str) -> tuple[str, ...]:
    """Phrases of the indexed text: a text says the name exactly where one of these stands."""
    return (name, f"{name}{_STEM_MARK}")


@lru_cache(maxsize=65_536)
def _forms(key: str) -> tuple[str, ...]:
    """A token as it may end a name: whole, and without the particle behind it."""
    if not _HANGUL_END.search(key):
        return (key,)
    stem = without_particle(key, person=False)
    return (key,) if stem == key else (key, stem)


def _indexed(key: str) -> str:
    whole, *stems = _forms(key)
    return POSITION_MARK.join((whole, *(f"{stem}{_STEM_MARK}" for stem in stems)))


def _end(piece: Said, at: int, last: str) -> int:
    """Where the name's last token ends; a particle behind it is no part of the name."""
    key, start, end = piece.keys[at], piece.starts[at], piece.ends[at]
    return end if end - start != len(key) else start + len(last)


def _head(tokens: Sequence[str]) -> str:
    return " ".join(tokens) + _HEAD_MARK


def _length(tokens: tuple[str, ...]) -> tuple[int, int]:
    return len(tokens), len(tokens[-1])
