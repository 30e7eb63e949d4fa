"""Which Java is taken, and what is said when none will do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hopline.local.java import Java, find_java, find_maven, parse_release, parse_version
from indexers.errors import ConfigurationError


def jdk(folder: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").touch(mode=0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n', encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param("25", 25, id="feature release"),
        pytest.param("21.0.4", 21, id="update"),
        pytest.param("1.8.0_402", 8, id="old scheme"),
        pytest.param('"17.0.15"', 17, id="quoted"),
        pytest.param("26-ea", 26, id="early access"),
        pytest.param("", None, id="nothing"),
        pytest.param("unknown", None, id="words"),
    ],
)
def test_version_is_the_feature_release(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_release_file_is_key_value() -> None:
    assert parse_release('A="1 2"\nnonsense\nB=3\n') == {"A": "1 2", "B": "3"}


def test_named_home_is_taken(tmp_path: Path) -> None:
    named, other = jdk(tmp_path / "named", "21.0.1"), jdk(tmp_path / "other", "25")
    assert find_java({"HOPLINE_JAVA_HOME": str(named)}, folders=[other]) == Java(home=named, version=21)


def test_named_home_that_is_too_old_is_refused_though_another_would_do(tmp_path: Path) -> None:
    named, other = jdk(tmp_path / "named", "17.0.1"), jdk(tmp_path / "other", "25")
    with pytest.raises(ConfigurationError, match=r"HOPLINE_JAVA_HOME=.*Java 17; Java 21 or newer"):
        find_java({"HOPLINE_JAVA_HOME": str(named)}, folders=[other])


def test_named_home_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no bin/java in it.*apt-get install"):
        find_java({"HOPLINE_JAVA_HOME": str(tmp_path / "absent")}, folders=[])


def test_java_home_comes_before_the_system(tmp_path: Path) -> None:
    home, system = jdk(tmp_path / "home", "21"), jdk(tmp_path / "system", "25")
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, folders=[system]).home == home


def test_java_home_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    home, system = jdk(tmp_path / "home", "17"), jdk(tmp_path / "system", "25")
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, folders=[system]).home == system


def test_newest_that_was_tried_is_preferred(tmp_path: Path) -> None:
    folders = [jdk(tmp_path / version, version) for version in ("17", "21", "24", "25", "27")]
    assert find_java({"PATH": ""}, folders=folders).version == 25


def test_untried_one_is_better_than_none(tmp_path: Path) -> None:
    folders = [jdk(tmp_path / version, version) for version in ("17", "28", "27")]
    assert find_java({"PATH": ""}, folders=folders).version == 27


def test_trimmed_runtime_is_passed_over(tmp_path: Path) -> None:
    trimmed = jdk(tmp_path / "trimmed", "25", modules="java.base")
    with pytest.raises(ConfigurationError, match=r"trimmed runtime without jdk\.incubator\.vector"):
        find_java({"PATH": ""}, folders=[trimmed])


def test_home_that_the_engines_user_cannot_read_is_passed_over(tmp_path: Path) -> None:
    barred, open_ = jdk(tmp_path / "barred", "25"), jdk(tmp_path / "open", "21")
    found = find_java({"PATH": ""}, folders=[barred, open_], may_run=lambda home: home != barred)
    assert found.home == open_


def test_no_java_says_what_was_seen_and_what_to_install(tmp_path: Path) -> None:
    old = jdk(tmp_path / "old", "17")
    with pytest.raises(ConfigurationError, match=rf"{re.escape(str(old))}: Java 17.*openjdk-21-jdk.*brew"):
        find_java({"PATH": ""}, folders=[old])


def test_no_maven_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="apt-get install maven"):
        find_maven(str(tmp_path))
