"""Invented notes for tests that need many: seeded, linked, each with a word of its own."""

from __future__ import annotations

import random
from pathlib import Path

WORDS = """
harbour crane ledger tide rope barge pilot signal beacon cargo manifest quay winch anchor berth customs freight
pallet route depot schedule tariff invoice carrier dock ferry hull keel lantern mooring
""".split()  # noqa: SIM905 - a list of thirty quoted words reads worse
KOREAN = "부산에서 출항한 배는 창고에 화물을 내렸다 담당자는 김서연이고 정산은 월요일에 끝난다".split()  # noqa: SIM905 - as above


def own_word(number: int) -> str:
    """A word that only this note says."""
    return f"zq{number:05d}x"


def note(number: int, count: int, seed: int = 0) -> str:
    rnd = random.Random(f"{seed}/{number}")  # noqa: S311 - reproducible text, no secret
    body = " ".join(rnd.choices(WORDS + KOREAN, k=rnd.randint(15, 40)))
    links = " ".join(f"[[note-{rnd.randrange(count * 11 // 10):05d}]]" for _ in range(rnd.randint(0, 3)))
    tags = f"[{rnd.choice(WORDS)}, {rnd.choice(WORDS)}]"
    return f"---\ntags: {tags}\n---\n# Note {number:05d}\n\n{own_word(number)} {body}.\n\nSee {links}\n"


def path(number: int) -> str:
    return f"folder-{number % 17:02d}/note-{number:05d}.md"


def write(root: Path, number: int, count: int, seed: int = 0) -> None:
    file = root / path(number)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(note(number, count, seed), encoding="utf-8")
