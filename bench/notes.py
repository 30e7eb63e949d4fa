"""Invented notes of a realistic length: seeded, no two alike, so that no vector can be reused."""

from __future__ import annotations

import random
from pathlib import Path

# fmt: off
NOUNS = (
    "harbour", "crane", "ledger", "tide", "rope", "barge", "pilot", "signal", "beacon", "cargo", "manifest",
    "quay", "winch", "anchor", "berth", "customs", "freight", "pallet", "route", "depot", "schedule",
    "tariff", "invoice", "carrier", "dock", "ferry", "hull", "keel", "lantern", "mooring", "printer",
    "scanner", "payout", "courier", "window", "address", "certificate", "snapshot", "replica", "partition",
    "offset", "consumer", "firmware", "label", "belt", "gateway", "tour", "bridge", "cache", "worker",
    "runbook", "incident", "rollback", "budget", "retry", "transfer", "settlement",
)
VERBS = (
    "moves", "holds", "checks", "prints", "routes", "loads", "settles", "refuses", "delays", "repeats",
    "stores", "opens", "closes", "measures", "sends",
)
# fmt: on
KOREAN = (
    "부산에서 출발한 화물이 창고에 도착했다",
    "담당자는 월요일까지 정산을 끝내야 한다",
    "프린터가 멈추면 먼저 대기열을 비운다",
    "인증서는 구십 일마다 새로 발급한다",
)


def path(number: int) -> str:
    return f"area-{number % 23:02d}/note-{number:05d}.md"


def note(number: int, count: int) -> str:
    """About 150 words under three headings, two tags, two links; every tenth with Korean sentences."""
    rnd = random.Random(number)  # noqa: S311 - reproducible text, no secret
    tags = ", ".join(rnd.sample(NOUNS, 2))
    parts = [f"---\ntags: [{tags}]\n---\n# {_phrase(rnd).capitalize()} {number:05d}\n"]
    for heading in range(3):
        sentences = [_sentence(rnd) for _ in range(rnd.randint(3, 5))]
        if number % 10 == 0:
            sentences.append(f"{rnd.choice(KOREAN)}.")
        parts.append(f"\n## {_phrase(rnd).capitalize()} {heading}\n\n{' '.join(sentences)}\n")
    links = " and ".join(f"[[note-{rnd.randrange(count):05d}]]" for _ in range(2))
    return "".join([*parts, f"\nSee {links}.\n"])


def query(number: int) -> str:
    """Words that many notes share, and a combination that was not asked before."""
    rnd = random.Random(f"query {number}")  # noqa: S311 - see above
    return f"{_phrase(rnd)} {rnd.choice(VERBS)} {_phrase(rnd)} {number}"


def write_vault(root: Path, count: int) -> None:
    for number in range(count):
        file = root / path(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(note(number, count), encoding="utf-8")


def _phrase(rnd: random.Random) -> str:
    return " ".join(rnd.sample(NOUNS, 2))


def _sentence(rnd: random.Random) -> str:
    middle = " and the ".join(f"{rnd.choice(NOUNS)} {rnd.choice(VERBS)}" for _ in range(2))
    code = f"INC-{rnd.randint(1000, 9999)}"
    return f"The {middle} the {_phrase(rnd)} before {code}, which {rnd.choice(VERBS)} {_phrase(rnd)}."
