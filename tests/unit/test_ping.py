"""The health check of the images."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hopline.local.ports import free_ports
from hopline.ping import ping


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/livez"
        finally:
            server.shutdown()
            thread.join()


def test_a_process_that_answers_well_is_enough_wherever_it_stands_in_the_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nobody = f"http://127.0.0.1:{free_ports()}/livez"
    with answering(200, b'{"ok":true,\n"reason":"ready"}') as url:
        assert ping([nobody, url]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"{nobody}: ")
    assert told[1:] == [f'{url}: 200 {{"ok":true, "reason":"ready"}}']


def test_a_stuck_process_and_one_that_is_not_there_are_failures_that_say_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with answering(503, b"work is waiting") as url:
        assert ping([url]) == 1
        assert capsys.readouterr().out == f"{url}: 503 work is waiting\n"
    assert ping([url]) == 1
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    "urls",
    [[], ["127.0.0.1:9090"], ["https://127.0.0.1/"], ["http:///livez"], ["http://a:b/"], ["http://a/", "-h"]],
    ids=lambda urls: " ".join(urls) or "nothing",
)
def test_what_is_no_address_is_wrong_usage(urls: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ping(urls) == 2
    assert capsys.readouterr().err.startswith("usage: hopline-ping")


def test_it_loads_nothing_of_the_command_line() -> None:
    """It runs every few seconds in every container."""
    script = (
        "import sys, hopline.ping; print([m for m in ('typer', 'asyncio', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
