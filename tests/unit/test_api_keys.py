"""API keys: the file, and who a header makes the asker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hopline.local_key import local_key_file, read_local_key, write_local_key
from indexers.domain.identity import AgentId, Principal, TeamId, TenantId
from indexers.errors import ConfigurationError
from search_api.auth import KeyRing
from search_api.keys import generate_key, key_digest, read_keys, store_key

ADA = Principal(
    tenant_id=TenantId("acme"), agent_id=AgentId("ada"), teams=(TeamId("ops"),), roles=("agent", "curator")
)
BOB = Principal(tenant_id=TenantId("zeta"), agent_id=AgentId("bob"))


def test_a_stored_key_makes_its_principal_and_is_not_in_the_file(tmp_path: Path) -> None:
    path, key = tmp_path / "deep" / "keys.json", generate_key()
    store_key(path, key, ADA)
    assert KeyRing(path).principal_of(f"Bearer {key}") == ADA
    assert KeyRing(path).principal_of(f"bearer  {key} ") == ADA
    assert key not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["keys.json"]


def test_keys_are_long_different_and_recognisable() -> None:
    keys = {generate_key() for _ in range(50)}
    assert len(keys) == 50
    assert all(key.startswith("hop_") and len(key) >= 47 for key in keys)


def test_storing_keeps_other_keys_and_replaces_its_own(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    store_key(path, "one", ADA)
    store_key(path, "two", BOB)
    store_key(path, "one", BOB)
    assert [(e.sha256, e.tenant) for e in read_keys(path)] == [
        (key_digest("two"), "zeta"),
        (key_digest("one"), "zeta"),
    ]


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic one", "one", "Bearer two", "Bearer onE", "Bearer one two"],
)
def test_anything_else_makes_nobody(tmp_path: Path, header: str | None) -> None:
    store_key(tmp_path / "keys.json", "one", ADA)
    assert KeyRing(tmp_path / "keys.json").principal_of(header) is None


def test_the_hash_of_a_key_is_no_key(tmp_path: Path) -> None:
    store_key(tmp_path / "keys.json", "one", ADA)
    assert KeyRing(tmp_path / "keys.json").principal_of(f"Bearer {key_digest('one')}") is None


def test_added_and_withdrawn_keys_count_from_the_next_request(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    ring = KeyRing(path)
    assert ring.principal_of("Bearer one") is None
    store_key(path, "one", ADA)
    assert ring.principal_of("Bearer one") == ADA
    store_key(path, "two", BOB)
    assert ring.principal_of("Bearer two") == BOB
    path.unlink()
    assert ring.principal_of("Bearer one") is None


def test_a_file_that_becomes_wrong_keeps_the_known_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    store_key(path, "one", ADA)
    ring = KeyRing(path)
    path.write_text("{half")
    assert ring.principal_of("Bearer one") == ADA
    path.unlink()
    store_key(path, "two", BOB)
    assert ring.principal_of("Bearer one") is None


GOOD: dict[str, Any] = {"sha256": "0" * 64, "tenant": "acme", "agent": "ada"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no key file"),
        ("[]", "no key file"),
        ('{"keys": 1}', "no key file"),
        ('{"kees": []}', "kees"),
        (json.dumps({"keys": [GOOD | {"sha256": "abc"}]}), "key 0: sha256"),
        (json.dumps({"keys": [GOOD, GOOD | {"tenant": "a/b"}]}), "key 1: 'a/b'"),
        (json.dumps({"keys": [GOOD | {"teams": [".x"]}]}), "'.x'"),
        (json.dumps({"keys": [GOOD | {"roles": ["pipeline"]}]}), "roles may be"),
        (json.dumps({"keys": [GOOD | {"roles": ["root"]}]}), "no key file"),
        (json.dumps({"keys": [{"sha256": "0" * 64, "tenant": "acme"}]}), "agent"),
        (json.dumps({"keys": [GOOD | {"tenent": "x"}]}), "tenent"),
    ],
)
def test_a_wrong_file_is_named_at_start(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"keys\.json") as error:
        KeyRing(path)
    assert says in str(error.value)


def test_the_pipelines_role_can_not_be_stored(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        store_key(tmp_path / "keys.json", "one", Principal.pipeline(TenantId("acme")))
    assert not (tmp_path / "keys.json").exists()


def test_the_local_key(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    assert read_local_key(data_dir) is None
    write_local_key(data_dir, "hop_x")
    assert read_local_key(data_dir) == "hop_x"
    assert local_key_file(data_dir).stat().st_mode & 0o777 == 0o600
