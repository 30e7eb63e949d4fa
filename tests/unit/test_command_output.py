"""Names, titles and reasons are a stranger's: none of them steers the terminal of who reads a command's output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hopline.cli import dlq, entity, stack, trust, watch
from hopline.cli.progress import say
from hopline.cli.terminal import console, print_place, visible
from hopline.document_answers import LinkPlace
from hopline.entity_answers import DocumentMentionPage
from hopline.local.status import StackReport
from indexers.errors import HoplineError
from indexers.ports import VaultProblem
from indexers.verify.report import VerifyReport
from streams.events import DeadLetter
from streams.watcher.status import HeldRemovals, ScanReport

#: A title of the window, a colour (in both forms), an erased line, a turned direction, half a surrogate pair.
HOSTILE = "a\x1b]0;owned\x07\x1b[31m\x9b2K\r\x7f\u202eb\udcff.md"

LETTER = DeadLetter(
    dead_letter_id=HOSTILE,
    agent=HOSTILE,
    topic=HOSTILE,
    partition=0,
    offset=1,
    key=HOSTILE.encode("utf-8", "surrogatepass"),
    value=HOSTILE.encode("utf-8", "surrogatepass"),
    error_class=HOSTILE,
    reason=HOSTILE,
    failed_at="2031-04-05T00:00:00+00:00",
    tenant_id=HOSTILE,
)


def rescan() -> None:
    report = ScanReport(
        finished_at="2031-04-05T00:00:00+00:00",
        seconds=1.0,
        files=1,
        upserted=0,
        moved=0,
        deleted=0,
        problems=(VaultProblem(path=HOSTILE, reason="same_name"),),
        held=HeldRemovals(reason="mass_removal", paths=(HOSTILE,), known=2),
    )
    watch.show_results({"one": report, "two": HoplineError(HOSTILE)})


def verify() -> None:
    report = VerifyReport(root="one", counts=Counter({"missing_document": 1}))
    report.add("missing_document", HOSTILE, HOSTILE)
    trust.show_report(report)


def status() -> None:
    root = {"root": "one", "state": "failed", "files": 1, "detail": HOSTILE}
    found = StackReport(
        running=True, phase="running", message="", processes=[], vaults=[root], data_dir=HOSTILE
    )
    stack._show(found)


def letters() -> None:
    dlq.show_line(LETTER)
    dlq.show_whole(LETTER)


def link() -> None:
    place = LinkPlace(start=0, end=1, display=None, context=HOSTILE, heading=None)
    print_place(console(), place)


@pytest.mark.parametrize("show", [rescan, verify, status, letters, link, lambda: say(HOSTILE)])
def test_no_output_for_people_carries_control_characters(
    show: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    show()
    written = capsys.readouterr().out
    assert "owned" in written
    assert [char for char in written if not char.isprintable() and char != "\n"] == []


def test_what_is_visible() -> None:
    assert visible(HOSTILE) == "a�]0;owned��[31m�2K���b�.md"
    assert visible("한국\té\n" + str(Path("x"))) == "한국\té\nx"


def test_a_document_without_entities_says_what_the_shipped_extractor_reads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entity.show_mentioned(DocumentMentionPage(mentions=[], next_cursor=None))
    assert capsys.readouterr().out.splitlines() == [
        "It mentions nothing that is known, or isn't extracted yet. The shipped extractor reads English names."
    ]
