"""Korean particles behind a name (부산에서 → 부산). Pure.

What is one is decided by the single name, so some stay undecided: see `docs/explanation/entities.md`. The rules:
particles of two syllables and more first; a particle of one syllable only where the sound before it allows it (은
이 을 과 follow a final consonant, 는 가 를 와 a vowel); two syllables of the name always stay. 도, 만 and 로 end
too many names (제주도, 멕시코만, 충무로) and are taken off only where they follow Latin letters or digits. A
person's name is mostly three syllables, and many end in 은 or 이 (김정은), so three must stay before these.
"""

from __future__ import annotations

#: Longest first.
_LONG = (
    "까지는", "까지도", "까지의", "부터는", "부터의", "에게는", "에게도", "에게서",
    "에서는", "에서도", "에서만", "에서의", "으로는", "으로도", "으로서", "으로써",
    "으로의", "이라고", "이라는", "이었다", "입니다", "과는", "과의", "까지",
    "께서", "부터", "에게", "에는", "에도", "에서", "에의", "와는", "와의",
    "으로", "처럼", "한테",
)  # fmt: skip
_AFTER_CONSONANT = frozenset("은이을과")
_AFTER_VOWEL = frozenset("는가를와")
_AFTER_BOTH = frozenset("에의")
#: Not after Hangul.
_AFTER_LATIN_ALONE = frozenset("도만로")
_SHORT = _AFTER_CONSONANT | _AFTER_VOWEL | _AFTER_BOTH
_NAME_MIN = 2
_PERSON_MIN = 3
_ENDS_OF_PERSONS = frozenset("은이")
#: Nouns whose last syllable looks like a particle; behind another word they are part of a name.
_NOUNS = (
    "회의",
    "주의",
    "합의",
    "논의",
    "협의",
    "심의",
    "문의",
    "질의",
    "건의",
    "결의",
    "학과",
    "휴가",
    "추가",
    "허가",
)
_WHOLE_NOUNS = frozenset({"어린이", "고양이", "호랑이", "원숭이", "젊은이", "투자가"})


def without_particle(word: str, *, person: bool) -> str:
    """`word`: composed; its last word is looked at."""
    last = word.rsplit(maxsplit=1)[-1] if word.strip() else ""
    if not last or not _hangul(word[-1]) or last in _WHOLE_NOUNS:
        return word
    for particle in _LONG:
        if last.endswith(particle) and _may_lose(last, particle, person=person):
            return word[: -len(particle)]
    if last[-1] in _SHORT | _AFTER_LATIN_ALONE and _may_lose(last, last[-1], person=person):
        return word[:-1]
    return word


def _may_lose(last: str, particle: str, *, person: bool) -> bool:
    stem = last[: -len(particle)]
    if not stem or not stem[-1].isalnum():
        return False
    if not _hangul(stem[-1]):
        return stem[-1].isascii() or len(stem) >= _NAME_MIN
    if len(stem) < _NAME_MIN or particle in _AFTER_LATIN_ALONE:
        return False
    if last.endswith(_NOUNS) and len(stem) > _NAME_MIN:
        return False
    if person and particle in _ENDS_OF_PERSONS and len(stem) < _PERSON_MIN:
        return False
    return _sounds_right(stem[-1], particle)


def _sounds_right(before: str, particle: str) -> bool:
    """By the final consonant of the syllable before: (code - 0xAC00) mod 28 is 0 without one (Unicode 3.12)."""
    consonant = (ord(before) - 0xAC00) % 28 != 0
    first = particle[0]
    if first in _AFTER_CONSONANT or particle.startswith(("으로", "입니다")):
        return consonant or particle.startswith("입니다")
    if first in _AFTER_VOWEL:
        return not consonant
    return True


def _hangul(character: str) -> bool:
    return "가" <= character <= "힣"
