"""A note as it reads: markup and what isn't shown become blanks, every other character stays where it is. Pure.

Two readings of one text, both as long as the text, so that a span of either is a span of the text:

* `shown`, for rules: without frontmatter (but the title, unless the first heading repeats it), comments, targets of
  links to files, and targets of wikilinks that show another text. Code, addresses and tags stay: that is where codes
  stand.
* `prose`, for a model: besides without code blocks, formulas, addresses, tags and marks (`**`, `[[`, `|`, `- `).
  The border between two cells of a table reads as a comma; the mark of an item, heading or row reads as a full stop
  where the block before has none.

Found by patterns, not by the Markdown parser, which knows no positions inside of inline content and calls emphasis
text. A mark taken for text only costs the model a blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from indexers.domain.names import NOTE_SUFFIXES
from indexers.domain.wikilinks import read_wikilink

_TITLE: Final = re.compile(r"^title:[ \t]*+([\"']?)([^\r\n]*?)\1[ \t]*$", re.MULTILINE | re.IGNORECASE)
_FIRST_HEADING: Final = re.compile(r"\s*+#[ \t]++([^\r\n]++)")
_FENCE: Final = re.compile(r"^[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+(`{3,}+|~{3,}+)", re.MULTILINE)
#: Opening and closing mark of what is no text; `shown` keeps formulas.
_COMMENTS: Final = (("<!--", "-->"), ("%%", "%%"))
_FORMULA: Final = ("$$", "$$")

_ESCAPE = r"(?P<escape>\\(?=[!-/:-@\[-`{-~]))"
_CODE = r"(?P<code>(?<!`)`[^`\r\n]{1,500}+`(?!`)|(?<!`)``[^`\r\n]{1,200}+(?:`[^`\r\n]{1,200}+)?``(?!`))"
_WIKILINK = r"(?P<wikilink>!?\[\[(?=[^\[\]\r\n]))"
_TARGET = (
    r"(?P<target>\]\((?:<[^<>\r\n]{0,1000}+>|[^()\s<>]{0,1000}+(?:\([^()\s]{0,200}+\)[^()\s]{0,200}+){0,3}+)"
    r"(?:[ \t]++\"[^\"\r\n]{0,300}+\")?+\))"
)
_DEFINITION = r"(?P<definition>^ {0,3}\[(?!\^)[^\[\]\r\n]{1,300}+\]:[ \t]++[^\r\n]*+$)"
_TAG = r"(?P<tag>(?<!\S)#(?=[\w/-]*[^\W\d])[\w/-]++)"
_FOOTNOTE = r"(?P<footnote>\[\^[^\[\]\s]{1,64}+\]:?|\]\[[^\[\]\r\n]{0,200}+\])"
_CALLOUT = r"(?P<callout>\[![\w-]{1,32}+\][+-]?)"
_RULE_LINE = r"(?P<line>^[ \t>]*+(?:[-=*_|:][ \t]*+){3,}+$)"
_LIST_MARK = r"(?:\#{1,6}+(?=[ \t]|$)|(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)++(?:\[[ xX]\](?=[ \t]))?+)"
_LINE_START = rf"(?P<lead>^[ \t]*+(?:(?:>[ \t]?+)++[ \t]*+{_LIST_MARK}?+|{_LIST_MARK}))"
_ADDRESS = r"(?P<address>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,15}+://[^\s<>]++)"
_ELEMENT = r"(?P<element></?[A-Za-z][^<>\r\n]{0,1000}+>)"
_MATH = r"(?P<math>(?<![\\$\w])\$(?=[^\s$])[^$\r\n]{1,300}+(?<=\S)\$(?![\d$]))"
_BLOCK_ID = r"(?P<block>(?<=[ \t])\^[A-Za-z0-9-]{1,64}+[ \t]*+$)"
_BORDER = r"(?P<edge>^[ \t>]*+\||\|(?=[ \t]{0,20}+$))|(?P<border>\|)"
_MARK = r"(?P<mark>\*{1,3}+|~~|==|(?<!\w)_{1,3}+(?=\S)|(?<=\S)_{1,3}+(?!\w)|!?\[|\]|`++|\ufeff)"
_MARKUP: Final = re.compile(
    "|".join(
        [
            *(_DEFINITION, _ESCAPE, _CODE, _WIKILINK, _TARGET, _TAG, _FOOTNOTE, _CALLOUT, _RULE_LINE),
            *(_BORDER, _LINE_START, _ADDRESS, _ELEMENT, _MATH, _BLOCK_ID, _MARK),
        ]
    ),
    re.MULTILINE,
)
_URL_TARGET: Final = re.compile(r"\]\(<?[A-Za-z][A-Za-z0-9+.-]{1,15}+:")
#: How far before a block's mark the end of the block before is looked for.
_LOOK_BACK: Final = 80
_NOT_BLANK: Final = re.compile(r"[^\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """len(shown) == len(prose) == len(text); characters that differ from the text's are masked."""

    shown: str
    prose: str


def readings(text: str, *, body_start: int = 0) -> Readings:
    """`body_start`: where the frontmatter ends (`Frontmatter.body_start`). Linear; never raises."""
    masks = _Masks(text)
    masks.frontmatter(body_start)
    for start, end, fenced in _stretches(text, body_start):
        if fenced:
            masks.hide(start, end, shown=False)
        else:
            masks.stretch(start, end)
    return Readings(shown="".join(masks.shown), prose="".join(masks.prose))


