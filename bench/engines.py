"""The broker and the node that a bench runs on: given ones, or a pair of its own at full speed."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hopline.local.engines import KafkaBroker, OpenSearchNode
from hopline.settings import LocalSettings
from tests.engines import RunningEngine, engine_pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    kafka_servers: str
    opensearch_url: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kafka", default=os.environ.get("HOPLINE_TEST_KAFKA"), help="host:port of a broker")
    parser.add_argument(
        "--opensearch", default=os.environ.get("HOPLINE_TEST_OPENSEARCH"), help="URL of a node"
    )


@contextlib.contextmanager
def engines(
    arguments: argparse.Namespace, *, folder: Path | None = None, heap_mb: int | None = None
) -> Iterator[Addresses]:
    """Data of an own pair lie in `folder` and stay there; None: in one that is removed. `heap_mb`: the node's."""
    if arguments.kafka and arguments.opensearch:
        yield Addresses(kafka_servers=arguments.kafka, opensearch_url=arguments.opensearch)
        return
    place = folder or Path(tempfile.mkdtemp(prefix="hopline-bench-"))
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)
    pair = engine_pair(place)
    settings = LocalSettings()
    own = [
        _at_full_speed(pair.kafka.engine, settings.kafka_heap_mb),
        _at_full_speed(pair.opensearch.engine, heap_mb or settings.opensearch_heap_mb),
    ]
    try:
        for running in own:
            running.start()
        yield Addresses(kafka_servers=own[0].address, opensearch_url=own[1].address)
    finally:
        for running in own:
            running.stop()
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)


def _at_full_speed(engine: KafkaBroker | OpenSearchNode, heap_mb: int) -> RunningEngine:
    """As `hopline up` starts them. Those of tests compile once and fast, and would flatter us."""
    return RunningEngine(engine=replace(engine, short_lived=False, heap_mb=heap_mb))
