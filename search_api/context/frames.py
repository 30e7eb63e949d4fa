"""What makes a piece of a cut block readable: the fence around code, the head of a table. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from search_api.context.blocks import Block

#: A longer frame would be dearer than what it frames.
_FRAME_CHARS: Final = 300
_HEAD_LINES: Final = 2
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Frame(NamedTuple):
    """text[inner_start:inner_end] is what it stands around: never empty, the whole block where nothing does."""

    opening: str
    closing: str
    inner_start: int
    inner_end: int


def read_frame(text: str, block: Block) -> Frame:
    """Of a table its head; of code its first mark, with the lines of the marks left out of what is cut."""
    begin = _LINE.findall(text, block.start, min(block.end, block.start + _FRAME_CHARS))
    if block.kind == "table" and len(begin) > _HEAD_LINES:
        head = "".join(begin[:_HEAD_LINES])
        return Frame(head.rstrip(), "", block.start + len(head), block.end)
    mark = begin[0].lstrip() if block.kind == "code" else ""
    if mark:
        fence = mark[: len(mark) - len(mark.lstrip(mark[0]))]
        inner = _between_marks(text, block, begin, fence)
        return Frame(fence, fence, *inner)
    return Frame("", "", block.start, block.end)


def _between_marks(text: str, block: Block, begin: list[str], fence: str) -> tuple[int, int]:
    start = block.start + len(begin[0]) if len(begin) > 1 else block.start
    tail = _LINE.findall(text, max(start, block.end - _FRAME_CHARS), block.end)
    closes = start > block.start and tail[-1].rstrip().endswith(fence)
    end = block.end - len(tail[-1]) if closes else block.end
    return (start, end) if text[start:end].strip() else (block.start, block.end)
