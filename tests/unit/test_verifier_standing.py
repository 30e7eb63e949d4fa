"""A difference counts where two looks saw it: what only one saw was work under way."""

from __future__ import annotations

from indexers.verify.report import FINDINGS_MAX, Kind, VerifyReport
from streams.verifier.standing import standing


def report(*findings: tuple[Kind, str]) -> VerifyReport:
    made = VerifyReport(root="notes")
    for kind, where in findings:
        made.add(kind, where, "whatever the look says")
    return made


def test_only_what_both_name_stands() -> None:
    first = report(("missing_document", "a.md"), ("missing_document", "b.md"), ("stale_chunk", "c.md"))
    second = report(("missing_document", "b.md"), ("missing_document", "d.md"), ("stale_chunk", "e.md"))
    assert standing(first, second) == {"missing_document": 1}
    assert standing(first, report()) == {}


def test_the_same_twice_stands_twice() -> None:
    twice = report(("missing_link", "a.md"), ("missing_link", "a.md"))
    assert standing(twice, twice) == {"missing_link": 2}
    assert standing(twice, report(("missing_link", "a.md"))) == {"missing_link": 1}


def test_what_is_counted_and_not_named_stands_as_far_as_both_count_it() -> None:
    many = report(*(("orphan_gate", f"{n}") for n in range(FINDINGS_MAX + 5)), ("stale_gate", "x"))
    other = report(*(("orphan_gate", f"{n}") for n in range(3)), ("wrong_count", "y"))
    assert standing(many, other) == {"orphan_gate": 3}
