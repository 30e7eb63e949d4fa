"""What is said about a note's words: one-line abstract, words and their stems, language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from markdown_it import MarkdownIt

ABSTRACT_CHARACTERS = 200
#: Longer prose is judged by its beginning: terms and language don't change with the tail of a log.
JUDGED_CHARACTERS = 200_000

_SPACE = re.compile(r"\s+")
#: A word, or a code whole: `ORA-01555`, `payment_retry`, `v1.2.3`.
TOKEN = re.compile(r"\w+(?:[-./:@+]\w+)*")
HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
_ENGLISH_STOP = frozenset(
    re.findall(
        r"\w+",
        "a about above after again all also am an and any are as at be because been before being "
        "below between both but by can cannot could did do does doing done down during each "
        "either else etc even every few for from further get got had has have having he her here "
        "hers him his how i if in into is it its itself just let like made make many may me might "
        "more most much must my new no nor not now of off on once one only or other our out over "
        "own per same see shall she should so some such than that the their them then there these "
        "they this those through to too two under until up upon us use used using very via was we "
        "were what when where which while who whom why will with within without would yes you "
        "your",
    )
)
_KOREAN_STOP = frozenset(
    re.findall(
        r"\w+",
        "그 그것 그리고 그러나 그런데 그래서 하지만 또는 또한 및 등 수 것 때 더 이 저 이것 저것 "
        "여기 거기 우리 나 너 있다 없다 하다 되다 이다 있는 없는 하는 되는 있습니다 없습니다 "
        "합니다 됩니다 입니다 위해 대한 통해 따라 있음 없음 경우 모든 같은 다른 다음 아래 위 매우 "
        "바로 이미 아직 다시 함께",
    )
)
#: Longest first: `에서는` before `에서` before `에`.
KOREAN_PARTICLES = tuple(
    sorted(
        re.findall(
            r"\w+",
            "은 는 이 가 을 를 에 의 와 과 도 만 로 으로 에서 에게 께 께서 한테 부터 까지 보다 처럼 "
            "마다 밖에 이나 나 이랑 랑 하고 에서는 에서도 에는 에도 에서의 으로는 으로도 으로의 로는 "
            "로도 로의 까지는 까지도 부터는 에게는 에게서 이라고 라고 이라는 라는 이며 이고 입니다 "
            "이다 들은 들이 들을 들의",
        ),
        key=lambda particle: (-len(particle), particle),
    )
)


def plain_text(content: str) -> str:
    """Inline Markdown without its marks, on one line. For short texts: headings, first paragraphs."""
    parts: list[str] = []
    for token in _EMPHASIS.parseInline(content[:4_000])[0].children or ():
        if token.type in ("text", "code_inline"):
            parts.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return _SPACE.sub(" ", "".join(parts)).strip()


def shorten(text: str, limit: int) -> str:
    """One line of at most `limit` characters, cut between words where there are any."""
    line = _SPACE.sub(" ", text).strip()
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    head = cut.rpartition(" ")[0] if line[limit - 1] != " " else cut
    return f"{(head if len(head) > limit // 2 else cut).rstrip()}…"


def strip_particle(word: str) -> str:
    """`부산에서` → `부산`; two syllables at least are left, so that `회의` stays whole."""
    if HANGUL.search(word) is None:
        return word
    for particle in KOREAN_PARTICLES:
        stem = word.removesuffix(particle)
        if stem != word and (len(stem) >= 2 or (stem and not HANGUL.search(stem))):
            return stem
    return word


def is_stop_word(word: str) -> bool:
    """`word`: case-folded."""
    return word in _ENGLISH_STOP or word in _KOREAN_STOP


def language(texts: Iterable[str]) -> str | None:
    """`ko` from a fifth of Hangul on, `en` where nearly all is Latin, else `other`; None without letters."""
    joined = unicodedata.normalize("NFC", " ".join(texts)[:JUDGED_CHARACTERS])
    letters = sum(map(str.isalpha, joined))
    if not letters:
        return None
    if len(HANGUL.findall(joined)) * 5 >= letters:
        return "ko"
    latin = len(re.findall(r"[A-Za-z]", joined))
    return "en" if latin * 10 >= letters * 9 else "other"


_EMPHASIS = MarkdownIt("commonmark", {"html": True}).enable("strikethrough")
