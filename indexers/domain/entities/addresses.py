"""URLs, e-mail addresses, paths and hosts by their form. Pure.

Each `*_span` gets a match of its pattern and gives the span of the name in it, or None. Patterns are possessive where
a run can be long, and none begins inside the run of another of its matches, so all are linear.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from indexers.domain.entities.forms import AFTER, BEFORE, GLUED
from indexers.domain.names import ATTACHMENT_SUFFIXES, NOTE_SUFFIXES
from indexers.domain.prose import KOREAN_PARTICLES

Span = tuple[int, int]

_SCHEME: Final = r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,15}+://"
_URL_CHARACTER: Final = (
    r"[^\s<>\"'`|\\^\u2018-\u201f\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"
)
URL: Final = re.compile(rf"{_SCHEME}{_URL_CHARACTER}++")
#: Takes the place of a URL that would carry a password into the names.
SECRET: Final = re.compile(rf"{_SCHEME}[^\s/@:<>\"'`]*+:[^\s/<>\"'`]+@{_URL_CHARACTER}*+")
EMAIL: Final = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}+@(?:[A-Za-z0-9-]{1,63}+\.){1,8}[A-Za-z]{2,24}"
    rf"{AFTER}(?![-@]|\.\w|:\S)"
)
_PART = r"[\w.@+~%{}-]"
PATH: Final = re.compile(rf"(?<![\w.~/\\:<>)\]}}@%+-])(?:~/|\.{{1,2}}/|/)(?:{_PART}++/)*+{_PART}*+")
#: With a suffix that files have; the first part has no dot inside (`Node.js/Vue.js`, `example.com/a.html`).
FILE: Final = re.compile(rf"(?<![\w./\\:@~<%{{}}+-]){_PART}++(?:/{_PART}++)++")
_WINDOWS_PART = r"[^\\/:*?\"<>|\s`,;()'\[\]]"
WINDOWS: Final = re.compile(
    rf"(?<![\w\\/])(?:[A-Za-z]:\\|\\\\{_WINDOWS_PART}++\\(?={_WINDOWS_PART}))(?:{_WINDOWS_PART}++\\)*+{_WINDOWS_PART}*+"
)
IPV4: Final = re.compile(rf"{BEFORE}(?<![-.:])\d{{1,3}}(?:\.\d{{1,3}}){{3}}{AFTER}(?!\.\d|-\d)")
IPV6: Final = re.compile(rf"{BEFORE}(?<![:.])(?:\[[0-9A-Fa-f:]{{3,39}}\]|[0-9A-Fa-f:]{{3,39}}+(?!:)){AFTER}")
HOST: Final = re.compile(
    rf"{BEFORE}(?<![-@/\\.:$#])(?:[a-z0-9-]++(?:\.[a-z0-9-]++)++|[a-z][a-z0-9-]*+(?=:\d{{2,5}}(?!\d))){AFTER}(?![(=@]|\.\w)"
)
_PORT: Final = re.compile(rf":(\d{{2,5}}){AFTER}(?![.:]\d)")

FILE_SUFFIXES: Final = frozenset(
    suffix.lstrip(".") for suffix in (*ATTACHMENT_SUFFIXES, *NOTE_SUFFIXES)
) | frozenset(
    re.findall(
        r"\S+",
        "bash bat c cc cfg clj cnf conf cpp cs css dart db diff env ex exs gradle go graphql groovy h hcl hpp hs htm "
        "ini java jar js jsonl jsx kt kts less lock lua m mjs mk ml php pl pm po properties proto ps1 py pyi r rb "
        "rs rst sass scala scss sh so sol sql sqlite svelte swift tf tfvars toml ts tsx vb vue war whl xsd zig",
    )
)
_TOP: Final = frozenset(
    re.findall(r"\S+", "com net org edu gov int mil internal local lan corp example invalid")
)
#: Tops that words of a program end with, too: three labels at least.
_TOP_OF_THREE: Final = frozenset(
    re.findall(
        r"\S+", "io dev ai app cloud co info biz svc test home arpa eu kr jp uk de fr nl se ch at us ca au"
    )
)
_HANGUL_TAIL: Final = re.compile(r"[\u1100-\u11ff\uac00-\ud7a3]+$")
_PARTICLES: Final = frozenset(KOREAN_PARTICLES)
_SUFFIX: Final = re.compile(rf"[^.]\.([A-Za-z][A-Za-z0-9]{{0,9}})(?=[{GLUED}]*$)")
_CLOSED: Final = {")": "(", "]": "[", "}": "{"}
_SMALL_PORTS: Final = frozenset((22, 25, 53, 80, 443))


def url_span(match: re.Match[str]) -> Span | None:
    start, end = match.span()
    end = _end(match.string, start, start + _balanced(match[0]))
    rest = match.string[start:end].partition("://")[2]
    return (start, end) if any(map(str.isalnum, rest)) else None


def email_span(match: re.Match[str]) -> Span | None:
    """`photo@2x.png` is a file."""
    return None if match[0][match[0].rindex(".") :].lower() in ATTACHMENT_SUFFIXES else match.span()


def path_span(match: re.Match[str]) -> Span | None:
    """At least two parts (one behind `~/`, `./`, `../`), not all of them numbers."""
    start, end = match.span()
    end = _end(match.string, start, start + _balanced(match[0]))
    parts = [part for part in match.string[start:end].split("/") if part.strip("~.")]
    needed = 2 if match[0].startswith("/") else 1
    letters = any(char.isalpha() for part in parts for char in part)
    return (start, end) if len(parts) >= needed and letters else None


def file_span(match: re.Match[str]) -> Span | None:
    start, end = match.start(), match.end()
    written = match.string[start:end].rstrip(".-~%+")
    first, last = written.partition("/")[0].lstrip("."), written.rpartition("/")[2]
    suffix = _SUFFIX.search(last)
    if "." in first or suffix is None or suffix[1].lower() not in FILE_SUFFIXES:
        return None
    return start, start + len(written) - len(last) + suffix.end(1)


def windows_span(match: re.Match[str]) -> Span | None:
    start, end = match.span()
    end = _end(match.string, start, end)
    return (start, end) if end - start > 3 else None


def ipv4_span(match: re.Match[str]) -> Span | None:
    octets = match[0].split(".")
    if any(int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets):
        return None
    return match.start(), _with_port(match.string, match.end())


def ipv6_span(match: re.Match[str]) -> Span | None:
    """Times and `std::vector` are none: `::` or eight groups, two of them said (or `::1`), and a digit."""
    written = match[0]
    address = written.strip("[]")
    if (address.count(":") != 7 and "::" not in address) or not any(map(str.isdigit, address)):
        return None
    if len([group for group in address.split(":") if group]) < 2 and address != "::1":
        return None
    try:
        IPv6Address(address)
    except AddressValueError:
        return None
    end = match.end()
    return match.start(), _with_port(match.string, end) if written.startswith("[") else end


def host_span(match: re.Match[str]) -> Span | None:
    """With a port nearly any name; without one, only under a top that hosts have."""
    labels = match[0].split(".")
    if any(len(label) > 63 or not label.strip("-") or label.strip("-") != label for label in labels):
        return None
    top, end = labels[-1], match.end()
    port_end = _with_port(match.string, end)
    if len(labels) == 1:
        return (match.start(), port_end) if port_end > end and _is_lone_host(match, end, port_end) else None
    if not top.isalpha() or len(top) < 2:
        return None
    if port_end > end and top not in FILE_SUFFIXES:
        return match.start(), port_end
    known = top in _TOP or (len(labels) > 2 and top in _TOP_OF_THREE)
    return (match.start(), end) if known else None


def _is_lone_host(match: re.Match[str], end: int, port_end: int) -> bool:
    """`localhost:9092`, `db-1:5432`; not `note:2026`."""
    port = int(match.string[end + 1 : port_end])
    if match[0] == "localhost":
        return True
    marked = "-" in match[0] or any(map(str.isdigit, match[0]))
    return marked and (port in _SMALL_PORTS or port >= 1_000)


def _with_port(text: str, end: int) -> int:
    port = _PORT.match(text, end)
    return port.end() if port is not None and int(port[1]) <= 65_535 else end


def _balanced(written: str) -> int:
    """Length up to the first closing bracket that was not opened."""
    opened: list[str] = []
    for at, char in enumerate(written):
        if char in "([{":
            opened.append(char)
        elif char in _CLOSED and (not opened or opened.pop() != _CLOSED[char]):
            return at
    return len(written)


def _end(text: str, start: int, end: int) -> int:
    """Without the marks and the Korean particle that follow a name."""
    while end > start and text[end - 1] in ".,;:!?*_~'…·-([{":
        end -= 1
    tail = _HANGUL_TAIL.search(text, start, end)
    if tail is not None and unicodedata.normalize("NFC", tail[0]) in _PARTICLES:
        return tail.start()
    return end
