"""What an evaluation leaves for later: the report, a plot, and what each configuration found."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hopline.evaluation.plot import as_svg
from hopline.evaluation.results import Evaluated
from indexers.errors import HoplineError


def write_report(found: Evaluated, folder: Path) -> list[Path]:
    """`<set>.json`, `<set>.svg`, and what each configuration found: `runs/<set>.<configuration>.jsonl`.

    Raises HoplineError where they can't be written.
    """
    name = found.report.set_name
    files = {
        folder / f"{name}.json": msgspec.json.format(msgspec.json.encode(found.report), indent=2) + b"\n",
        folder / f"{name}.svg": as_svg(found.report).encode(),
    }
    for configuration, runs in found.runs.items():
        lines = b"".join(msgspec.json.encode(run) + b"\n" for run in runs)
        files[folder / "runs" / f"{name}.{configuration}.jsonl"] = lines
    try:
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            path.write_bytes(content)
    except OSError as exc:
        msg = f"the report can't be written to {folder}: {exc.strerror}"
        raise HoplineError(msg) from exc
    return list(files)
