"""Tokens of names and of the texts that say them. Pure.

A token is a run of letters and digits with their combining marks; `_`, `-`, `.`, quotes and all other signs stand
between tokens. Its key is NFKC and case-folded.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

#: Longer tokens are encoded blobs: no name, and no term of the index.
TOKEN_CHARACTERS = 100


def tokens_of(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Key, begin and end (code points) of each token between two places of the text."""
    for match in _token_pattern().finditer(text, start, end):
        key = _key(match[0])
        if 0 < len(key) <= TOKEN_CHARACTERS:
            yield key, match.start(), match.end()


@lru_cache(maxsize=65_536)
def _key(token: str) -> str:
    folded = token.lower() if token.isascii() else _fold(token)
    return sys.intern(folded)


def _fold(token: str) -> str:
    """NFKC may bring signs in (`½` holds a slash): they are no part of a key. Marks are, also at its beginning."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", token).casefold())
    return folded if _token_pattern().fullmatch(folded) else "".join(_kept_pattern().findall(folded))


@cache
def _token_pattern() -> re.Pattern[str]:
    """Letters and digits with the marks that belong to them: a word character of Python leaves out vowel signs."""
    return re.compile(rf"[^\W_](?:[^\W_]|[{_marks()}])*")


@cache
def _kept_pattern() -> re.Pattern[str]:
    return re.compile(rf"[^\W_]|[{_marks()}]")


@cache
def _marks() -> str:
    """All combining marks, as ranges of a character class."""
    marks: list[str] = []
    begin: int | None = None
    for code in (*range(0x300, 0x1F000), *range(0xE0100, 0xE01F1)):
        is_mark = unicodedata.category(chr(code))[0] == "M"
        if is_mark and begin is None:
            begin = code
        elif not is_mark and begin is not None:
            marks.append(f"\\U{begin:08x}-\\U{code - 1:08x}")
            begin = None
    return "".join(marks)
