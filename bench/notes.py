"""Invented notes of a realistic length: seeded, no two alike, so that no vector can be reused.

Words are those that the shipped tokenizer knows whole, a few frequent and most rare as in any language. Notes gather
around subjects, as real ones do: words and meaning then find much the same notes.

A vault of more than 10,000 notes is not the same notes twenty times over: it has more subjects, about 25 notes each,
more codes, and more words (Heaps' law; joined of two, rare ones). So a note has as many neighbours as in a small vault,
a rare word is in some more notes, a frequent word and the most linked note have many more.
"""

from __future__ import annotations

import json
import random
import re
from functools import cache
from itertools import accumulate
from pathlib import Path

from indexers.embedders.factory import default_model_dir

#: Up to so many notes a vault has `TOPICS` subjects and `WORDS` words.
NOTES = 10_000
TOPICS = 400
TOPIC_WORDS = 8
#: Share of a note's words that belong to its subject.
TOPIC_SHARE = 0.2
WORDS = 6_000
#: Words grow with this power of the notes (Heaps' law; 0.44 to 0.61 in evaluation sets of 1,000 to 6,000 texts).
HEAPS = 0.5
KOREAN = (
    "부산에서 출발한 화물이 창고에 도착했다",
    "담당자는 월요일까지 정산을 끝내야 한다",
    "프린터가 멈추면 먼저 대기열을 비운다",
    "인증서는 구십 일마다 새로 발급한다",
)


def path(number: int) -> str:
    return f"area-{number % 23:02d}/note-{number:05d}.md"


def topics(count: int) -> int:
    return TOPICS * max(count, NOTES) // NOTES


def topic_of(number: int, count: int = NOTES) -> int:
    return number % topics(count)


def note(number: int, count: int) -> str:
    """About 170 words under three headings, two tags, two links; every tenth with Korean sentences."""
    rnd = random.Random(number)  # noqa: S311 - reproducible text, no secret
    subject, words = _subject(topic_of(number, count), count), _vocabulary(count)
    codes = range(1_000, 1_000 + 9 * max(count, NOTES) // 10)
    tags = ", ".join(rnd.sample(subject, 2))
    parts = [f"---\ntags: [{tags}]\n---\n# {_heading(rnd, subject, words)} {number:05d}\n"]
    for _ in range(3):
        sentences = [_sentence(rnd, subject, words, codes) for _ in range(rnd.randint(3, 5))]
        if number % 10 == 0:
            sentences.append(f"{rnd.choice(KOREAN)}.")
        parts.append(f"\n## {_heading(rnd, subject, words)}\n\n{' '.join(sentences)}\n")
    links = " and ".join(f"[[note-{rnd.randrange(count):05d}]]" for _ in range(2))
    return "".join([*parts, f"\nSee {links}.\n"])


def query(number: int, count: int = NOTES) -> str:
    """Three words of one subject among two others, as somebody might ask who half remembers."""
    rnd = random.Random(f"query {number}")  # noqa: S311 - see above
    subject = _subject(topic_of(number, count), count)
    words = [*rnd.sample(subject, 3), *_others(rnd, _vocabulary(count), 2)]
    rnd.shuffle(words)
    return " ".join(words)


def linked(number: int, count: int) -> list[int]:
    """About five of `count` notes: three of the same subject, any one, and one that many link to."""
    rnd = random.Random(f"links {number} {count}")  # noqa: S311 - see above
    alike = range(topic_of(number, count), count, topics(count))
    found = [*rnd.choices(alike, k=3), rnd.randrange(count), int(count * rnd.random() ** 4)]
    return [other for other in dict.fromkeys(found) if other != number]


def said_names(number: int, count: int = NOTES) -> list[str]:
    """About five words that count as names of entities: three of the subject, two of any, frequent ones often."""
    rnd = random.Random(f"names {number}")  # noqa: S311 - see above
    subject = _subject(topic_of(number, count), count)
    return list(dict.fromkeys([*rnd.sample(subject, 3), *_others(rnd, _vocabulary(count), 2)]))


def write_vault(root: Path, count: int, *, start: int = 0) -> None:
    for number in range(start, count):
        file = root / path(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(note(number, count), encoding="utf-8")


Vocabulary = tuple[list[str], list[float]]


def _vocabulary(count: int) -> Vocabulary:
    """Words in order of frequency, and their cumulated weights (Zipf's law)."""
    return _words(round(WORDS * (max(count, NOTES) / NOTES) ** HEAPS))


@cache
def _words(size: int) -> Vocabulary:
    tokenizer = json.loads((default_model_dir() / "tokenizer.json").read_bytes())
    whole = (re.fullmatch(r"▁([a-z]{4,12})", piece) for piece, _ in tokenizer["model"]["vocab"])
    rnd = random.Random("words")  # noqa: S311 - see above
    words = dict.fromkeys(rnd.sample(sorted(m[1] for m in whole if m), WORDS))
    first = list(words)
    while len(words) < size:
        words.setdefault("".join(rnd.sample(first, 2)))
    return list(words), list(accumulate(1 / (rank + 10) for rank in range(size)))


def _others(rnd: random.Random, vocabulary: Vocabulary, count: int) -> list[str]:
    words, weights = vocabulary
    return rnd.choices(words, cum_weights=weights, k=count)


def _subject(topic: int, count: int) -> list[str]:
    return _subject_words(topic, len(_vocabulary(count)[0]))


@cache
def _subject_words(topic: int, size: int) -> list[str]:
    return random.Random(f"topic {topic}").sample(_words(size)[0], TOPIC_WORDS)  # noqa: S311 - see above


def _heading(rnd: random.Random, subject: list[str], words: Vocabulary) -> str:
    return " ".join([rnd.choice(subject), *_others(rnd, words, 1)]).capitalize()


def _sentence(rnd: random.Random, subject: list[str], vocabulary: Vocabulary, codes: range) -> str:
    words = [
        rnd.choice(subject) if rnd.random() < TOPIC_SHARE else word
        for word in _others(rnd, vocabulary, rnd.randint(8, 14))
    ]
    words.insert(len(words) // 2, f"INC-{rnd.choice(codes)}")
    words[0] = words[0].capitalize()
    return f"{' '.join(words)}."
