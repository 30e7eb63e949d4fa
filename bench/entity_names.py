"""Distinct names as notes of a company hold them: people, companies and services, some in Korean."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence


def _words(text: str) -> list[str]:
    return text.split()


_FIRST = _words(
    """Alice Amir Ana Anders Andrea Anna Antonio Astrid Aya Ben Bruno Camila Carlos Chloe Clara Daniel Daria David
Diego Elena Elif Emil Emma Erik Farid Felix Fiona Gabriel Grace Hannah Hana Hugo Ines Ingrid Isabel Ivan Jakob James
Jana Jin Joana Johan John Jonas Jorge Julia Karim Katarina Katherine Kenji Lara Laura Lena Leo Liam Lin Lucas Lucia
Luis Maja Marco Maria Marta Martin Mateo Maya Mei Michael Mila Mina Mohammed Nadia Natalia Nikolai Nina Noah Nora
Olga Oliver Omar Oscar Pablo Paul Pedro Petra Priya Rafael Raj Rania Robert Rosa Samir Sara Sofia Stefan Tomas Uma
Valentina Vera Victor Wei William Yara Yuki Yusuf Zoe"""
)
_ONSETS = _words("b br c ch d dr f fr g gr h j k kl l m n p pr r s sch sh st t tr v w z")
_VOWELS = _words("a e i o u ai ea ei ie oo ou")
_CODAS = _words("n r l s t m nd rt ll ck ng ld")
_ENDINGS = _words("son sen man ski ova berg feld stein ley ton well er ez ini ano i a o")
_FIELDS = _words(
    """Analytics Bank Capital Chemicals Consulting Dynamics Electric Energy Foods Freight Health Holdings
Industries Insurance Labs Logistics Marine Materials Media Mobility Networks Optics Partners Pharma Robotics Security
Shipping Software Solutions Steel Systems Textiles Trading Travel Ventures Works"""
)
_PARTS = _words(
    """account address alert archive asset audit auth backup basket batch billing cache calendar campaign card
catalog checkout claims config contact content contract credit customer dashboard delivery device discount dispatch
document email event export feature feedback fraud fulfilment gateway identity image import index ingest inventory
invoice journal key ledger licence loyalty mail market media menu metric notification offer order partner password
payment payout pricing product profile promotion purchase quota ranking rating receipt recommendation refund region
report request return review reward risk route sales schedule search session settlement shipment signal stock storage
subscription supplier survey tariff task tax template tenant ticket token tracking transfer translation usage user
vault vendor video voucher wallet warehouse webhook"""
)
_KINDS = _words("service api worker gateway store proxy scheduler importer exporter adapter engine stream")
_SYLLABLES = (
    "가나다라마바사아자하강건경고관광구국군규기길남노단대도동두라래로명모목문미민박백범병보봉부상서석선성"
    "세소송수순승시신안양연영오용우원유윤은이인일임장재전정제조종주준중지진창천철청춘치태평필한해현형호홍"
    "화환황훈희"
)


def distinct_names(count: int, kind: str, *, seed: int = 4) -> list[str]:
    """`kind`: people, companies, services or mixed."""
    rng = random.Random(seed)  # noqa: S311  # a reproducible corpus
    makers = {"people": [_person], "companies": [_company], "services": [_service]}
    makers["mixed"] = [*makers["people"], *makers["companies"], *makers["services"], _korean]
    found: dict[str, None] = {}
    for make in _cycle(makers[kind]):
        found[make(rng)] = None
        if len(found) == count:
            return list(found)
    raise AssertionError


def _cycle(makers: Sequence[Callable[[random.Random], str]]) -> Iterator[Callable[[random.Random], str]]:
    while True:
        yield from makers


def _person(rng: random.Random) -> str:
    middle = rng.choice(["", "", "", f"{rng.choice(_FIRST)} "])
    return f"{rng.choice(_FIRST)} {middle}{_surname(rng)}"


def _company(rng: random.Random) -> str:
    head = rng.choice(
        [_surname(rng), f"{_surname(rng)} & {_surname(rng)}", f"{_surname(rng)} {_surname(rng)}"]
    )
    return f"{head} {rng.choice(_FIELDS)} {rng.choice(['Ltd', 'Inc.', 'GmbH', ''])}".strip()


def _service(rng: random.Random) -> str:
    return "-".join([*rng.sample(_PARTS, rng.choice([2, 2, 3])), rng.choice(_KINDS)])


def _korean(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(3, 9)))


def _surname(rng: random.Random) -> str:
    """Few are frequent and most are rare, as they are."""
    common = random.Random(int(20_000 * rng.random() ** 2))  # noqa: S311 - seeded: the same names every time
    syllables = [
        common.choice(_ONSETS) + common.choice(_VOWELS) + common.choice(["", *_CODAS])
        for _ in range(common.randint(1, 2))
    ]
    return ("".join(syllables) + common.choice(_ENDINGS)).capitalize()
