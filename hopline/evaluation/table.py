"""The report for people: aligned text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hopline.evaluation.configurations import DEFAULT
from hopline.evaluation.metrics import Estimate
from hopline.evaluation.results import MAIN, MEASURES, Measured, Report

_HEADINGS = {
    "recall@2": "R@2",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "precision@5": "P@5",
    "mrr@10": "MRR",
    "ndcg@10": "nDCG",
}
#: More types than anybody reads; the JSON has all.
_TYPES_MAX = 40


def as_text(report: Report) -> str:
    left = f", {report.unjudged} without a right document left out" if report.unjudged else ""
    held = f"{report.indexed} of {report.documents} documents indexed"
    asked = f"{report.questions} question{'' if report.questions == 1 else 's'}"
    lines = [f"{report.set_name}: {asked}{left}; {held}"]
    lines += ["", *_aligned([_heading(report), *(_row(measured) for measured in report.configurations)])]
    lines += ["", f"R@5 with its {report.confidence:.0%} interval; all but times and tokens in per cent."]
    kinds = list(dict.fromkeys(kind for measured in report.configurations for kind in measured.types))
    if len(kinds) > 1:
        lines += [
            "",
            "R@5 by type of question (their number)",
            *_aligned(_by_type(report, kinds[:_TYPES_MAX])),
        ]
    staged = _most_staged(report)
    if staged is not None:
        lines += ["", f"Candidates by stage, {staged.name}", *_aligned(_stages(staged))]
    return "\n".join(lines)


def _heading(report: Report) -> list[str]:
    context = ["tokens", "answer"] if report.context_budget else []
    return ["", *_HEADINGS.values(), "p50 ms", "p95 ms", "stale", "unwell", *context]


def _row(measured: Measured) -> list[str]:
    cells = [_percent(measured.all[name], interval=name == MAIN) for name in MEASURES]
    times = [_number(measured.latency_ms_p50), _number(measured.latency_ms_p95)]
    shares = [_share(measured.stale), _share(measured.low_health)]
    return [
        measured.name,
        *cells,
        *times,
        *shares,
        _number(measured.context_tokens.mean),
        _percent(measured.answer_in_context),
    ]


def _by_type(report: Report, kinds: Sequence[str]) -> list[list[str]]:
    first = report.configurations[0]
    rows = [
        [
            f"{kind} ({first.types[kind][MAIN].count})",
            *(_percent(m.types[kind][MAIN]) for m in report.configurations),
        ]
        for kind in kinds
    ]
    return [["", *(measured.name for measured in report.configurations)], *rows]


def _most_staged(report: Report) -> Measured | None:
    """`default` where it was asked, else the configuration with most stages on, of equal ones the last."""
    staged = [measured for measured in report.configurations if measured.stages]
    return max(
        reversed(staged),
        key=lambda measured: (measured.name == DEFAULT, sum(stage.on for stage in measured.stages)),
        default=None,
    )


def _stages(measured: Measured) -> list[list[str]]:
    rows = [
        [
            s.stage + ("" if s.on else " (off)"),
            f"{s.candidates_in:.1f}",
            f"{s.candidates_out:.1f}",
            f"{s.ms:.2f}",
        ]
        for s in measured.stages
    ]
    return [["", "in", "out", "ms"], *rows]


def _percent(found: Estimate, *, interval: bool = False) -> str:
    if found.mean is None or found.low is None or found.high is None:
        return "–"
    borders = f" [{100 * found.low:.0f}–{100 * found.high:.0f}]" if interval else ""
    return f"{100 * found.mean:.1f}{borders}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """The first column to the left, numbers to the right; the heading says how many columns are shown."""
    rows = list(rows)
    width = len(rows[0])
    sizes = [max(len(row[column]) for row in rows) for column in range(width)]
    return [
        "  ".join([row[0].ljust(sizes[0]), *(row[n].rjust(sizes[n]) for n in range(1, width))]).rstrip()
        for row in rows
    ]
