"""What root prepares for OpenSearch's user: nothing that user plants makes root touch something else.

Run by root (as in CI) the node's user is `nobody`; run by anybody else there is no other user to give to, and
the same assertions hold for the links in the configuration.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hopline.local.engine_homes import EngineHome
from hopline.local.engines import OpenSearchNode
from hopline.local.java import Java
from hopline.local.ownership import give, to_give
from hopline.local.processes import OsUser, engine_user
from indexers.errors import ConfigurationError

STRANGER = OsUser(name="stranger", uid=54_321, gid=54_321)


def node(folder: Path, user: OsUser | None) -> OpenSearchNode:
    return OpenSearchNode(
        home=EngineHome(name="opensearch", version="0", folder=folder / "home"),
        java=Java(home=folder / "jdk", version=21),
        data_dir=folder / "node",
        log=folder / "node.log",
        port=1,
        heap_mb=1,
        user=user,
    )


def test_links_are_never_given_away(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's")
    (tmp_path / "given" / "sub").mkdir(parents=True)
    for name in ("file", "sub/file"):
        (tmp_path / "given" / name).touch()
    (tmp_path / "given" / "link").symlink_to(secret)
    (tmp_path / "given" / "folder").symlink_to(tmp_path)
    (tmp_path / "given" / "sub" / "hard").hardlink_to(secret)
    handle = os.open(tmp_path / "given", os.O_RDONLY)
    try:
        assert sorted(entry.path for entry in to_give(handle, STRANGER)) == ["file", "sub", "sub/file"]
        own = OsUser(name="me", uid=os.geteuid(), gid=os.getegid())
        assert list(to_give(handle, own)) == []
    finally:
        os.close(handle)


def test_a_link_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(tmp_path)
    with pytest.raises(ConfigurationError, match=r"data is no folder .*: remove it"):
        give(tmp_path / "data", STRANGER)


def test_what_the_nodes_user_planted_is_neither_written_nor_given_away(tmp_path: Path) -> None:
    user = engine_user("nobody")
    prepared = node(tmp_path, user)
    prepared.prepare()
    folder, secret = prepared.data_dir, tmp_path / "secret"
    secret.write_text("ours")
    os.chmod(secret, 0o600)  # noqa: PTH101 - beside the chown below
    for path in ("conf/opensearch.yml", "conf/log4j2.properties"):
        (folder / path).unlink()
    for path in ("conf/opensearch.yml", "conf/log4j2.properties", "conf/more", "data/evil", ".conf"):
        (folder / path).symlink_to(secret)
    if user is not None:
        # As older versions left it: all of it, the folder itself included, was the user's.
        for found in (folder, *(p for p in folder.rglob("*") if not p.is_symlink())):
            os.chown(found, user.uid, user.gid)
    prepared.prepare()
    me = os.geteuid()
    node_uid = me if user is None else user.uid
    assert (secret.read_text(), secret.stat().st_uid, secret.stat().st_mode & 0o777) == ("ours", me, 0o600)
    assert sorted(path.name for path in (folder / "conf").iterdir()) == [
        "log4j2.properties",
        "opensearch.yml",
    ]
    assert "http.port: 1\n" in (folder / "conf" / "opensearch.yml").read_text()
    assert {path.name: path.lstat().st_uid for path in folder.iterdir()} == dict.fromkeys(
        ("conf", "data", "logs", "tmp"), node_uid
    )
    assert [path.stat().st_uid for path in (folder, folder / "conf" / "opensearch.yml")] == [me, me]
    assert not (folder / ".conf").exists()


def test_a_planted_folder_is_refused_where_another_user_runs_the_node(tmp_path: Path) -> None:
    user = engine_user("nobody") or OsUser(name="me", uid=os.geteuid(), gid=os.getegid())
    prepared = node(tmp_path, user)
    prepared.prepare()
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    shutil.rmtree(prepared.data_dir / "data")
    (prepared.data_dir / "data").symlink_to(outside)
    with pytest.raises(ConfigurationError, match="data is no folder"):
        prepared.prepare()
    assert outside.stat().st_uid == os.geteuid()
