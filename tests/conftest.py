"""Fixtures of every suite.

`stack`: the real broker and the real search engine; each test takes a `prefix` of its own.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from tests.engines import EnginePair, RunningEngine, running_broker, running_engines

#: Engines that run already (a developer's): tests use them and leave them running.
_GIVEN = {name: os.environ.pop(name, None) for name in ("HOPLINE_TEST_KAFKA", "HOPLINE_TEST_OPENSEARCH")}
#: Which Java runs the engines is the machine's affair, not a setting under test.
_KEPT = ("HOPLINE_JAVA_HOME",)


def pytest_configure() -> None:
    """No setting of the person who runs the tests may reach them: neither environment, nor file, nor data."""
    for name in [name for name in os.environ if name.startswith("HOPLINE_") and name not in _KEPT]:
        del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="hopline-settings-"))
    (folder / "hopline.toml").write_text(f"[local]\ndata_dir = '{folder / 'data'}'\n", encoding="utf-8")
    os.environ["HOPLINE_CONFIG"] = str(folder / "hopline.toml")
    os.environ["HF_HUB_OFFLINE"] = "1"
    # What a shell runs in the background ignores Ctrl-C, and so would every process that a test interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure() -> None:
    shutil.rmtree(Path(os.environ.pop("HOPLINE_CONFIG")).parent, ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Those that need the chart's tools last: in CI they are still being built when the tests begin.

    Where workers share the files out (`--no-loadscope-reorder` leaves that to us), large files go first, so that none
    is left to one worker at the end.
    """
    sizes = Counter(item.path for item in items) if hasattr(config, "workerinput") else Counter()
    items.sort(key=lambda item: ("chart" in item.path.parts, -sizes[item.path]))


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """A command that a test calls in this process sets up the logs of the process: only for itself."""
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.configure(**configured)
    root.handlers[:] = handlers
    root.setLevel(level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Running engines that all tests share: never stop them (`engines` gives a pair that may be stopped)."""

    kafka_servers: str
    opensearch_url: str


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    kafka, opensearch = _GIVEN["HOPLINE_TEST_KAFKA"], _GIVEN["HOPLINE_TEST_OPENSEARCH"]
    if kafka and opensearch:
        yield Stack(kafka_servers=kafka, opensearch_url=opensearch)
        return
    with running_engines() as pair:
        yield Stack(
            kafka_servers=kafka or pair.kafka_servers, opensearch_url=opensearch or pair.opensearch_url
        )


@pytest.fixture(scope="module")
def engines() -> Iterator[EnginePair]:
    """A broker and a node of this module's own: stop, kill and restart them at will.

    Ports and data stay the same. A test leaves both running for the next one.
    """
    with running_engines() as pair:
        yield pair


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningEngine]:
    """A broker of this module's own, without a node: as `engines`."""
    with running_broker() as broker:
        yield broker


@pytest.fixture
def prefix() -> str:
    """First part of the topic, group and index names of one test."""
    return f"t{uuid.uuid4().hex[:12]}"