def readable_text(text: str, *, body_start: int = 0) -> str:
    """What a model is given: `readings(…).prose`."""
    return readings(text, body_start=body_start).prose


def _stretches(text: str, start: int) -> Iterator[tuple[int, int, bool]]:
    """Spans from `start` on, (…, …, True) for fenced code. A fence that isn't closed ends with the text."""
    at = start
    while (opening := _FENCE.search(text, at)) is not None:
        mark = opening[1]
        yield at, opening.start(), False
        closing = re.compile(rf"^[ \t>]*+{re.escape(mark)}{re.escape(mark[0])}*+[ \t]*+$", re.MULTILINE)
        close = closing.search(text, opening.end())
        end = len(text) if close is None else close.end()
        yield opening.start(), end, True
        at = end
    yield at, len(text), False


class _Masks:
    def __init__(self, text: str) -> None:
        self.text = text
        self.shown, self.prose = list(text), list(text)

    def hide(self, start: int, end: int, *, shown: bool) -> None:
        """Blanks for all that isn't white space; `shown`: also in what rules read."""
        blanks = _NOT_BLANK.sub(" ", self.text[start:end])
        self.prose[start:end] = blanks
        if shown:
            self.shown[start:end] = blanks

    def frontmatter(self, end: int) -> None:
        title, heading = _TITLE.search(self.text, 0, end), _FIRST_HEADING.match(self.text, end)
        if title is None or (heading is not None and heading[1].strip() == title[2].strip()):
            self.hide(0, end, shown=True)
            return
        self.hide(0, title.start(2), shown=True)
        self.hide(title.end(2), end, shown=True)
        closing = self.text.rfind("---", title.end(2), end)
        self._full_stop(closing, after=title[2])

    def stretch(self, start: int, end: int) -> None:
        """Text without fenced code."""
        at = start
        while (match := _MARKUP.search(self.text, at, end)) is not None:
            at = self._mark(match, end)
        # Last, since what stands in a comment is no markup; a comment in a code span is hidden too: no harm.
        for pair in (*_COMMENTS, _FORMULA):
            for opening, close in _pairs(self.text, pair, start, end):
                self.hide(opening, close, shown=pair is not _FORMULA)

    def _mark(self, match: re.Match[str], end: int) -> int:
        """Where to go on: markup in what a wikilink shows is markup."""
        start, kind = match.start(), match.lastgroup
        if kind == "wikilink":
            return max(self._wikilink(start, end), match.end())
        if kind == "escape":
            self.hide(start, match.end(), shown=False)
            return match.end() + 1
        if kind == "code":
            ticks = 2 if match[0].startswith("``") else 1
            self.hide(start, start + ticks, shown=False)
            self.hide(match.end() - ticks, match.end(), shown=False)
        elif kind == "definition":
            self.hide(start, match.end(), shown="://" not in match[0])
        elif kind == "target":
            self.hide(start, match.end(), shown=_URL_TARGET.match(match[0]) is None)
        elif kind == "border":
            self.prose[start] = ","
        elif kind in ("lead", "edge"):
            self.hide(start, match.end(), shown=False)
            mark = _NOT_BLANK.search(self.text, start, match.end())
            self._full_stop(-1 if mark is None else mark.start())
        else:
            self.hide(start, match.end(), shown=False)
        return match.end() + (match.start() == match.end())

    def _wikilink(self, start: int, end: int) -> int:
        """`[[folder/note#heading|shown]]`: what it shows stays; without a shown text, the note's name."""
        link = read_wikilink(self.text, start, end)
        if link is None:
            self.hide(start, self.text.index("[[", start) + 2, shown=False)
            return start
        inner = self.text.index("[[", start) + 2
        close = link.end - 2
        bar = self.text.find("|", inner, close)
        if bar >= 0 and self.text[bar + 1 : close].strip():
            self.hide(inner, bar, shown=True)
            kept = bar + 1, close
        else:
            kept = _name_part(self.text, inner, bar if bar >= 0 else close)
            self.hide(inner, kept[0], shown=True)
        self.hide(start, kept[0], shown=False)
        self.hide(kept[1], link.end, shown=False)
        return kept[0]

    def _full_stop(self, at: int, *, after: str | None = None) -> None:
        """In place of a block's mark, where the block before ends without one: else both would read as one name."""
        if at < 0:
            return
        before = "".join(self.prose[max(at - _LOOK_BACK, 0) : at]) if after is None else after
        last = before.rstrip()[-1:]
        if last.isalnum() or (last and last in "\"')]}”’"):
            self.prose[at] = "."


def _name_part(text: str, start: int, end: int) -> tuple[int, int]:
    """The last segment of a wikilink's path, without `#heading` and note suffix; else the heading, else all."""
    heading = text.find("#", start, end)
    stop = end if heading < 0 else heading
    begin = max(text.rfind("/", start, stop) + 1, start)
    for suffix in NOTE_SUFFIXES:
        if text[begin:stop].lower().endswith(suffix):
            stop -= len(suffix)
            break
    if text[begin:stop].strip():
        return begin, stop
    return (start if heading < 0 else heading + 1), end


def _pairs(text: str, marks: tuple[str, str], start: int, end: int) -> Iterator[tuple[int, int]]:
    opening, closing = marks
    at = text.find(opening, start, end)
    while at >= 0:
        close = text.find(closing, at + len(opening), end)
        if close < 0:
            return
        yield at, close + len(closing)
        at = text.find(opening, close + len(closing), end)
