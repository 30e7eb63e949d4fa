"""Which engines an evaluation uses, what its settings change, and what a killed one left."""

from __future__ import annotations

import os
import subprocess
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from hopline.evaluation.homes import EvalHome, Manifest, fingerprint, prepare, require_same
from hopline.evaluation.processes import known_engines, require_idle, settings_of, stop_abandoned
from hopline.evaluation.sets import EvalSet, Passage, Question
from hopline.local.folders import StackFolders
from hopline.local.processes import ProcessMark
from hopline.local.state import ProcessState, StackState, write_whole
from hopline.settings import LocalSettings, Settings
from indexers.errors import WrongUsage
from search_api.keys import read_keys
from search_api.settings import SearchSettings
from streams.settings import KafkaSettings

MANIFEST = Manifest(prefix="eval-1", set_name="small", fingerprint="x", vault="/vault")


def settings(folder: Path, **more: object) -> Settings:
    return Settings(local=LocalSettings(data_dir=folder), **more)  # type: ignore[arg-type]


def left_by(supervisor: ProcessMark, *processes: ProcessState) -> StackState:
    return StackState(
        phase="running",
        supervisor_pid=supervisor.pid,
        supervisor_started=supervisor.started,
        processes=list(processes),
    )


def test_engines_of_the_settings_and_of_a_running_stack(tmp_path: Path) -> None:
    assert known_engines(settings(tmp_path)) == ("", "")
    given = settings(tmp_path, kafka=KafkaSettings(bootstrap_servers="broker:9092"))
    assert known_engines(given) == ("broker:9092", "")
    write_whole(StackFolders(tmp_path).state, left_by(ProcessMark.of(os.getpid())))
    assert known_engines(settings(tmp_path)) == ("127.0.0.1:8471", "http://127.0.0.1:8473")


def test_its_settings_are_the_callers_but_for_what_must_be_its_own(tmp_path: Path) -> None:
    caller = settings(tmp_path, search=SearchSettings(candidates=77), log_level="ERROR")
    home = EvalHome.of(caller, "eval-1")
    own = settings_of(caller, home, MANIFEST)
    assert (own.search.candidates, own.log_level) == (77, "ERROR")
    assert (own.prefix, own.search.query_cache_entries) == ("eval-1", 0)
    assert own.local.data_dir == home.folder == tmp_path / "evaluations" / "eval-1"
    assert [(root.path, root.tenant) for root in own.vaults] == [(Path("/vault"), "eval")]
    assert own.keys_file == home.folder / "keys.json"
    assert len({own.api.port, own.local.kafka_port, own.local.opensearch_port}) == 3


def test_a_home_holds_the_vault_and_one_key_of_its_tenant(tmp_path: Path) -> None:
    labelled = EvalSet(
        name="small",
        folder=tmp_path,
        passages=(Passage(id="a:1", title="A", text="x"),),
        questions=(Question(id="q", text="?"),),
        gold={"q": {"a:1": 1.0}},
    )
    home = EvalHome(tmp_path / "evaluations" / "eval-2")
    manifest = prepare(home, labelled, kafka_servers="", opensearch_url="")
    assert home.read() == manifest
    assert manifest.ids == {"a_1.md": "a:1"}
    assert (home.folder / "vault" / "a_1.md").is_file()
    assert home.key() == home.key()
    assert [(entry.tenant, entry.roles) for entry in read_keys(home.keys_file)] == [("eval", ["agent"])]
    home.remove()
    assert not home.folder.exists()


def test_processes_of_a_killed_evaluation_are_stopped_by_the_next(tmp_path: Path) -> None:
    caller = settings(tmp_path)
    home = EvalHome.of(caller, "eval-1")
    gone = subprocess.Popen(["sleep", "0"])
    dead = ProcessMark(pid=gone.pid, started=0.0)
    gone.wait()
    process = subprocess.Popen(["sleep", "60"])
    mark = ProcessMark.of(process.pid)
    state = ProcessState(
        name="embed", phase="ready", log="", grace_seconds=5.0, pid=mark.pid, started=mark.started
    )
    said: list[str] = []
    write_whole(StackFolders(home.folder).state, left_by(dead, state))
    stop_abandoned(caller, said.append)
    assert process.wait(5) == -15
    assert said == [f"stopping embed (pid {mark.pid}), left by a supervisor that is gone"]
    require_idle(home)


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    home = EvalHome(tmp_path / "evaluations" / "eval-1")
    write_whole(StackFolders(home.folder).state, left_by(ProcessMark.of(os.getpid())))
    with pytest.raises(WrongUsage, match="eval-1 is being evaluated just now"):
        require_idle(home)


def test_what_was_kept_is_of_the_corpus_as_it_was(tmp_path: Path) -> None:
    """A file of the same name and length with another text: the index holds what it said before."""
    vault = tmp_path / "set" / "vault"
    vault.mkdir(parents=True)
    note = vault / "a.md"
    note.write_text("The ferry leaves at nine.", encoding="utf-8")
    labelled = EvalSet(name="set", folder=vault.parent, vault=vault, questions=(), gold={})
    kept = msgspec.structs.replace(MANIFEST, fingerprint=fingerprint(labelled), complete=True)
    require_same(kept, labelled)
    os.utime(note, (0, 0))
    require_same(kept, labelled)
    note.write_text("The ferry leaves at five.", encoding="utf-8")
    with pytest.raises(WrongUsage, match="'set' is another or has changed"):
        require_same(kept, labelled)


def test_a_large_corpus_is_compared_without_being_held(tmp_path: Path) -> None:
    with (tmp_path / "a.md").open("wb") as file:
        file.truncate(64_000_000)
    labelled = EvalSet(name="set", folder=tmp_path, vault=tmp_path, questions=(), gold={})
    tracemalloc.start()
    fingerprint(labelled)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4_000_000
