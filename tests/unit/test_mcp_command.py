"""`hopline mcp` where there is nothing to connect to, and what it costs those who don't use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.pipeline import REPOSITORY


def test_without_a_key_it_says_so_and_ends(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hopline", "mcp"],
        env={"HOPLINE_LOCAL__DATA_DIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"no API key" in done.stderr


def test_the_commands_help_does_not_wait_for_mcp() -> None:
    code = (
        "import sys, hopline.cli.main as m; m.build_app(); "
        "print([n for n in ('mcp', 'mcp_types', 'search_api.app') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
