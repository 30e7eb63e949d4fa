"""How a tool is made once, whoever asks, and what is said where it can't be."""

from __future__ import annotations

import fcntl
import json
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.chart_tools import ChartToolError, tool
from tools.chart_tools.folder import ensure
from tools.chart_tools.making import Item, run
from tools.chart_tools.schemas import unpack_schemas


def item(make: Callable[[Path], None]) -> Item:
    return Item("drill", "1.2", {"drill": "bin"}, make)


def test_a_tool_is_made_once_and_whole(tmp_path: Path) -> None:
    made = []

    def make(folder: Path) -> None:
        assert not (tmp_path / "drill-1.2").exists()
        made.append(folder)
        (folder / "bin").write_text("drill", encoding="utf-8")

    for _ in range(2):
        assert (ensure(item(make), tmp_path) / "bin").read_text(encoding="utf-8") == "drill"
    assert len(made) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "drill-1.2"]


def test_one_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    tries = []

    def make(folder: Path) -> None:
        tries.append(folder)
        (folder / "half").touch()
        raise ChartToolError("no room")

    for _ in range(2):
        with pytest.raises(ChartToolError, match="no room"):
            ensure(item(make), tmp_path)
    assert len(tries) == 2
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_what_a_killed_process_left_is_swept_out(tmp_path: Path) -> None:
    (tmp_path / ".drill-1a2b").mkdir()
    ensure(item(lambda folder: (folder / "bin").touch()), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "drill-1.2"]


def test_one_without_its_files_is_none(tmp_path: Path) -> None:
    with pytest.raises(ChartToolError, match=r"drill 1\.2 was made, but drill isn't there"):
        ensure(item(lambda _folder: None), tmp_path)


def test_who_comes_second_waits_for_the_first(tmp_path: Path) -> None:
    going, go_on = threading.Event(), threading.Event()

    def slow(folder: Path) -> None:
        going.set()
        assert go_on.wait(30)
        (folder / "bin").touch()

    first = threading.Thread(target=ensure, args=(item(slow), tmp_path))
    first.start()
    assert going.wait(30)
    threading.Timer(0.2, go_on.set).start()

    def never(_folder: Path) -> None:
        raise AssertionError

    assert (ensure(item(never), tmp_path) / "bin").exists()
    first.join()


def test_patience_ends_with_a_word_on_who_holds_it(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(
            ChartToolError, match=r"drill-1\.2 was not made within 0 s by the process that holds"
        ):
            ensure(item(lambda _folder: None), tmp_path, patience_seconds=0)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        tool("tiller")


def test_a_command_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(ChartToolError, match=r"(?s)ls nowhere: .*nowhere"):
        run(["ls", "nowhere"], cwd=tmp_path)
    with pytest.raises(ChartToolError, match=r"no-such-compiler is missing"):
        run(["no-such-compiler", "-v"], cwd=tmp_path)


def test_schemas_lead_to_the_file_beside_instead_of_the_web_and_say_no_more_than_needed(
    tmp_path: Path,
) -> None:
    wheel = tmp_path / "schemas.whl"
    place = "kubernetes_validate/kubernetes-json-schema/v1.30.0-local-strict"
    fields = {
        "spec": {"$ref": "/api/_definitions.json#/Spec"},
        "description": {"type": "string", "description": "Why."},
    }
    schema = {"$id": "https://web/pod", "properties": fields}
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{place}/pod-v1.json", json.dumps(schema))
        archive.writestr(f"{place.replace('-strict', '')}/pod-v1.json", "{}")
    unpack_schemas(wheel, "1.30", tmp_path / "1.30")
    [found] = (tmp_path / "1.30").iterdir()
    assert json.loads(found.read_text(encoding="utf-8")) == {
        "properties": {"spec": {"$ref": "_definitions.json#/Spec"}, "description": {"type": "string"}}
    }
    with pytest.raises(ChartToolError, match=r"no schemas of Kubernetes 1\.99"):
        unpack_schemas(wheel, "1.99", tmp_path / "1.99")
