"""A bench's result: JSON under bench/out/, and a table for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

OUT = Path(__file__).parent / "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    name: str
    figures: Mapping[str, Any]

    def save(self) -> Path:
        OUT.mkdir(exist_ok=True)
        path = OUT / f"{self.name}.json"
        path.write_text(json.dumps(self.figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    def finish(self) -> None:
        """Save, show, and end with 1 where the target is missed: a bench that can't fail measures nothing."""
        self.save()
        self.print_figures()
        if not self.figures["holds"]:
            raise SystemExit(1)

    def print_rows(self, key: str) -> None:
        """The list of records under `key` as a table."""
        rows: list[Mapping[str, Any]] = list(self.figures[key])
        self._print(list(rows[0]) if rows else [], [list(map(str, row.values())) for row in rows])

    def print_figures(self) -> None:
        """Every single figure on a line of its own; nested groups are flattened."""
        self._print(["figure", "value"], [[name, str(value)] for name, value in _flat("", self.figures)])

    def _print(self, head: list[str], body: list[list[str]]) -> None:
        table = Table(*head, title=self.name)
        for line in body:
            table.add_row(*line)
        Console().print(table)


def _flat(prefix: str, figures: Mapping[str, Any]) -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, value in figures.items():
        full = f"{prefix}{name}"
        flat.extend(_flat(f"{full}.", value) if isinstance(value, Mapping) else [(full, value)])
    return flat
