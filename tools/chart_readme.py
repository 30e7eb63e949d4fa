"""Writes the table of values in helm/hopline/README.md from the comments of values.yaml.

python -m tools.chart_readme           write
python -m tools.chart_readme --check   exit 1 when the page differs from the values (part of the tests)

A comment of lines that begin with `# -- ` (and go on with `# `) belongs to the key below it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parent.parent / "helm" / "hopline"
MARK = "<!-- Below: written by tools/chart_readme.py from values.yaml; don't edit. -->\n"
_KEY = re.compile(r"^( *)([A-Za-z]+):")
_COMMENT = re.compile(r"^ *# (-- )?(.*)$")


def comments(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Path and comment of every key that has one, in the order of the file."""
    place: list[str] = []
    said: list[str] = []
    for line in text.splitlines():
        comment, key = _COMMENT.match(line), _KEY.match(line)
        if comment:
            starts, words = comment.groups()
            said = [words] if starts else [*said, words] if said else []
        elif key:
            place = [*place[: len(key[1]) // 2], key[2]]
            if said:
                yield tuple(place), " ".join(said)
            said = []
        else:
            said = []


def table(text: str) -> str:
    values = yaml.safe_load(text)
    lines = ["| value | default | meaning |", "| --- | --- | --- |"]
    for place, said in comments(text):
        lines.append(f"| `{'.'.join(place)}` | {shown(at(values, place))} | {said} |")
    return "\n".join(lines) + "\n"


def at(values: Any, place: tuple[str, ...]) -> Any:
    for key in place:
        values = values[key]
    return values


def shown(value: Any) -> str:
    if value in ("", None):
        return "empty"
    return f"`{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}`"


def page(chart: Path = CHART) -> str:
    text = (chart / "README.md").read_text(encoding="utf-8")
    head, mark, _ = text.partition(MARK)
    return head + mark + "\n" + table((chart / "values.yaml").read_text(encoding="utf-8"))


def main() -> int:
    readme, new = CHART / "README.md", page()
    if "--check" in sys.argv[1:]:
        return int(readme.read_text(encoding="utf-8") != new)
    readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
