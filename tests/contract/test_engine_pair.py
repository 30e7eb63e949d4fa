"""The fault tests' own engines: what was stored is there after a stop and after a kill, at the same address."""

from __future__ import annotations

import json
import urllib.request

import pytest

from tests.engines import EnginePair

pytestmark = pytest.mark.engines


def request(method: str, url: str, body: object = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    call = urllib.request.Request(  # noqa: S310 - loopback
        url, data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(call, timeout=20) as answer:  # noqa: S310 - loopback
        found: dict[str, object] = json.loads(answer.read())
        return found


def test_node_keeps_its_rows_through_kill_and_start(engines: EnginePair, prefix: str) -> None:
    url = f"{engines.opensearch_url}/{prefix}"
    request("PUT", url, {"settings": {"number_of_replicas": 0}})
    request("PUT", f"{url}/_doc/1", {"a": 1})
    engines.opensearch.kill()
    engines.opensearch.start()
    assert request("GET", f"{url}/_doc/1")["_source"] == {"a": 1}


def test_broker_comes_back_at_the_same_address(engines: EnginePair) -> None:
    before = engines.kafka_servers
    engines.kafka.restart()
    assert engines.kafka_servers == before
