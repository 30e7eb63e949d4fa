"""Codes and versions by their form; what may stand beside them. Pure."""

from __future__ import annotations

import re
from typing import Final

#: Hangul, Han and kana: words go on without a blank, so they may stand beside a name.
GLUED: Final = r"\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
#: No letter or digit of another script before; after, no combining mark either (a grapheme stays whole).
BEFORE: Final = rf"(?<![^\W{GLUED}])"
AFTER: Final = rf"(?![^\W{GLUED}]|[\u0300-\u036f\u200d\u20d0-\u20ff\ufe0f])"

INCIDENT: Final = re.compile(rf"{BEFORE}(?<![-.])(?:(?:INC|INCIDENT)-?|inc-)\d{{3,10}}{AFTER}")
#: Tickets, parts, numbered errors: `PAY-113`, `QX-4103B`, `CVE-2024-3094`.
CODE: Final = re.compile(
    rf"{BEFORE}(?<![-.])[A-Z][A-Z0-9]{{0,9}}+(?:-[A-Z0-9]{{1,10}}+){{1,4}}+{AFTER}(?!-[A-Za-z0-9])"
)
#: Errors by name or number. `HTTP 503`: the answers that say what is wrong, 4xx and 5xx.
ERROR: Final = re.compile(
    rf"{BEFORE}(?<![-.])(?:(?:ERR(?:OR)?_[A-Z0-9]|E_[A-Z]{{2}})[A-Z0-9]*+(?:_[A-Z0-9]++)*+|E\d{{4,6}}"
    r"|SQLSTATE [0-9A-Z]{5}"
    r"|HTTP(?:/\d(?:\.\d)?)?[ -][45]\d\d(?![.,:]\d)"
    r"|E(?:CONN(?:RESET|REFUSED|ABORTED)|TIMEDOUT|HOSTUNREACH|NETUNREACH|ADDRINUSE|NOENT|NOSPC|NOMEM|NOTFOUND"
    rf"|ACCES|PERM|PIPE|MFILE|EXIST|AGAIN|AI_AGAIN|INVAL)){AFTER}"
)
VERSION: Final = re.compile(
    rf"{BEFORE}(?<![-.,:/§$£€#])(?:[vV]\d{{1,4}}(?:\.\d{{1,6}}){{1,3}}|\d{{1,4}}(?:\.\d{{1,6}}){{2,3}})"
    r"(?i:[-._]?(?:alpha|beta|preview|pre|rc|dev|snapshot|post|final|ga|nightly|canary|next|hotfix|[abm](?=\d))"
    rf"(?:[.-]?\d{{1,8}})?)?(?:\+[0-9A-Za-z][0-9A-Za-z.-]{{0,40}}(?<=[0-9A-Za-z]))?{AFTER}(?![.:]?\d|\.[A-Za-z])"
)

#: Names of standards, grades, times: `UTF-8`, `TIER-1`, `UTC-5`, `NOV-30`.
_NO_CODES: Final = frozenset(
    re.findall(
        r"\S+",
        "UTF UCS ISO IEC SHA MD AES RSA DES BASE LATIN IPV MPEG MP HTTP TLS SSL USB DDR COVID GPT "
        "UTC GMT CET CEST EST PST KST "
        "FY CY JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC MON TUE WED THU FRI SAT SUN "
        "TOP TIER LEVEL PHASE STEP PART STAGE DAY WEEK MONTH YEAR SEV TYPE CLASS GRADE SIZE PAGE",
    )
)
_SEGMENT: Final = re.compile(r"(\d+)[A-Z]{0,2}")
_PERIOD: Final = re.compile(r"[QHW]\d{1,2}")
_NUMBER_OF: Final = re.compile(
    r"(?:section|chapter|clause|figure|table|appendix|sec\.|fig\.|제|절|장|항)[ \t]*$", re.IGNORECASE
)
_LINE_LEAD: Final = re.compile(r"[ \t>]*(?:#{1,6}[ \t]+|[-*+][ \t]+)?(?:\*\*|__)?")


def is_code(written: str) -> bool:
    """A prefix of two letters (or of one, with three digits after it), then a segment that is a number."""
    prefix, number, *more = written.split("-")
    if prefix in _NO_CODES or (_PERIOD.fullmatch(prefix) and len(number) in (2, 4)):
        return False
    match = _SEGMENT.fullmatch(number)
    if match is None:
        return len(more) > 0 and len(prefix) > 1 and more[-1].isdigit() and len(more[-1]) >= 3
    if prefix in ("AM", "PM") and len(number) <= 2:
        return False
    return sum(map(str.isalpha, prefix)) >= 2 or len(match[1]) >= 3


def is_version(text: str, start: int, end: int) -> bool:
    """False for dates, times, `1.234.567`, and for the number of a heading, section or figure."""
    written = text[start:end]
    if written[0] in "vV":
        return True
    parts = written.split(".")
    if all(part.isdigit() for part in parts) and _is_other_number(parts):
        return False
    line = text[max(start - 40, 0) : start].rpartition("\n")[2]
    begins = len(line) < 40 and _LINE_LEAD.fullmatch(line) is not None
    named = begins and text[end : end + 1] in (" ", "\t") and text[end + 1 : end + 2].isalpha()
    return not named and _NUMBER_OF.search(line) is None


def _is_other_number(parts: list[str]) -> bool:
    sizes = [len(part) for part in parts]
    if all(size == 3 for size in sizes[1:]):
        return True
    if len(parts) != 3:
        return False
    a, b, c = map(int, parts)
    written_day = sizes[0] == 4 and 1900 <= a < 2100 and 1 <= b <= 12 and 1 <= c <= 31
    day_first = sizes[2] == 4 and 1900 <= c < 2100 and 1 <= b <= 12 and 1 <= a <= 31
    two_digits = sizes == [2, 2, 2]
    short_day = two_digits and 1 <= b <= 12 and 1 <= min(a, c) <= 31
    time = two_digits and a < 24 and b < 60 and c < 60
    return written_day or day_first or short_day or time
