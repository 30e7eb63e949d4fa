"""`hopline init`: an installation's topics, indices and tenants, on the real engines; and its secrets, without any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hopline.local.bootstrap import OPERATOR
from indexers.opensearch.connect import request
from search_api.auth import KeyRing
from search_api.identity.register import tenant_register
from search_api.identity.secret import InstallationSecret
from streams.admin import delete_topics, topic_widths
from streams.settings import KafkaSettings
from streams.topics import Topics
from tests.conftest import Stack
from tests.store import opened_gate


def init(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hopline", "init", *words],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
async def topics(stack: Stack, prefix: str) -> AsyncIterator[Topics]:
    made = Topics(prefix)
    yield made
    await delete_topics(KafkaSettings(), stack.kafka_servers, tuple(made.retention_ms))


@pytest.mark.engines
async def test_init_makes_topics_indices_and_tenants_and_leaves_them_the_second_time(
    stack: Stack, topics: Topics
) -> None:
    env = {
        "HOPLINE_PREFIX": topics.prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": stack.kafka_servers,
        "HOPLINE_KAFKA__PARTITIONS": "3",
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
        "HOPLINE_VAULTS": json.dumps([{"name": "notes", "path": "/nowhere", "tenant": "acme"}]),
    }
    async with opened_gate(stack.opensearch_url, topics.prefix, ensure=False) as gate:
        register, found = tenant_register(gate), []
        client = gate._client
        # The second time with other wishes: what is there stays as it is.
        for more in ({}, {"HOPLINE_KAFKA__PARTITIONS": "5"}):
            done = init(env=env | more)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == f"topics, indices and tenants of {topics.prefix} are there\n"
            widths = await topic_widths(KafkaSettings(), stack.kafka_servers, tuple(topics.retention_ms))
            indices = await request(
                client, "GET", f"/_cat/indices/{topics.prefix}*", params={"format": "json"}
            )
            found.append(
                (widths, {row["index"]: row["uuid"] for row in indices}, await register.read("acme"))
            )
            assert await register.read("local") is None
    assert found[0] == found[1]
    widths, indices, tenant = found[0]
    assert widths == dict.fromkeys(topics.retention_ms, 3)
    assert len(indices) > 3
    assert tenant is not None


def test_init_says_which_engine_is_away(stack: Stack, prefix: str) -> None:
    env = {
        "HOPLINE_PREFIX": prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
    }
    done = init(env=env)
    assert done.returncode == 1
    assert "Kafka doesn't answer at 127.0.0.1:1" in done.stderr


def test_secrets_are_made_once_and_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    read = []
    for _ in range(2):
        done = init("--secrets", str(folder), env={})
        assert (done.returncode, done.stderr) == (0, "")
        paths = [Path(line) for line in done.stdout.splitlines()]
        read.append({path.name: path.read_bytes() for path in paths})
        assert {path.stat().st_mode & 0o777 for path in paths} == {0o600}
        assert set(paths) == set(folder.iterdir())
    assert read[0] == read[1]
    assert list(read[0]) == ["installation-secret", "keys.json", "operator-key"]
    key = read[0]["operator-key"].decode().strip()
    assert KeyRing(folder / "keys.json").find(key) == OPERATOR
    InstallationSecret.read(folder / "installation-secret")
