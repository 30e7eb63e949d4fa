"""Inline rules for the Markdown parser: wikilinks, references, tags; comments and math are skipped.

The rules note what they find, with positions in the content that is being parsed, in the `Findings` of the
parser's environment. All of them are linear: what isn't closed is remembered, and failed link attempts have a
budget.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote

from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline import backtick as parse_code
from markdown_it.rules_inline import image as parse_image
from markdown_it.rules_inline import link as parse_link

from indexers.domain.names import NOTE_SUFFIXES, LinkType, is_attachment
from indexers.domain.text import storable

ENVIRONMENT_KEY = "hopline"
#: Characters that all failed attempts to read one paragraph's brackets as links may scan.
FAILED_LINK_BUDGET = 1_500_000
#: A longer inside of `[[…]]` is text.
WIKILINK_MAX_CHARACTERS = 1_000

#: A wikilink with a pipe that isn't escaped.
PIPED_WIKILINK = re.compile(r"\[\[[^\[\]|]{1,1000}(?<!\\)\|[^\[\]]{0,1000}\]\]")
_DISPLAY = re.compile(r"\\?\|")
_BRACKET = re.compile(r"\\.|[\[\]]", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_HTML_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>")
#: Opening → closing mark of what is no text. Order matters: `$$` before `$`.
_HIDDEN = {"<!--": "-->", "$$": "$$", "%%": "%%", "$": "$"}
_CLOSING_DOLLAR = re.compile(r"(?<=[^\s\\$])\$(?![0-9$])")
_TAG = re.compile(r"#([\w/-]*[^\W\d][\w/-]*)")
#: Characters at which one of the rules below or of the parser may begin; the rest is skipped in one step.
TERMINATORS = re.compile(r"[\n!#$%<\[\\\]`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLink:
    """A link as written; `start` and `end` are positions in the parsed content (or in the text: `scan`)."""

    start: int
    end: int
    target: str
    display: str | None
    #: `#heading` or `^block`, as written.
    fragment: str | None
    link_type: LinkType


@dataclass(slots=True)
class Findings:
    """What the rules found in one inline content."""

    src: str
    links: list[RawLink] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    #: What is no prose: links whole, tags, code, formulas, comments, HTML. Positions in the content.
    apart: list[tuple[int, int]] = field(default_factory=list)
    budget: int = FAILED_LINK_BUDGET
    closers: dict[str, list[int]] = field(default_factory=dict)
    brackets: dict[int, int] | None = None

    def next_closer(self, pattern: str, after: int) -> int | None:
        """Position of the first match of a closing mark at or after `after`; each mark is searched once."""
        if pattern not in self.closers:
            mark = _CLOSING_DOLLAR if pattern == "$" else re.compile(re.escape(pattern))
            self.closers[pattern] = [match.start() for match in mark.finditer(self.src)]
        positions = self.closers[pattern]
        index = bisect_left(positions, after)
        return positions[index] if index < len(positions) else None

    def bracket_end(self, position: int) -> int:
        if self.brackets is None:
            self.brackets = _matching_brackets(self.src)
        return self.brackets.get(position, len(self.src))


def findings_of(state: StateInline) -> Findings | None:
    """None inside the alternative text of an image, which is parsed on its own."""
    found: Findings = state.env[ENVIRONMENT_KEY]
    return found if found.src == state.src else None


def wikilink(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    """`[[target]]`, `![[target]]`; the text between may not hold `[[` or a line end."""
    read = read_wikilink(state.src, state.pos, state.posMax)
    if read is None:
        return False
    if not silent:
        token = state.push("wikilink", "", 0)
        token.content = read.display or read.target or (read.fragment or "").lstrip("#^")
        found = findings_of(state)
        if found is not None:
            found.apart.append((state.pos, read.end))
            if is_edge(read):
                found.links.append(read)
    state.pos = read.end
    return True


def read_wikilink(src: str, position: int, limit: int) -> RawLink | None:
    embed = src.startswith("!", position)
    opening = position + embed
    if not src.startswith("[[", opening):
        return None
    close = src.find("]]", opening + 2, min(limit, opening + 2 + WIKILINK_MAX_CHARACTERS))
    inner = src[opening + 2 : max(close, 0)]
    if close < 0 or "[[" in inner or inner.startswith("[") or "\n" in inner or "\r" in inner:
        return None
    name, *display = _DISPLAY.split(inner, maxsplit=1)
    target, mark, fragment = name.partition("#")
    written = f"#{fragment}".strip() if mark else None
    return RawLink(
        start=position,
        end=close + 2,
        target=target.strip(),
        display=display[0].strip() or None if display else None,
        fragment=written[1:] if written and written.startswith("#^") else written,
        link_type="embed" if embed else "wikilink",
    )


def is_edge(link: RawLink) -> bool:
    """False for local links (`[[#heading]]`), empty targets, attachments and addresses."""
    return bool(link.target.strip("/. ")) and not is_attachment(link.target) and "://" not in link.target


def scan(text: str, start: int, end: int) -> list[RawLink]:
    """Wikilinks of a piece of text that is no Markdown (frontmatter), with offsets in `text`."""
    found, position = [], text.find("[[", start, end)
    while position >= 0:
        link = read_wikilink(text, position, end)
        if link is not None and is_edge(link):
            found.append(link)
        position = text.find("[[", position + 1 if link is None else link.end, end)
    return found


def reference(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    """The parser's own `[text](target)`, noted when the target is a note of the vault."""
    return _bounded(state, silent, parse_link)


