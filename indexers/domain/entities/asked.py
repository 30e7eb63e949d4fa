"""Names that a question may say: the keys of its runs of words, whatever their label. Pure.

What a key leaves out at a name's ends (articles, titles, legal forms) needs no rule here: the run without it is
asked for as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from indexers.domain.entities.particles import without_particle
from indexers.domain.entities.spelling import CJK_PATTERN, bare_words, code_keys
from indexers.domain.prose import is_stop_word

#: Words of the longest name that is asked for, and of the part of a question that is read.
NAME_WORDS: Final = 6
QUESTION_WORDS: Final = 48
KEYS_MAX: Final = 200
_POSSESSIVE: Final = re.compile("['\u2019]s?\\W*$")
_COURTESY: Final = re.compile("(?<=..)(?:씨|님|さん)$")
_CJK_SPACE: Final = re.compile(rf"(?<={CJK_PATTERN.pattern}) (?={CJK_PATTERN.pattern})")


def asked_keys(question: str) -> tuple[str, ...]:
    """Each once, the longest names first; as many as `KEYS_MAX`."""
    words = [pair for token in question.split()[:QUESTION_WORDS] for pair in _words(token)]
    runs = ((start, end) for start in range(len(words)) for end in range(start + 1, start + NAME_WORDS + 1))
    keys = {
        key
        for start, end in runs
        if end <= len(words)
        for key in _run_keys(words, start, end)
        if len(key) > 1
    }
    keys |= {code for token in question.split()[:QUESTION_WORDS] for code in code_keys(token)}
    return tuple(sorted(keys, key=lambda key: (-len(key.split()), -len(key), key))[:KEYS_MAX])


#: A word inside a name, and as it may end one.
_Word = tuple[str, tuple[str, ...]]


def _words(token: str) -> Iterator[_Word]:
    plain = bare_words(token)
    bare = bare_words(_POSSESSIVE.sub("", token))
    for word in plain[:-1]:
        yield word, (word,)
    if plain:
        ends = dict.fromkeys((plain[-1], *bare[-1:]))
        yield plain[-1], tuple(dict.fromkeys(form for end in ends for form in _forms(end)))


def _forms(word: str) -> Iterator[str]:
    yield word
    if not word.isascii():
        for person in (False, True):
            stem = without_particle(word, person=person)
            yield stem
            yield _COURTESY.sub("", stem)


def _run_keys(words: list[_Word], start: int, end: int) -> Iterator[str]:
    """None begins or ends with a stop word, but for what is one word and a name all the same (`IT`: no)."""
    inside = [word for word, _ in words[start : end - 1]]
    for last in words[end - 1][1]:
        if not is_stop_word((inside or [last])[0]) and not is_stop_word(last):
            yield _CJK_SPACE.sub("", " ".join((*inside, last)))
