"""What `hopline up` refuses before it starts anything, and in which words."""

from __future__ import annotations

import os
import re
import socket

import pytest

from tests.local_stack import LocalStack


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        pytest.param({"HOPLINE_JAVA_HOME": "/nowhere"}, (), r"/nowhere: no bin/java", id="no java"),
        pytest.param(
            {"PATH": "/nowhere", "HOPLINE_LOCAL__CACHE_DIR": "{data}/cache"},
            (),
            "apt-get install maven",
            id="no maven",
        ),
        pytest.param({"HOPLINE_LOCAL__KAFKA_HEAP_MB": "99999999"}, (), "too little memory: ", id="memory"),
        pytest.param(
            {"HOPLINE_LOCAL__DATA_DIR": "/dev/null/x"}, (), "can't write to /dev/null/x", id="folder"
        ),
        pytest.param({"HOPLINE_LOCAL__OPENSEARCH_USER": "no-such"}, (), "no user 'no-such'", id="user"),
        pytest.param({}, ("--vault", "/nowhere"), "--vault /nowhere: no folder there", id="vault"),
        pytest.param({"HOPLINE_BOGUS": "1"}, (), "HOPLINE_BOGUS is no setting", id="setting"),
    ],
)
def test_what_cannot_work_is_refused_in_words(
    local: LocalStack, settings: dict[str, str], arguments: tuple[str, ...], message: str
) -> None:
    if "HOPLINE_LOCAL__OPENSEARCH_USER" in settings and os.geteuid() != 0:
        pytest.skip("only root starts OpenSearch as another user")
    local.settings |= {name: value.format(data=local.data_dir) for name, value in settings.items()}
    code, _, err = local.run("up", "--engines-only", *arguments)
    assert code == 2
    assert re.search(message, err)
    assert "Traceback" not in err


def test_no_vault_says_how_to_name_one(local: LocalStack) -> None:
    code, _, err = local.run("up")
    assert code == 2
    assert "`hopline up --vault FOLDER`" in err


def test_taken_port_is_named_with_its_holder(local: LocalStack) -> None:
    with socket.create_server(("127.0.0.1", local.opensearch_port)):
        code, _, err = local.run("up", "--engines-only")
    assert code == 2
    held = f"port {local.opensearch_port} (OpenSearch) is taken by "
    assert held in err
    assert f"pid {os.getpid()}" in err
    assert "HOPLINE_LOCAL__OPENSEARCH_PORT" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts OpenSearch as another user")
def test_folder_that_the_engines_user_cannot_enter_is_refused(local: LocalStack) -> None:
    closed = local.data_dir.parent / "closed"
    closed.mkdir(mode=0o700)
    local.settings["HOPLINE_LOCAL__DATA_DIR"] = str(closed / "data")
    code, _, err = local.run("up", "--engines-only")
    assert code == 2
    assert f"can't enter {closed}" in err
