"""When two names are one: their keys, how alike they are, and what may be compared at all. Pure.

Names with equal keys are one name. Names with different keys join by likeness, or are proposed to a curator, only
within one block: equal initials of their words (or both CJK) and equal codes (words with digits). Names that differ
in spaces or dots alone join as well. Names without a block (short ones, acronyms among them; codes, paths and
addresses; a person's lone given name) need equal keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from rapidfuzz.distance import Levenshtein

from indexers.domain.entities.spelling import CJK_PATTERN, CODE_LABELS, PERSONS, name_key, trim_particles

__all__ = [
    "Comparison", "NameShape", "Verdict", "block_of", "compare", "like_lengths", "minimum_shared", "name_key", "order",
    "parted", "shape_of", "trim_particles", "unspaced",
]  # fmt: skip

#: Similarity is 1 - Levenshtein distance / length of the longer key, without the codes.
JOINS_ABOVE = 0.85
PROPOSES_FROM = 0.75
#: Shorter keys need equality: with six letters one edit is already under 0.85, and acronyms are shorter still.
LETTERS_MIN = 7
#: A longer key is no name: it is compared by equality only.
LETTERS_MAX = 200
#: Two words are spellings of one another from here on; shorter ones, like short names, need equality.
_WORD_LIKENESS = 0.8
_PERSON_LETTERS = 8


class Verdict(StrEnum):
    JOIN = "join"
    PROPOSE = "propose"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    verdict: Verdict
    similarity: float
    #: `similar` or `conflicting_tokens` for proposals, else ''.
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameShape:
    """What similar names are found by. Without a block there is nothing to find, and no grams."""

    #: First the name without spaces and dots; then its pairs of letters, each behind the block, so that the terms of
    #: an index part the blocks.
    grams: tuple[str, ...]
    block: str | None
    #: Of the key without its codes, code points.
    length: int


DIFFERENT = Comparison(verdict=Verdict.DIFFERENT, similarity=0.0)


@lru_cache(maxsize=65_536)
def shape_of(key: str, label: str) -> NameShape:
    text, codes = parted(key)
    block = block_of(key, label)
    if block is None:
        return NameShape(grams=(), block=None, length=len(text))
    grams = sorted({f"{block}\t{text[at : at + 2]}" for at in range(len(text) - 1)})
    return NameShape(grams=(_joined(text, codes), *grams), block=block, length=len(text))


@lru_cache(maxsize=65_536)
def compare(key: str, other: str, label: str) -> Comparison:
    """Of two keys of one label, in either order. Equal keys are one name and JOIN."""
    if key == other:
        return Comparison(verdict=Verdict.JOIN, similarity=1.0)
    shape, other_shape = shape_of(key, label), shape_of(other, label)
    if shape.block is None or other_shape.block is None:
        return DIFFERENT
    text, other_text = parted(key)[0], parted(other)[0]
    if shape.grams[0] == other_shape.grams[0]:
        similarity = Levenshtein.normalized_similarity(text, other_text)
        return Comparison(verdict=Verdict.JOIN, similarity=similarity)
    if shape.block != other_shape.block:
        return DIFFERENT
    return _by_likeness(text, other_text, person=label in PERSONS)


@lru_cache(maxsize=65_536)
def parted(key: str) -> tuple[str, str]:
    """The words without digits, and those with."""
    if not any(map(str.isdigit, key)):
        return key, ""
    words = key.split()
    codes = [word for word in words if any(map(str.isdigit, word))]
    return " ".join(w for w in words if w not in codes), " ".join(codes)


@lru_cache(maxsize=65_536)
def block_of(key: str, label: str) -> str | None:
    """See `NameShape`."""
    text, codes = parted(key)
    if label in CODE_LABELS or not LETTERS_MIN <= len(text) <= LETTERS_MAX:
        return None
    if label in PERSONS and " " not in text:
        return None
    if CJK_PATTERN.search(text):
        return f"cjk {codes}".rstrip()
    initials = "".join(word[0] for word in text.split())
    return f"{initials} {codes}".rstrip()


def order(key: str) -> tuple[int, str]:
    """The fixed order of names: longer ones first, as they say more; then by code points."""
    return (-len(key), key)


def minimum_shared(shape: NameShape) -> int:
    """Pairs of letters that a name shares at least with every name that it joins or is proposed to.

    (But for names that differ in spaces and dots, which are found by the first gram.) An edit changes at most two
    pairs of letters (an inserted letter: one), and the others stand in both texts. The other text may be longer by k
    letters: then k of the edits are insertions. So at most 2·edits - k of the pairs are lost, with edits ≤ (1 - 0.75)
    · (length + k); k = 0..length / 3, as 0.75 is not reached beyond.
    """
    length = shape.length
    lost = max(2 * ((length + k) // 4) - k for k in range(length // 3 + 1))
    return max(1, len(shape.grams) - 1 - lost)


def like_lengths(shape: NameShape) -> tuple[int, int]:
    """Shortest and longest of the names that it joins or is proposed to, but for those found by the first gram.

    As many edits as the lengths differ by are needed, and a quarter of the longer one's length is allowed.
    """
    return (-(-3 * shape.length // 4), 4 * shape.length // 3)


def unspaced(key: str) -> str:
    """Without what comes and goes: elastic search, node.js. Names that are equal so join, if they have a block."""
    text, codes = parted(key)
    return _joined(text, codes)


def _by_likeness(text: str, other: str, *, person: bool) -> Comparison:
    similarity = Levenshtein.normalized_similarity(text, other, score_cutoff=PROPOSES_FROM)
    if similarity < PROPOSES_FROM:
        return DIFFERENT
    if similarity <= JOINS_ABOVE:
        return Comparison(verdict=Verdict.PROPOSE, similarity=similarity, reason="similar")
    if _conflicting(text.split(), other.split(), person=person):
        return Comparison(verdict=Verdict.PROPOSE, similarity=similarity, reason="conflicting_tokens")
    return Comparison(verdict=Verdict.JOIN, similarity=similarity)


def _joined(text: str, codes: str) -> str:
    return f"{text.replace(' ', '').replace('.', '')}\t{codes}"


def _conflicting(words: list[str], others: list[str], *, person: bool) -> bool:
    """Whether a pair of words in the same place is two words rather than two spellings of one."""
    if len(words) != len(others):
        return True
    return any(
        word != other and not _spellings(word, other, person=person)
        for word, other in zip(words, others, strict=True)
    )


def _spellings(word: str, other: str, *, person: bool) -> bool:
    """Letters of CJK are syllables or words, so another one is another word."""
    if CJK_PATTERN.search(word) or CJK_PATTERN.search(other):
        return False
    if f"{word}s" == other or f"{other}s" == word:
        return not person
    if min(len(word), len(other)) < (_PERSON_LETTERS if person else LETTERS_MIN):
        return False
    # Martin and Martina, Christine and Christina are two people.
    if person and word[-1] != other[-1]:
        return False
    return Levenshtein.normalized_similarity(word, other) >= _WORD_LIKENESS
