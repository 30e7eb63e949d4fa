"""A name as it is compared: its key. Names of one label with equal keys are one name. Pure.

A key is a function of one surface and its label, never of other names. It takes away what a name wears in a
sentence (quotes, markup, articles, possessives, Korean particles) and what its owner may leave out (legal
forms, titles). It never takes away a letter of another script, and digits stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from indexers.domain.entities.particles import without_particle

#: What stands under these labels is written in one way only: punctuation tells two of them apart.
CODE_LABELS = frozenset({"code", "version", "path", "url", "host", "email"})
ORGANISATIONS = frozenset(
    {"organization", "organisation", "org", "company", "vendor", "customer", "supplier"}
)
PERSONS = frozenset({"person", "people", "employee", "author", "contact"})

_ARTICLES = frozenset({"the", "a", "an"})
_TITLES = frozenset({"dr", "mr", "mrs", "ms", "mx", "prof", "professor", "herr", "frau"})
_DEGREES = frozenset({"phd", "md", "msc", "mba"})
_COURTESIES = ("씨", "님", "さん")
_LEGAL_FORMS = frozenset({
    "ltd", "limited", "inc", "incorporated", "llc", "llp", "plc", "co", "company", "corp",
    "corporation", "pty", "pte", "gmbh", "ag", "kg", "kgaa", "ug", "ohg", "se", "sa",
    "sas", "sarl", "srl", "spa", "bv", "nv", "ab", "oy", "oyj", "aps", "kk", "ltda",
    "sro",
})  # fmt: skip
#: Longest first: they may stand before or behind the name, with or without a space.
_CJK_LEGAL_FORMS = (
    "股份有限公司", "有限责任公司", "유한책임회사", "주식회사", "유한회사", "재단법인", "사단법인",
    "株式会社", "有限会社", "合同会社", "有限公司",
)  # fmt: skip
#: ㈜ and ㈱ are these after NFKC.
_BRACKETED_FORM = re.compile(r"\(\s*(?:주|유|재|사|株|有)\s*\)")
_APOSTROPHES = re.compile("[\u2018\u2019\u201a\u201b\u02bc\u02b9\u2032`\u00b4\uff07]")
_POSSESSIVE = re.compile(r"(?:(?<=\w)'s|(?<=s)')(?=\W*$)")
_ACRONYM = re.compile(r"(?<!\w)(?:[^\W\d_]\.){2,}(?:[^\W\d_](?!\w))?")
#: Inside a word these belong to it (node.js, 1.2.3, a@b.c), the first two behind one as well (c++, c#). All else that
#: is no letter, digit or mark parts words.
_INNER = "+#.@"
_DOTS = re.compile(r"\.{2,}")
#: Hangul, Han and kana: spaces between them come and go.
_CJK = (
    r"\u1100-\u11ff\u3040-\u30ff\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    r"\uf900-\ufaff"
)
CJK_PATTERN = re.compile(f"[{_CJK}]")
_CJK_SPACE = re.compile(rf"(?<=[{_CJK}]) (?=[{_CJK}])")


@lru_cache(maxsize=65_536)
def name_key(surface: str, label: str) -> str:
    """'' when nothing of a name is left: no letter and no digit."""
    text = _folded(surface)
    if label in CODE_LABELS:
        return _code_key(text, label)
    text = _POSSESSIVE.sub("", _APOSTROPHES.sub("'", text))
    text = _BRACKETED_FORM.sub(" ", text) if label in ORGANISATIONS else text
    text = _ACRONYM.sub(lambda found: found[0].replace(".", ""), text)
    text = re.sub(r"(?<=\w)'(?=\w)", "", text).replace("&", " and ")
    words = _without_articles(_words(text), label)
    if words:
        words[-1] = without_particle(words[-1], person=label in PERSONS)
    if label in ORGANISATIONS:
        words = _without_legal_forms(words)
    if label in PERSONS:
        words = _without_titles(words)
    return _CJK_SPACE.sub("", " ".join(words))


def trim_particles(surface: str, label: str = "") -> str:
    """The surface up to its Korean particle: always a prefix of it, so that a span can be shortened."""
    composed = unicodedata.normalize("NFC", surface)
    particle = composed[len(without_particle(composed, person=label in PERSONS)) :]
    for written in (particle, unicodedata.normalize("NFD", particle)):
        if surface.endswith(written):
            return surface[: len(surface) - len(written)]
    return surface


def bare_words(text: str) -> list[str]:
    """The words of a name as its key has them, before anything is left out."""
    folded = _APOSTROPHES.sub("'", _folded(text))
    folded = _ACRONYM.sub(lambda found: found[0].replace(".", ""), folded)
    return _words(re.sub(r"(?<=\w)'(?=\w)", "", folded).replace("&", " and "))


def code_keys(token: str) -> tuple[str, ...]:
    """Keys of a token under the labels that are written in one way only; none for a plain word."""
    if token.isalpha():
        return ()
    folded = _folded(token).rstrip(".!?")
    return tuple(sorted({key for label in ("code", "version") if (key := _code_key(folded, label))}))


def _folded(surface: str) -> str:
    """Compatibility forms, case and invisible characters gone; composed."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", surface).casefold())
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


def _words(text: str) -> list[str]:
    kept = "".join(c if c.isalnum() or c in _INNER or _is_mark(c) else " " for c in _DOTS.sub(" ", text))
    return [word for part in kept.split() if (word := _bare(part)) and any(map(str.isalnum, word))]


def _is_mark(character: str) -> bool:
    """Vowel signs of many scripts are marks, no letters."""
    return not character.isascii() and unicodedata.category(character).startswith("M")


def _bare(word: str) -> str:
    """A leading dot is part of a name (.net), a last one ends a sentence or an abbreviation."""
    word = word.lstrip("+#@").rstrip(".@")
    return word.lstrip("+#@.") if word[1:2] in (*_INNER, "") else word


def _code_key(text: str, label: str) -> str:
    text = " ".join(text.split()).strip("'\"`*<>()[]{},;“”‘’ ")
    text = without_particle(text, person=False) if text[-1:] >= "\u3131" else text
    return re.sub(r"^v(?=\d)", "", text) if label == "version" else text


def _without_articles(words: list[str], label: str) -> list[str]:
    """`A Larsen` may be a person's initial."""
    articles = {"the"} if label in PERSONS else _ARTICLES
    at = 0
    while at < len(words) - 1 and words[at] in articles:
        at += 1
    return words[at:]


def _without_legal_forms(words: list[str]) -> list[str]:
    """Something of the name always stays: a firm may be called `The Limited`."""
    words = [bare for word in words for bare in [_without_cjk_form(word)] if bare] or words
    while len(words) > 1 and words[-1] in _LEGAL_FORMS | {"and"}:
        words = words[:-1]
    return words


def _without_cjk_form(word: str) -> str:
    for form in _CJK_LEGAL_FORMS:
        if word.startswith(form):
            return word.removeprefix(form)
        if word.endswith(form):
            return word.removesuffix(form)
    return word


def _without_titles(words: list[str]) -> list[str]:
    while len(words) > 1 and words[0] in _TITLES:
        words = words[1:]
    while len(words) > 1 and (words[-1] in _DEGREES or words[-1] in _COURTESIES):
        words = words[:-1]
    for courtesy in _COURTESIES:
        if words and words[-1].endswith(courtesy) and len(words[-1]) >= len(courtesy) + 2:
            return [*words[:-1], words[-1].removesuffix(courtesy)]
    return words
