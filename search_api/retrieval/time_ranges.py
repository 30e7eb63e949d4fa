"""Times that a question names, in English and Korean: `last week`, `3 days ago`, `March 2031`, `지난달`, `2031년 3월`.

Days are days of UTC, weeks begin on Monday. A day or month without its year is the last one that has begun. Pure:
the clock is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

#: More of them in one question are a list, no time that it asks of.
RANGES_MAX: Final = 3
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_MONTH: Final = "|".join((*(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS), "sept"))
_YEAR: Final = r"(?:19|20)\d\d"
_DAYS: Final[dict[str, int]] = {
    "day": 1, "week": 7, "month": 30, "year": 365, "일": 1, "주": 7, "주일": 7, "달": 30, "개월": 30, "년": 365,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """`start` ≤ time < `end`, UTC; `said`: as the question has it."""

    said: str
    start: datetime
    end: datetime

    def holds(self, moment: datetime) -> bool:
        return self.start <= moment < self.end


Made = tuple[datetime, datetime]


def time_ranges(text: str, now: datetime) -> tuple[TimeRange, ...]:
    """In the order of the text; what is no date (31 February) or lies outside the calendar is no time."""
    now = now.astimezone(UTC)
    found: list[tuple[int, int, TimeRange]] = []
    for pattern, make in _RULES:
        for match in pattern.finditer(text):
            taken = any(match.start() < end and start < match.end() for start, end, _ in found)
            made = None if taken else _made(make, match, now)
            if made is not None:
                said = TimeRange(said=match[0], start=made[0], end=made[1])
                found.append((match.start(), match.end(), said))
    ranges = tuple(said for _, _, said in sorted(found, key=lambda one: one[0]))
    return ranges if len(ranges) <= RANGES_MAX else ()


def _made(
    make: Callable[[re.Match[str], datetime], Made], match: re.Match[str], now: datetime
) -> Made | None:
    try:
        return make(match, now)
    except (ValueError, OverflowError):
        return None


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _day(year: int, month: int, day: int) -> Made:
    start = datetime(year, month, day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def _months(year: int, month: int, count: int = 1) -> Made:
    last = year * 12 + month - 1 + count
    return datetime(year, month, 1, tzinfo=UTC), datetime(last // 12, last % 12 + 1, 1, tzinfo=UTC)


def _iso(match: re.Match[str], _now: datetime) -> Made:
    year, month = int(match["year"]), int(match["month"])
    return _months(year, month) if match["day"] is None else _day(year, month, int(match["day"]))


def _named_month(match: re.Match[str], now: datetime) -> Made:
    month = next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(match["month"].lower()[:3]))
    return _of_year(match["year"], month, match["day"], now)


def _korean_month(match: re.Match[str], now: datetime) -> Made:
    return _of_year(match["year"], int(match["month"]), match["day"], now)


def _of_year(year: str | None, month: int, day: str | None, now: datetime) -> Made:
    def made(number: int) -> Made:
        return _months(number, month) if day is None else _day(number, month, int(day))

    if year is not None:
        return made(int(year))
    this = made(now.year)
    return this if this[0] <= now else made(now.year - 1)


def _quarter(match: re.Match[str], now: datetime) -> Made:
    year = int(match["year"] or match["before"] or now.year)
    return _months(year, 3 * int(match["quarter"]) - 2, 3)


def _year(match: re.Match[str], _now: datetime) -> Made:
    return _months(int(match["year"]), 1, 12)


def _ago(match: re.Match[str], now: datetime) -> Made:
    """`3 weeks ago`: the span of one unit around it."""
    unit = _DAYS[match["unit"].lower()]
    middle = _midnight(now) - timedelta(days=int(match["count"]) * unit)
    return middle - timedelta(days=unit // 2), middle + timedelta(days=unit - unit // 2)


def _last(match: re.Match[str], now: datetime) -> Made:
    """`last 3 weeks`: up to the end of today."""
    days = int(match["count"]) * _DAYS[match["unit"].lower()]
    end = _midnight(now) + timedelta(days=1)
    return end - timedelta(days=days), end


def _days_back(back: int) -> Callable[[re.Match[str], datetime], Made]:
    def make(_match: re.Match[str], now: datetime) -> Made:
        start = _midnight(now) - timedelta(days=back)
        return start, start + timedelta(days=1)

    return make


def _weeks_back(back: int) -> Callable[[re.Match[str], datetime], Made]:
    def make(_match: re.Match[str], now: datetime) -> Made:
        start = _midnight(now) - timedelta(days=now.weekday() + 7 * back)
        return start, start + timedelta(days=7)

    return make


def _months_back(back: int) -> Callable[[re.Match[str], datetime], Made]:
    def make(_match: re.Match[str], now: datetime) -> Made:
        month = now.year * 12 + now.month - 1 - back
        return _months(month // 12, month % 12 + 1)

    return make


def _years_back(back: int) -> Callable[[re.Match[str], datetime], Made]:
    return lambda _match, now: _months(now.year - back, 1, 12)


def _rules() -> Iterator[tuple[str, Callable[[re.Match[str], datetime], Made]]]:
    """The more exact ones first: a word belongs to one time."""
    yield rf"(?<![\d-])(?P<year>{_YEAR})-(?P<month>\d\d)(?:-(?P<day>\d\d))?(?![\d-])", _iso
    yield rf"(?P<year>{_YEAR})년\s*(?P<month>\d\d?)월(?:\s*(?P<day>\d\d?)일)?", _korean_month
    yield rf"\b(?P<month>{_MONTH})\.?\s+(?P<day>\d\d?)(?:st|nd|rd|th)?,?\s+(?P<year>{_YEAR})\b", _named_month
    yield rf"\b(?P<day>\d\d?)(?:st|nd|rd|th)?\s+(?P<month>{_MONTH})\.?,?\s+(?P<year>{_YEAR})\b", _named_month
    yield rf"\b(?P<month>{_MONTH})\.?,?\s+(?P<year>{_YEAR})(?P<day>(?!))?\b", _named_month
    yield rf"(?:\b(?P<before>{_YEAR})\s+)?\bq(?P<quarter>[1-4])\b(?:\s+(?P<year>{_YEAR})\b)?", _quarter
    yield r"\b(?P<count>\d{1,3})\s+(?P<unit>day|week|month|year)s?\s+ago\b", _ago
    yield r"(?P<count>\d{1,3})\s*(?P<unit>주일|개월|일|주|달|년)\s*전", _ago
    yield r"\b(?:last|past)\s+(?P<count>\d{1,3})\s+(?P<unit>day|week|month|year)s?\b", _last
    yield r"(?:최근|지난)\s*(?P<count>\d{1,3})\s*(?P<unit>주일|개월|일|주|달|년)", _last
    yield r"\btoday\b|오늘", _days_back(0)
    yield r"\byesterday\b|(?<!그)어제", _days_back(1)
    yield r"그저께|그제", _days_back(2)
    yield r"\bthis week\b|이번\s*주", _weeks_back(0)
    yield r"\blast week\b|(?:지난|저번)\s*주", _weeks_back(1)
    yield r"\bthis month\b|이번\s*달", _months_back(0)
    yield r"\blast month\b|(?:지난|저번)\s*달", _months_back(1)
    yield r"\bthis year\b|올해", _years_back(0)
    yield r"\blast year\b|작년|지난해", _years_back(1)
    yield (
        rf"\b(?:in|on|since|during)\s+(?P<month>{_MONTH})\b(?:\s+(?P<day>\d\d?)\b)?(?P<year>(?!))?",
        _named_month,
    )
    yield rf"\b(?:in|during)\s+(?P<year>{_YEAR})\b", _year
    yield rf"(?P<year>{_YEAR})년", _year
    yield r"(?<!\d)(?P<month>\d\d?)월(?:\s*(?P<day>\d\d?)일)?(?P<year>(?!))?", _korean_month


_RULES: Final = tuple((re.compile(pattern, re.IGNORECASE), make) for pattern, make in _rules())
