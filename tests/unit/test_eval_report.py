"""From outcomes to the table and the plot."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from hopline.evaluation.asking import ContextSeen, Outcome, StageCount, holds_text
from hopline.evaluation.configurations import Configuration
from hopline.evaluation.files import write_report
from hopline.evaluation.metrics import Estimate
from hopline.evaluation.plot import as_svg
from hopline.evaluation.results import Evaluated, Measured, Report, Run, StageMean, measure
from hopline.evaluation.sets import Question
from hopline.evaluation.table import as_text
from indexers.errors import HoplineError

EASY = Question(id="e", text="?", type="easy", answer="x")
HARD = Question(id="h", text="?", type="hard")
GOLD = {"e": {"a": 1.0}, "h": {"b": 1.0, "c": 1.0}}


def stage(before: int, after: int) -> StageCount:
    return StageCount(stage="walk", candidates_in=before, candidates_out=after, ms=1.0)


def measured(name: str = "hybrid") -> Measured:
    outcomes = [
        Outcome(
            question=EASY,
            found=("a", "z"),
            milliseconds=10.0,
            stale=1,
            healths=(0.4, 0.9),
            stages=(stage(10, 20),),
            context=ContextSeen(tokens=100, holds_answer=True),
        ),
        Outcome(
            question=HARD,
            found=("z", "b"),
            milliseconds=30.0,
            healths=(1.0, 1.0),
            stages=(stage(20, 20),),
            context=ContextSeen(tokens=300, holds_answer=None),
        ),
    ]
    return measure(Configuration(name=name, what="words and vectors"), outcomes, GOLD, seed=1)


def report(*configurations: Measured) -> Report:
    return Report(
        set_name="small",
        questions=2,
        unjudged=1,
        documents=4,
        indexed=4,
        embedding_model="m",
        context_budget=500,
        seed=1,
        confidence=0.95,
        configurations=list(configurations),
    )


def test_outcomes_become_means_by_type() -> None:
    found = measured()
    assert {name: value.mean for name, value in found.all.items()} == {
        "recall@2": 0.75,
        "recall@5": 0.75,
        "recall@10": 0.75,
        "precision@5": 0.2,
        "mrr@10": 0.75,
        "ndcg@10": pytest.approx((1 + 0.6309297535714575 / 1.6309297535714575) / 2),
    }
    assert {kind: of["recall@5"] for kind, of in found.types.items()} == {
        "easy": Estimate(mean=1.0, low=1.0, high=1.0, count=1),
        "hard": Estimate(mean=0.5, low=0.5, high=0.5, count=1),
    }
    assert (found.latency_ms_p50, found.latency_ms_p95) == (10.0, 30.0)
    assert (found.stale, found.low_health) == (0.25, 0.25)
    assert found.stages == [StageMean(stage="walk", on=True, candidates_in=15.0, candidates_out=20.0, ms=1.0)]
    assert found.context_tokens.mean == 200.0
    assert found.answer_in_context == Estimate(mean=1.0, low=1.0, high=1.0, count=1)


def test_the_table_names_every_configuration_and_type() -> None:
    assert as_text(report(measured("bm25"), measured("default"))).splitlines() == [
        "small: 2 questions, 1 without a right document left out; 4 of 4 documents indexed",
        "",
        "          R@2            R@5  R@10   P@5   MRR  nDCG  p50 ms  p95 ms  stale  unwell  tokens  answer",
        "bm25     75.0  75.0 [50–100]  75.0  20.0  75.0  69.3      10      30   25.0    25.0     200   100.0",
        "default  75.0  75.0 [50–100]  75.0  20.0  75.0  69.3      10      30   25.0    25.0     200   100.0",
        "",
        "R@5 with its 95% interval; all but times and tokens in per cent.",
        "",
        "R@5 by type of question (their number)",
        "           bm25  default",
        "easy (1)  100.0    100.0",
        "hard (1)   50.0     50.0",
        "",
        "Candidates by stage, default",
        "        in   out    ms",
        "walk  15.0  20.0  1.00",
    ]


def staged(name: str, *stages: tuple[str, bool]) -> Measured:
    """As `measured`, with stages of which each has ten candidates."""
    means = [
        StageMean(stage=stage, on=on, candidates_in=10.0, candidates_out=10.0, ms=1.0) for stage, on in stages
    ]
    return msgspec.structs.replace(measured(name), stages=means)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ((staged("default", ("walk", True)), staged("bm25", ("a", True), ("b", True))), "default"),
        ((staged("hybrid", ("a", True), ("b", True)), staged("bm25", ("a", True), ("b", False))), "hybrid"),
        ((staged("bm25", ("a", True)), staged("hybrid", ("b", True))), "hybrid"),
        ((staged("default"), staged("bm25", ("a", True)), staged("grep")), "bm25"),
    ],
)
def test_the_stages_are_those_of_default_or_of_the_configuration_with_most(
    asked: tuple[Measured, ...], shown: str
) -> None:
    headings = [line for line in as_text(report(*asked)).splitlines() if line.startswith("Candidates")]
    assert headings == [f"Candidates by stage, {shown}"]


def test_what_was_not_measured_is_a_dash() -> None:
    bare = measure(
        Configuration(name="grep", what="words"),
        [Outcome(question=EASY, found=(), milliseconds=1.0)],
        GOLD,
        seed=0,
    )
    row = next(line for line in as_text(report(bare)).splitlines() if line.startswith("grep"))
    assert row.split() == ["grep", "0.0", "0.0", "[0–0]", *["0.0"] * 4, "1.0", "1.0", "0.0", "–", "–", "–"]


def test_the_plot_is_xml_with_a_bar_for_each_configuration_and_type() -> None:
    root = ET.fromstring(as_svg(report(measured("a<b"), measured("default"))))  # noqa: S314 - our own text
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text in ("a<b", "default")] == ["a<b", "default"] * 3
    assert "small: recall@5, 2 questions, 95% intervals" in texts
    assert "hard (1 questions)" in texts


@pytest.mark.parametrize(
    ("text", "answer", "holds"),
    [
        ("They left on  7 May\n2023.", "7 may 2023", True),
        ("It was 1987.", "198", False),
        ("the notes", "note", False),
        ("부산에서 만났다", "부산", True),
        ("costs £61,300 in all", "£61,300", True),
        ("C++ (and more)", "c++", True),
    ],
)
def test_an_answer_in_a_context(text: str, answer: str, *, holds: bool) -> None:
    assert holds_text(text, answer) is holds


def test_a_report_leaves_numbers_a_plot_and_what_was_found(tmp_path: Path) -> None:
    whole = report(measured("bm25"))
    found = Evaluated(report=whole, runs={"bm25": [Run(id="e", docs=("a", "z")), Run(id="h", docs=())]})
    files = write_report(found, tmp_path / "new")
    assert [path.relative_to(tmp_path / "new").as_posix() for path in files] == [
        "small.json",
        "small.svg",
        "runs/small.bm25.jsonl",
    ]
    assert msgspec.json.decode(files[0].read_bytes(), type=Report) == whole
    assert files[2].read_text() == '{"id":"e","docs":["a","z"]}\n{"id":"h","docs":[]}\n'
    (tmp_path / "file").write_text("")
    with pytest.raises(HoplineError, match="can't be written to"):
        write_report(found, tmp_path / "file")
