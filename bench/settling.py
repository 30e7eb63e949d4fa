"""Indices of one prefix while they are filled, and until the engine has nothing left to merge."""

from __future__ import annotations

import json
import time
import urllib.request
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from tests.pipeline import Pipeline

#: In a row, and a second apart: a merge may just have ended, and the next one not begun.
QUIET_LOOKS: Final = 5
PATIENCE_SECONDS: Final = 3_600.0
_FILLING: Final = {"index": {"refresh_interval": "-1", "translog.durability": "async"}}


@dataclass(kw_only=True, eq=False)
class Bulk:
    """Within it, rows aren't refreshed and the translog is not synced with each request."""

    pipeline: Pipeline
    before: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> None:
        found = asked(self.pipeline, "GET", f"/{self.pipeline.prefix}-*/_settings")
        self.before = {name: of["settings"]["index"]["refresh_interval"] for name, of in found.items()}
        asked(self.pipeline, "PUT", f"/{self.pipeline.prefix}-*/_settings", _FILLING)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, interval in self.before.items():
            settings = {"refresh_interval": interval, "translog.durability": None}
            asked(self.pipeline, "PUT", f"/{name}/_settings", {"index": settings})


def settle(pipeline: Pipeline) -> None:
    """All findable, on the disk, and merged as far as the engine merges of its own accord."""
    asked(pipeline, "POST", f"/{pipeline.prefix}-*/_flush?wait_if_ongoing=true")
    asked(pipeline, "POST", f"/{pipeline.prefix}-*/_refresh")
    quiet, start = 0, time.monotonic()
    while quiet < QUIET_LOOKS:
        time.sleep(1)
        if time.monotonic() - start > PATIENCE_SECONDS:
            raise RuntimeError("the engine doesn't come to an end with merging")
        merges = asked(pipeline, "GET", f"/{pipeline.prefix}-*/_stats/merge")["_all"]["total"]["merges"]
        quiet = 0 if merges["current"] else quiet + 1


def shape(pipeline: Pipeline) -> dict[str, dict[str, int]]:
    """Rows, segments and MB of each index that has rows."""
    names = f"/{pipeline.prefix}-*/_stats/docs,segments,store"
    found = asked(pipeline, "GET", names)["indices"]
    return {
        name.removeprefix(f"{pipeline.prefix}-").removesuffix("-v1"): {
            "rows": of["total"]["docs"]["count"],
            "segments": of["total"]["segments"]["count"],
            "megabytes": round(of["total"]["store"]["size_in_bytes"] / 1e6),
        }
        for name, of in sorted(found.items())
        if of["total"]["docs"]["count"]
    }


def asked(pipeline: Pipeline, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        pipeline.opensearch_url + path,
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.loads(response.read())
