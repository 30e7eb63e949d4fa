"""Block rules for the Markdown parser: comments and formulas of several lines, outlines indented by tabs."""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it.rules_block import StateBlock, list_block

BlockRule = Callable[[StateBlock, int, int, bool], bool]

_OUTLINE = re.compile(r"\t+[-*+] ")


def delimited_block(mark: str) -> BlockRule:
    """A block rule: lines from one that starts with `mark` to the next that holds it (`%%`, `$$`)."""

    def rule(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
        begin = state.bMarks[start_line] + state.tShift[start_line]
        if not state.src.startswith(mark, begin) or state.is_code_block(start_line):
            return False
        if state.src.find(mark, begin + len(mark), state.eMarks[start_line]) >= 0:
            return False
        close = state.src.find(mark, state.eMarks[start_line], state.eMarks[end_line - 1])
        if close < 0:
            return False
        if not silent:
            line = start_line + state.src.count("\n", begin, close)
            state.line = line + 1
            token = state.push("hidden_block", "", 0)
            token.map = [start_line, state.line]
        return True

    return rule


def outline(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    """A list whose first item is indented by tabs, as outliners write below a heading: a list, not code."""
    begin = state.bMarks[start_line]
    if not state.is_code_block(start_line) or not _OUTLINE.match(state.src, begin):
        return False
    indent, state.blkIndent = state.blkIndent, state.sCount[start_line]
    try:
        return list_block(state, start_line, end_line, silent)
    finally:
        state.blkIndent = indent
