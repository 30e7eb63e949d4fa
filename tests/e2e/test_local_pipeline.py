"""`hopline up` on existing engines: its vaults are indexed, searched, remembered and forgotten."""

from __future__ import annotations

import json
import os
import signal
import stat
import time

from hopline.local.ports import free_ports
from tests.conftest import Stack
from tests.local_stack import LocalStack, process, wait_until_ready


def test_existing_engines_are_used_and_none_is_started(local: LocalStack, stack: Stack) -> None:
    local.settings |= {
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": stack.kafka_servers,
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
    }
    code, out, err = local.run("up", "--engines-only")
    assert (code, err) == (0, "")
    assert f"using the existing Kafka at {stack.kafka_servers}" in out
    code, status = local.status()
    assert code == 0
    assert [(p["name"], p["phase"], p["ready"]) for p in status["processes"]] == [
        ("kafka", "existing", True),
        ("opensearch", "existing", True),
    ]
    assert local.run("down")[0] == 0


def test_named_vault_is_indexed_searched_and_remembered(local: LocalStack, stack: Stack, prefix: str) -> None:
    vault = local.data_dir.parent / "my notes"
    vault.mkdir()
    (vault / "ferry.md").write_text("# Ferry\nThe ferry stopped: INC-2041, see [[fog]].\n", encoding="utf-8")
    local.settings |= {
        "HOPLINE_PREFIX": prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": stack.kafka_servers,
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
        "HOPLINE_API__PORT": str(free_ports()),
    }
    code, out, err = local.run("up", "--vault", str(vault))
    assert (code, err) == (0, "")
    assert str(vault) in out

    end = time.monotonic() + 60
    while not (found := json.loads(local.run("search", "INC-2041", "--json")[1])["hits"]):
        assert time.monotonic() < end
    assert [hit["path"] for hit in found] == ["ferry.md"]
    assert stat.S_IMODE((local.data_dir / "api-key").stat().st_mode) == 0o600

    code, status = local.status()
    assert code == 0
    assert sorted(status["lag"]) == ["embed", "extract", "ingest", "link"]
    assert [root["root"] for root in status["vaults"]] == ["memory tree", "my-notes"]
    os.kill(process(status, "api")["pid"], signal.SIGKILL)
    assert wait_until_ready(local, "api")["restarts"] == 1

    other = local.data_dir.parent / "other"
    other.mkdir()
    code, _, err = local.run("up", "--vault", str(other))
    assert code == 1
    assert f"running without {other}" in err

    assert local.run("verify")[0] == 0
    assert local.run("down")[0] == 0


def test_two_vaults_named_at_once_are_both_found_with_the_one_key(
    local: LocalStack, stack: Stack, prefix: str
) -> None:
    folders = [local.data_dir.parent / name for name in ("alpha", "beta")]
    for folder in folders:
        folder.mkdir()
        (folder / "note.md").write_text(f"# {folder.name}\nThe word is quokka.\n", encoding="utf-8")
    local.settings |= {
        "HOPLINE_PREFIX": prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": stack.kafka_servers,
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
        "HOPLINE_API__PORT": str(free_ports()),
    }
    code, _, err = local.run("up", "--vault", str(folders[0]), "--vault", str(folders[1]))
    assert (code, err) == (0, "")
    end = time.monotonic() + 60
    while len(found := json.loads(local.run("search", "quokka", "--json")[1])["hits"]) < len(folders):
        assert time.monotonic() < end
    assert sorted(hit["title"] for hit in found) == ["alpha", "beta"]

    assert local.run("up", "--forget-vault", "beta")[0] == 1
    folders[1].rename(local.data_dir.parent / "away")
    end = time.monotonic() + 60
    while local.run("status")[0] != 1:
        assert time.monotonic() < end
        time.sleep(1)
    code, out, _ = local.run("status")
    assert (code, "vault beta: UNAVAILABLE" in out, str(local.data_dir / "logs") in out) == (1, True, True)

    assert local.run("down")[0] == 0
    assert local.run("up", "--forget-vault", "beta")[0] == 0
