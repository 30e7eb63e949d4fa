"""Recall of every configuration with its confidence interval, as an SVG: one panel for all, one for each type. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from hopline.evaluation.metrics import Estimate
from hopline.evaluation.results import MAIN, Report

_LABEL, _BAR, _VALUE, _MARGIN = 150, 420, 60, 20
_ROW, _TITLE, _AXIS = 22, 34, 26
_WIDTH = _MARGIN * 2 + _LABEL + _BAR + _VALUE
_TYPES_MAX = 12


def as_svg(report: Report) -> str:
    """Bars from 0 to 100 %, whiskers of the interval."""
    panels = _panels(report)
    heights = [_TITLE + _ROW * len(bars) + _AXIS for bars in panels.values()]
    height = sum(heights) + 2 * _MARGIN
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    top = _MARGIN
    for (title, bars), used in zip(panels.items(), heights, strict=True):
        parts += _panel(title, bars, top)
        top += used
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panels(report: Report) -> dict[str, dict[str, Estimate]]:
    whole = f"{report.set_name}: {MAIN}, {report.questions} questions, {report.confidence:.0%} intervals"
    panels = {whole: {m.name: m.all[MAIN] for m in report.configurations}}
    kinds = list(dict.fromkeys(kind for m in report.configurations for kind in m.types))
    if 1 < len(kinds) <= _TYPES_MAX:
        for kind in kinds:
            bars = {m.name: m.types[kind][MAIN] for m in report.configurations}
            count = next(iter(bars.values())).count
            panels[f"{kind} ({count} questions)"] = bars
    return panels


def _panel(title: str, bars: Mapping[str, Estimate], top: int) -> Iterator[str]:
    left = _MARGIN + _LABEL
    yield f'<text x="{_MARGIN}" y="{top + 18}" font-size="14" font-weight="bold">{escape(title)}</text>'
    first = top + _TITLE
    bottom = first + _ROW * len(bars)
    for share in (0, 25, 50, 75, 100):
        x = left + _BAR * share / 100
        yield f'<line x1="{x:.1f}" y1="{first}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle" fill="#555">{share}</text>'
    for number, (name, found) in enumerate(bars.items()):
        yield from _bar(name, found, left, first + _ROW * number)


def _bar(name: str, found: Estimate, left: int, top: int) -> Iterator[str]:
    middle = top + _ROW / 2
    yield f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end">{escape(name)}</text>'
    if found.mean is None or found.low is None or found.high is None:
        return
    width, low, high = (_BAR * value for value in (found.mean, found.low, found.high))
    yield f'<rect x="{left}" y="{top + 4}" width="{width:.1f}" height="{_ROW - 8}" fill="#4878a8"/>'
    yield f'<line x1="{left + low:.1f}" y1="{middle}" x2="{left + high:.1f}" y2="{middle}" stroke="#222"/>'
    for end in (low, high):
        x = left + end
        yield f'<line x1="{x:.1f}" y1="{middle - 4}" x2="{x:.1f}" y2="{middle + 4}" stroke="#222"/>'
    yield f'<text x="{left + _BAR + 8}" y="{middle + 4}">{100 * found.mean:.1f}</text>'
