"""Fixtures of every suite. `stack`: the real broker and the real search engine; each test takes a prefix of its own."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Running engines."""

    kafka_servers: str
    opensearch_url: str


@pytest.fixture(scope="session")
def stack() -> Stack:
    return Stack(kafka_servers=os.environ["HOPLINE_TEST_KAFKA"], opensearch_url=os.environ["HOPLINE_TEST_OPENSEARCH"])


@pytest.fixture
def prefix() -> str:
    """First part of the topic, group and index names of one test."""
    return f"t{uuid.uuid4().hex[:12]}"
