"""How the reading commands write: colours on a terminal only, JSON when asked, plain text for pipes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from hopline.document_answers import LinkPlace


def console() -> Console:
    """Colours and highlights only on a terminal (NO_COLOR is respected); a pipe gets whole lines."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=not terminal, no_color=None if terminal else True, emoji=False)


def print_json(value: Any) -> None:
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    sys.stdout.flush()


def visible(text: str) -> str:
    """Control characters of a note can't steer the reader's terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def print_place(out: Console, place: LinkPlace) -> None:
    from rich.text import Text

    line = Text("    ")
    line.append(visible(" ".join(place.context.split())), style="dim")
    out.print(line)
