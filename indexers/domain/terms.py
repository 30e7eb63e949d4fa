"""Content terms of a note: the words by which it can be told that two notes speak of the same things. Pure.

Nothing but the note decides, so a term's rarity isn't known; what tends to be rare counts for more: names, codes, words
of the title, long words. What says nothing (function words, small talk) is left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from indexers.domain.prose import HANGUL, JUDGED_CHARACTERS, TOKEN, is_stop_word, strip_particle

TERMS: Final = 20
_MAX_CHARACTERS: Final = 64
#: How much more a term counts that is a name or a code, and one that the title has.
_NAME: Final = 2.0
_TITLE: Final = 2.0
#: Per letter (a wide one is two), up to so many.
_LETTER: Final = 0.1
_LETTERS_MAX: Final = 12
#: A word that begins no sentence (or is quoted): with a capital letter it is a name.
_MID_SENTENCE = re.compile(rf"(?:(?<=[^\s.!?:] )|(?<=[(\[\"“‘]))({TOKEN.pattern})")
#: Common words that tell no two notes from any others, beside the stop words.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "able across actually almost along already although always amazing among another anything around "
        "ask asked awesome back bad based became become began begin best better big bring call called came "
        "certain change come coming common complete consider contain contains couldn course create day days "
        "definitely didn different doesn don early easy end ended enough especially ever everyone "
        "everything example fact far feel find first five follow following former found four full general "
        "give given glad going gone good great group guess hand happen happened happy hard having hear "
        "hello help hey high hold hope hour hours however idea important include included includes "
        "including instead isn keep kind knew know known large last late later least leave led left less "
        "life little living long look looking lot love main major make makes making maybe mean means might "
        "minute minutes month months name named need needed needs never next nice night nothing number "
        "often okay old open order others part particular people person place point possible present pretty "
        "probably put question quite rather read real really reason right run said saw say saying says "
        "second seem seems set several shouldn show side similar simple since small someone something "
        "sometimes soon sound sounds start started state states still stuff sure take taken talk tell thank "
        "thanks themselves thing things think thinking third thought three time times today together told "
        "tomorrow took totally toward towards tried try trying turn two type usually want wanted wants wasn "
        "way ways week weeks well went whether whole whose word words work world wouldn wow yeah year years "
        "yesterday yet",
    )
)
#: Endings of 하다 and 되다 behind a noun: `출항했다` → `출항`.
_VERB_ENDING = re.compile(
    r"(?:했습니다|하였습니다|했다|하였다|합니다|한다|하는|하여|해서|하고|하며|하면|하기|하지|했고|했으며|했던"
    r"|되었습니다|됐습니다|되었다|됐다|됩니다|된다|되는|되어|되며|되고|할|한|함|될|된|됨)$"
)
_NO_PLURAL = ("ss", "us", "is", "as")
#: `boxes`, `branches`, `addresses`: both letters go.
_LONG_PLURAL = ("sses", "xes", "ches", "shes")


def content_terms(texts: Iterable[str], *, title: str = "", limit: int = TERMS) -> tuple[str, ...]:
    """The weightiest words of content, folded, the first of them first; of equal ones that which stands first.

    `texts`: blocks of prose. Korean particles and endings and the English plural are taken off.
    """
    text = unicodedata.normalize("NFC", "\n".join(texts)[:JUDGED_CHARACTERS])
    named = {word.casefold() for word in _MID_SENTENCE.findall(text) if word[0].isupper()}
    titled = set(_terms_of(unicodedata.normalize("NFC", title)))
    weights: dict[str, float] = {}
    for word, count in Counter(TOKEN.findall(text.casefold())).items():
        term = _term(word)
        if term is not None:
            special = _NAME if word in named or not term.isalpha() else 1.0
            weights[term] = weights.get(term, 0.0) + count * special
    for term in weights:
        weights[term] *= (_TITLE if term in titled else 1.0) * (1 + _LETTER * _letters(term))
    return tuple(sorted(weights, key=lambda term: -weights[term])[:limit])


def _terms_of(text: str) -> Iterator[str]:
    for word in TOKEN.findall(text.casefold()):
        term = _term(word)
        if term is not None:
            yield term


def _term(word: str) -> str | None:
    """`word`: case-folded. None: no word of content."""
    term = strip_particle(word.strip("_"))
    if HANGUL.search(term):
        stem = _VERB_ENDING.sub("", term)
        term = stem if len(stem) != 1 else term
    else:
        term = _singular(term)
    if is_stop_word(term) or term in _COMMON or word in _COMMON or len(term) > _MAX_CHARACTERS:
        return None
    if not any(map(str.isalpha, term)):
        return None
    return term if len(term) >= (3 if term.isascii() else 2) else None


def _singular(word: str) -> str:
    if len(word) <= 4 or not (word.isascii() and word.isalpha()) or word.endswith(_NO_PLURAL):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(_LONG_PLURAL) else word.removesuffix("s")


def _letters(term: str) -> int:
    return min(len(term) * (1 if term.isascii() else 2), _LETTERS_MAX)
