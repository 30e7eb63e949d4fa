"""What `hopline up` leaves beside the data before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hopline.local.bootstrap import LOCAL_USER, OPERATOR, ensure_keys
from hopline.local_key import (
    installation_secret,
    local_key_file,
    operator_key_file,
    read_local_key,
    read_operator_key,
)
from hopline.service_address import admin_key, api_key
from hopline.settings import LocalSettings, Settings
from indexers.domain.identity import INSTALLATION
from indexers.errors import ConfigurationError
from indexers.settings import VaultRoot
from search_api.auth import KeyRing
from search_api.settings import ApiSettings


def settings(folder: Path, **more: Any) -> Settings:
    return Settings(local=LocalSettings(data_dir=folder), **more)


def test_secret_and_keys_are_made_once_and_for_their_owner_only(tmp_path: Path) -> None:
    own = settings(tmp_path / "data")
    ensure_keys(own)
    folder = own.local.data_dir
    made = {path.name: (path.read_bytes(), path.stat().st_mode & 0o777) for path in folder.iterdir()}
    assert {name: mode for name, (_, mode) in made.items()} == dict.fromkeys(
        ("installation-secret", "keys.json", "api-key", "operator-key"), 0o600
    )
    ensure_keys(own)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name: content for name, (content, _) in made.items()
    }
    ring = KeyRing(own.keys_file)
    assert ring.find(read_local_key(folder) or "") == LOCAL_USER
    assert ring.find(read_operator_key(folder) or "") == OPERATOR


def test_a_lost_entry_of_the_key_file_is_made_good_with_the_same_key(tmp_path: Path) -> None:
    own = settings(tmp_path)
    ensure_keys(own)
    keys = [read_local_key(tmp_path), read_operator_key(tmp_path)]
    own.keys_file.unlink()
    ensure_keys(own)
    assert [read_local_key(tmp_path), read_operator_key(tmp_path)] == keys
    assert KeyRing(own.keys_file).find(keys[1] or "") == OPERATOR


def test_commands_take_the_users_key_and_admin_commands_the_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = settings(tmp_path)
    ensure_keys(own)
    assert api_key(own) == local_key_file(tmp_path).read_text().strip()
    assert admin_key(own) == operator_key_file(tmp_path).read_text().strip()
    operator_key_file(tmp_path).unlink()
    assert admin_key(own) == api_key(own)
    monkeypatch.setenv("HOPLINE_API_KEY", "given")
    assert (api_key(own), admin_key(own)) == ("given", "given")


def test_a_secret_that_was_named_is_never_made(tmp_path: Path) -> None:
    named = tmp_path / "mounted"
    own = settings(tmp_path / "data", api=ApiSettings(secret_file=named))
    with pytest.raises(ConfigurationError, match="mounted"):
        ensure_keys(own)
    named.write_text("s" * 40)
    ensure_keys(own)
    assert installation_secret(own).derive("a") == installation_secret(own).derive("a")
    assert not (tmp_path / "data" / "installation-secret").exists()


def test_no_vault_is_the_installations(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'hopline' is the installation's own"):
        VaultRoot(name="v", path=tmp_path, tenant=INSTALLATION)
