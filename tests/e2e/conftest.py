"""Fixtures of the end-to-end suite."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopline.local.ports import free_ports
from tests.local_stack import LocalStack


@pytest.fixture
def local() -> Iterator[LocalStack]:
    # Not pytest's own folder: it is closed to the user that runs OpenSearch.
    folder = Path(tempfile.mkdtemp(prefix="hopline-stack-"))
    folder.chmod(0o755)
    first = free_ports(2)
    stack = LocalStack(
        data_dir=folder / "data",
        kafka_port=first,
        opensearch_port=free_ports(2, without=(first, first + 1)),
    )
    try:
        yield stack
        assert stack.left_running == []
    finally:
        stack.run("down")
        shutil.rmtree(folder, ignore_errors=True)
