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
def engines(arguments: argparse.Namespace) -> Iterator[Addresses]:
    if arguments.kafka and arguments.opensearch:
        yield Addresses(kafka_servers=arguments.kafka, opensearch_url=arguments.opensearch)
        return
    folder = Path(tempfile.mkdtemp(prefix="hopline-bench-"))
    folder.chmod(0o755)
    pair = engine_pair(folder)
    own = [_at_full_speed(running.engine) for running in (pair.kafka, pair.opensearch)]
    try:
        for running in own:
            running.start()
        yield Addresses(kafka_servers=own[0].address, opensearch_url=own[1].address)
    finally:
        for running in own:
            running.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _at_full_speed(engine: KafkaBroker | OpenSearchNode) -> RunningEngine:
    """As `hopline up` starts them. Those of tests compile once and fast, and would flatter us."""
    heap_mb = (
        LocalSettings().opensearch_heap_mb
        if isinstance(engine, OpenSearchNode)
        else LocalSettings().kafka_heap_mb
    )
    return RunningEngine(engine=replace(engine, short_lived=False, heap_mb=heap_mb))
