"""What of two looks stands: a difference that only one of them saw was work under way. Pure."""

from __future__ import annotations

from collections import Counter

from indexers.verify.report import VerifyReport


def standing(first: VerifyReport, second: VerifyReport) -> Counter[str]:
    """Differences by kind that both reports of one root name.

    Where a report counts more than it names, no kind has more than either counts.
    """
    if _is_cut(first) or _is_cut(second):
        return first.counts & second.counts
    both = _named(first) & _named(second)
    return Counter(kind for kind, _ in both.elements())


def _named(report: VerifyReport) -> Counter[tuple[str, str]]:
    return Counter((finding.kind, finding.where) for finding in report.findings)


def _is_cut(report: VerifyReport) -> bool:
    return report.counts.total() > len(report.findings)
