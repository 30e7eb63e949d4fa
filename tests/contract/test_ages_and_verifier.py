"""What operations go by: how old a change is when it is found, and the differences that a verifier shows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry

from hopline.local.ports import free_ports
from indexers.domain.identity import EntityNamespace, Principal
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index
from indexers.settings import OpenSearchSettings
from streams.extract_requests import request_extraction
from streams.health import Liveness
from streams.settings import VerifierSettings
from streams.verifier.metrics import VerifyMetrics
from streams.verifier.service import Runs, VerifierConfig
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.conftest import Stack
from tests.pipeline import REPOSITORY, wait_for

HOUR = 3_600.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("ages")
    config = agent_config(stack, f"t{os.urandom(6).hex()}", [vault_root(folder)])
    async with opened_rig(config) as opened:
        yield opened


async def carry_out(rig: Rig, path: str, text: str, occurred_at: str) -> None:
    await rig.feed(rig.saved(path, text, occurred_at=occurred_at))
    words = await rig.announced()
    await rig.embed_records(words)
    await rig.extract_records(words)
    await rig.link_all()


def freshness(rig: Rig) -> dict[str, tuple[float, float]]:
    """Of each kind: changes that can be found, and the sum of their ages."""
    found = {}
    for until, handler in (("keyword", rig.ingest), ("vector", rig.embed), ("entity", rig.link)):
        value = handler.context.metrics.registry.get_sample_value
        count, total = (
            value(f"hopline_stream_freshness_seconds_{part}", {"until": until}) for part in ("count", "sum")
        )
        assert count is not None
        assert total is not None
        found[until] = (count, total)
    return found


@pytest.mark.engines
@pytest.mark.asyncio(loop_scope="module")
async def test_freshness_is_measured_from_the_change_to_each_of_its_rows(rig: Rig) -> None:
    before = freshness(rig)
    then = (datetime.now(UTC) - timedelta(seconds=HOUR)).isoformat()
    await carry_out(rig, "a.md", "# INC-2041\n\nAlice Novak saw INC-2041 and INC-2042.\n", then)
    after = freshness(rig)
    for until in ("keyword", "vector", "entity"):
        assert after[until][0] - before[until][0] == 1, until
        assert HOUR < after[until][1] - before[until][1] < HOUR + 120, until
    # An extraction that is asked for anew follows from no change.
    producer = rig.extract.context.producer
    await request_extraction(
        producer, rig.config.topics, EntityNamespace.of(rig.home), reason="test", whole=True
    )
    assert await rig.extract_asked() == 1
    await rig.link_all()
    assert freshness(rig) == after


@pytest.mark.engines
@pytest.mark.asyncio(loop_scope="module")
async def test_a_verifier_shows_what_two_looks_find(rig: Rig) -> None:
    await carry_out(rig, "b.md", "# Ben\n\nBen Carter.\n", datetime.now(UTC).isoformat())
    runs = opened_runs(rig)
    assert await runs.once()
    shown = runs.metrics.registry.get_sample_value
    labels = {"root": rig.root.name, "kind": "orphan_document"}
    assert shown("hopline_verify_findings", labels) == 0
    first = shown("hopline_verify_last_run_timestamp_seconds")
    doc_id = rig.home.document("b.md").doc_id
    principal = Principal.pipeline(rig.home.tenant_id)
    removal = RowWrite(
        principal=principal, index=Index.DOCUMENTS, row_id=doc_id, action="delete", version=10**17
    )
    await rig.gate.write([removal])
    assert await runs.once()
    assert shown("hopline_verify_findings", labels | {"kind": "missing_document"}) == 1
    assert shown("hopline_verify_findings", labels) == 0
    # Where the store is away nothing new is known: what was found stands.
    last = shown("hopline_verify_last_run_timestamp_seconds")
    assert first is not None
    assert last is not None
    assert last > first
    away = replace(rig.config, opensearch_url="http://127.0.0.1:1", opensearch=OpenSearchSettings())
    gate = away.gate(RetryPolicy.once())
    assert not await replace(runs, gate=gate).once()
    await gate.close()
    assert shown("hopline_verify_failed_runs_total") == 1
    assert shown("hopline_verify_findings", labels | {"kind": "missing_document"}) == 1
    assert shown("hopline_verify_last_run_timestamp_seconds") == last


def opened_runs(rig: Rig) -> Runs:
    config = VerifierConfig(
        agent=rig.config,
        settings=VerifierSettings(settle_seconds=0),
        roots=lambda: rig.config.roots,
        every_seconds=1,
    )
    return Runs(
        config=config,
        gate=rig.gate,
        metrics=VerifyMetrics(CollectorRegistry()),
        liveness=Liveness(limit_seconds=60),
    )


def test_a_verifier_goes_on_while_the_store_is_away_and_ends_at_once(tmp_path: Path) -> None:
    port = free_ports()
    own = {name: value for name, value in os.environ.items() if not name.startswith("HOPLINE_")}
    settings = {
        "PYTHONPATH": str(REPOSITORY),
        "HOPLINE_VERIFIER__HTTP_PORT": str(port),
        "HOPLINE_OPENSEARCH__URL": "http://127.0.0.1:1",
        "HOPLINE_LOCAL__DATA_DIR": str(tmp_path / "data"),
        "HOPLINE_VAULTS": json.dumps([{"name": "notes", "path": str(tmp_path)}]),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "hopline", "verify", "--every", "1"],
        env=own | settings,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            wait_for(lambda: failed_runs(port) >= 2, 60, "a second run")
            assert status(port, "/livez") == status(port, "/readyz") == 200
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=5)
        finally:
            process.kill()
    assert process.returncode == 0
    assert [json.loads(line)["event"] for line in log.splitlines()][-1] == "verifier.stopped"


def failed_runs(port: int) -> float:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
    except OSError:
        return 0
    return sum(
        float(line.split()[1]) for line in lines if line.startswith("hopline_verify_failed_runs_total")
    )


def status(port: int, path: str) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
        found: int = response.status
        return found
