from __future__ import annotations

import pytest

from indexers.domain.matching import Match, matched_words

FIELDS = {
    "title": "Retry storm",
    "tags": "audit inc",
    "path": "codes/incident-2042.md",
    "body": "INC-2042 broke payment_retry.\n시험선은 부산에서 출항했다. The dock was repaired and ran dry.",
}


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("INC-2042", (Match(term="inc-2042", fields=("body",)),)),
        ("INC-2041", (Match(term="inc", fields=("tags", "body"), part_of="inc-2041"),)),
        ("payment_retry", (Match(term="payment_retry", fields=("body",)),)),
        (
            "payment_storm absent",
            (
                Match(term="payment", fields=("body",), part_of="payment_storm"),
                Match(term="storm", fields=("title",), part_of="payment_storm"),
            ),
        ),
        (
            "incidents Audit",
            (Match(term="incidents", fields=("path",)), Match(term="audit", fields=("tags",))),
        ),
        ("부산에서", (Match(term="부산", fields=("body",)),)),
        ("부산타워", (Match(term="부산", fields=("body",), part_of="부산타워"),)),
        ("running docks", (Match(term="running", fields=("body",)), Match(term="docks", fields=("body",)))),
        ("reparations", ()),
        ("repairable", (Match(term="repairable", fields=("body",)),)),
        ("absent", ()),
        ("", ()),
    ],
)
def test_the_words_that_matched_and_the_fields_that_hold_them(query: str, matches: tuple[Match, ...]) -> None:
    assert matched_words(query, FIELDS) == matches
