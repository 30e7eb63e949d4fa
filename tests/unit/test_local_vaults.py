"""Vaults that were named on the command line are found again by every later command."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopline.local.vaults import FILE, forget, join_vaults, name_vaults, read_remembered, remember
from hopline.settings import load_settings
from indexers.errors import ConfigurationError
from indexers.settings import VaultRoot
from indexers.vault.roots import require_distinct


def test_remembered_vaults_come_back(tmp_path: Path) -> None:
    roots = (VaultRoot(name="a", path=tmp_path), VaultRoot(name="나의-노트", path=tmp_path / "b"))
    remember(tmp_path, roots)
    assert read_remembered(tmp_path) == roots


def test_nothing_is_remembered_at_first(tmp_path: Path) -> None:
    assert read_remembered(tmp_path / "absent") == ()


@pytest.mark.parametrize("text", ["{", "3", '[{"name": "a"}]'])
def test_edited_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=FILE):
        read_remembered(tmp_path)


def test_names_come_from_the_folders_and_are_distinct(tmp_path: Path) -> None:
    folders = [tmp_path / "my notes", tmp_path / "x" / "my notes", tmp_path / "y" / "…"]
    for folder in folders:
        folder.mkdir(parents=True)
    assert [root.name for root in name_vaults(folders, [])] == ["my-notes", "my-notes-2", "vault"]


def test_known_folder_is_not_named_again(tmp_path: Path) -> None:
    known = VaultRoot(name="mine", path=tmp_path)
    assert name_vaults([tmp_path, tmp_path / "."], [known]) == ()


def test_absent_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no folder there"):
        name_vaults([tmp_path / "absent"], [])


def test_settings_win_over_what_is_remembered(tmp_path: Path) -> None:
    mine = VaultRoot(name="mine", path=tmp_path, tenant="acme")
    other = VaultRoot(name="other", path=tmp_path / "other")
    remembered = (VaultRoot(name="again", path=tmp_path), other)
    assert join_vaults([mine], remembered) == (mine, other)


def test_every_command_knows_the_remembered_vaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPLINE_LOCAL__DATA_DIR", str(tmp_path))
    remembered = VaultRoot(name="notes", path=tmp_path / "notes")
    remember(tmp_path, [remembered])
    assert load_settings().vaults == (remembered,)


def folders_of(tmp_path: Path, *names: str) -> list[Path]:
    folders = [tmp_path / name for name in names]
    for folder in folders:
        folder.mkdir(parents=True)
    return folders


def test_folders_named_together_have_namespaces_of_their_own_that_one_key_sees(tmp_path: Path) -> None:
    named = name_vaults(folders_of(tmp_path, "a", "b", "x/b"), [])
    require_distinct(named)
    owners = [(root.name, root.tenant, root.agent, root.scope) for root in named]
    assert owners == [
        ("a", "local", "me", "shared"),
        ("b", "local", "b", "shared"),
        ("b-2", "local", "b-2", "shared"),
    ]


def test_one_today_another_tomorrow_leaves_the_first_as_it_was(tmp_path: Path) -> None:
    first, second = folders_of(tmp_path, "notes", "me")
    today = name_vaults([first], [])
    remember(tmp_path, today)
    tomorrow = name_vaults([second, first], read_remembered(tmp_path))
    remember(tmp_path, (*read_remembered(tmp_path), *tomorrow))
    everything = read_remembered(tmp_path)
    require_distinct(everything)
    assert everything[0] == today[0]
    assert [(root.name, root.agent) for root in everything] == [("notes", "me"), ("me-2", "me-2")]


@pytest.mark.parametrize("by_path", [False, True])
def test_remembered_vault_is_forgotten_by_name_or_folder(tmp_path: Path, *, by_path: bool) -> None:
    kept, gone = name_vaults(folders_of(tmp_path, "kept", "gone"), [])
    remember(tmp_path, [kept, gone])
    assert forget(tmp_path, str(gone.path) if by_path else "gone") == gone
    assert read_remembered(tmp_path) == (kept,)


def test_vault_that_is_not_remembered_is_not_forgotten(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no remembered vault is 'x'; remembered: none"):
        forget(tmp_path, "x")