def image(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    return state.src.startswith("![", state.pos) and _bounded(state, silent, parse_image)


InlineRule = Callable[[StateInline, bool], bool]


def _bounded(state: StateInline, silent: bool, rule: InlineRule) -> bool:  # noqa: FBT001 - handed through
    found = findings_of(state)
    start, before = state.pos, len(state.tokens)
    if not state.src.startswith(("[", "!["), start) or (found is not None and found.budget <= 0):
        return False
    if not rule(state, silent):
        if found is not None:
            found.budget -= found.bracket_end(start + (state.src[start] == "!")) - start
        return False
    if found is not None and not silent:
        found.apart.append((start, state.pos))
        opened = next((t for t in state.tokens[before:] if t.type in ("link_open", "image")), None)
        link = None if opened is None else _reference(opened.attrs, start, state)
        if link is not None:
            found.links.append(link)
    return True


def _reference(attributes: dict[str, str | int | float], start: int, state: StateInline) -> RawLink | None:
    href = str(attributes.get("href") or attributes.get("src") or "")
    path, mark, fragment = href.partition("#")
    path = storable(unquote(path.partition("?")[0])).strip()
    name = path.rpartition("/")[2].lower()
    local = path and not _SCHEME.match(path) and not path.startswith("//") and "\\" not in path
    if not local or not name or not (name.endswith(NOTE_SUFFIXES) or "." not in name.strip(".")):
        return None
    label = state.src[start:].startswith("!")
    close = _label_end(state.src, start + label, state.pos)
    return RawLink(
        start=start,
        end=state.pos,
        target=path,
        display=" ".join(state.src[start + label + 1 : close].split()) or None,
        fragment=f"#{storable(unquote(fragment))}" if mark and fragment else None,
        link_type="reference",
    )


def _label_end(src: str, opening: int, end: int) -> int:
    level = 0
    for match in _BRACKET.finditer(src, opening, end):
        level += {"[": 1, "]": -1}.get(match[0], 0)
        if level == 0 and match[0] == "]":
            return match.start()
    return end


def tag(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    """`#tag` after whitespace or at the start: letters of any script, digits, `_-/`; not digits alone."""
    position = state.pos
    if state.src[position] != "#" or (position and not state.src[position - 1].isspace()):
        return False
    match = _TAG.match(state.src, position, state.posMax)
    if match is None:
        return False
    found = findings_of(state)
    if not silent and found is not None:
        found.tags.append(match[1])
        found.apart.append((state.pos, match.end()))
        state.push("text", "", 0).content = match[0]
    state.pos = match.end()
    return True


def code(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    """The parser's own code spans, noted as no prose."""
    start, before = state.pos, len(state.tokens)
    if not parse_code(state, silent):
        return False
    found = findings_of(state)
    if found is not None and any(token.type == "code_inline" for token in state.tokens[before:]):
        found.apart.append((start, state.pos))
    return True


def hidden(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    """`$math$`, `$$math$$`, `%%comment%%`, `<!-- comment -->` and tags: nothing in them is a link."""
    start, found = state.pos, findings_of(state)
    if found is None or not _skip_hidden(state, found):
        return False
    if not silent:
        found.apart.append((start, state.pos))
    return True


def _skip_hidden(state: StateInline, found: Findings) -> bool:
    position, src = state.pos, state.src
    if match := _HTML_TAG.match(src, position, state.posMax):
        state.pos = match.end()
        return True
    mark = next((mark for mark in _HIDDEN if src.startswith(mark, position)), None)
    if mark is None or (mark == "$" and not src[position + 1 : position + 2].strip()):
        return False
    end = found.next_closer(_HIDDEN[mark], position + len(mark))
    if end is None or end + len(_HIDDEN[mark]) > state.posMax:
        return False
    state.pos = end + len(_HIDDEN[mark])
    return True


def _matching_brackets(src: str) -> dict[int, int]:
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for match in _BRACKET.finditer(src):
        if match[0] == "[":
            stack.append(match.start())
        elif match[0] == "]" and stack:
            pairs[stack.pop()] = match.end()
    return pairs
