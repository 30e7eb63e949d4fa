"""Reading a labelled set: what is taken, and what is said of one that is wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hopline.evaluation.lines import WrongSet
from hopline.evaluation.sets import EvalSet, Metadata, Passage, Question, limited, read_set

REPOSITORY = Path(__file__).resolve().parents[2]
CORPUS = [{"id": "p1", "title": "One", "text": "first"}, {"id": "p2", "title": "Two", "text": "second"}]
QUERIES = [
    {"id": "q1", "text": "which is first", "type": "easy", "answer": "first"},
    {"id": "q2", "text": "other?"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\tp1\t1\n"


def lines(*records: object) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "small"
    root.mkdir()
    (root / "corpus.jsonl").write_text(lines(*CORPUS))
    (root / "queries.jsonl").write_text(lines(*QUERIES))
    (root / "qrels.tsv").write_text(QRELS)
    return root


def test_a_set_of_passages(folder: Path) -> None:
    assert read_set(folder) == EvalSet(
        name="small",
        folder=folder,
        passages=(Passage(id="p1", title="One", text="first"), Passage(id="p2", title="Two", text="second")),
        questions=(Question(id="q1", text="which is first", type="easy", answer="first"),),
        gold={"q1": {"p1": 1.0}},
        unjudged=1,
    )


def test_packed_files_are_read_as_well(folder: Path) -> None:
    expected = read_set(folder)
    for name in ("corpus.jsonl", "queries.jsonl"):
        with gzip.open(folder / f"{name}.gz", "wt") as packed:
            packed.write((folder / name).read_text())
        (folder / name).unlink()
    assert read_set(folder) == expected


def test_a_set_over_a_vault_names_paths(folder: Path) -> None:
    (folder / "corpus.jsonl").unlink()
    (folder / "vault" / "sub").mkdir(parents=True)
    (folder / "vault" / "sub" / "note.md").write_text("first")
    (folder / "qrels.tsv").write_text("q1\tsub/note.md\t2\n")
    found = read_set(folder)
    assert (found.vault, found.passages, found.gold) == (folder / "vault", (), {"q1": {"sub/note.md": 2.0}})


def test_other_questions_and_judgements(folder: Path) -> None:
    (folder / "queries_ko.jsonl").write_text(lines({"id": "k1", "text": "무엇이 첫 번째인가"}))
    (folder / "qrels_ko.tsv").write_text("k1\tp1\t1\n")
    found = read_set(folder, queries=folder / "queries_ko.jsonl", qrels=folder / "qrels_ko.tsv")
    assert [question.id for question in found.questions] == ["k1"]


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("corpus.jsonl", "", "has no passage"),
        ("corpus.jsonl", lines(CORPUS[0]) + "{\n", "corpus.jsonl, line 2:"),
        ("corpus.jsonl", lines({"id": "p1", "title": "One"}), "line 1: Object missing required field `text`"),
        ("corpus.jsonl", lines({"id": 1, "title": "a", "text": "b"}), r"line 1: Expected `str`, got `int`"),
        ("corpus.jsonl", lines({"id": " ", "title": "a", "text": "b"}), "line 1: `id` is empty"),
        ("corpus.jsonl", lines(*CORPUS, CORPUS[0]), "line 3: the id 'p1' is there already"),
        ("queries.jsonl", "\n", "has no question"),
        ("queries.jsonl", lines({"id": "q1", "text": " "}), "line 1: `text` is empty"),
        ("queries.jsonl", lines({"id": "q1", "text": "x" * 2_001}), "line 1: `text` is longer than 2000"),
        ("queries.jsonl", lines(*QUERIES, QUERIES[0]), "line 3: the id 'q1' is there already"),
        ("qrels.tsv", QRELS + "q1\tp9\t1\n", "qrels.tsv, line 3: corpus-id 'p9' is in no other file"),
        ("qrels.tsv", QRELS + "q9\tp1\t1\n", "line 3: query-id 'q9' is in no other file"),
        ("qrels.tsv", QRELS + "q1 p1 1\n", "line 3: 1 columns instead of three"),
        ("qrels.tsv", QRELS + "q1\tp1\t2\n", "line 3: 'p1' is judged twice for 'q1'"),
        ("qrels.tsv", QRELS + "q1\tp2\tgood\n", "line 3: the score 'good' is no number"),
        ("qrels.tsv", QRELS + "q1\tp2\tnan\n", "line 3: the score 'nan' is no number"),
        ("qrels.tsv", "q1\tp1\t0\n", "no question has a right answer"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_its_place(folder: Path, file: str, content: str, says: str) -> None:
    (folder / file).write_text(content)
    with pytest.raises(WrongSet, match=says):
        read_set(folder)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(WrongSet, match=missing):
        read_set(folder)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param(lambda file: file.write_bytes(b"\xff\xfe"), "isn't UTF-8", id="bytes"),
        pytest.param(lambda file: file.rename(f"{file}.gz"), "can't be read", id="packed in name only"),
    ],
)
def test_an_unreadable_file_is_named(folder: Path, spoil: Callable[[Path], object], says: str) -> None:
    spoil(folder / "corpus.jsonl")
    with pytest.raises(WrongSet, match=says):
        read_set(folder)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(WrongSet, match="is no folder"):
        read_set(tmp_path / "nothing")


def test_group_must_be_a_conversation_only_where_there_are_some(folder: Path) -> None:
    (folder / "queries.jsonl").write_text(lines({"id": "q1", "text": "which", "group": "chapter"}))
    assert read_set(folder).questions[0].group == "chapter"
    (folder / "corpus.jsonl").write_text(lines({**CORPUS[0], "metadata": {"conversation": "c1"}}))
    with pytest.raises(WrongSet, match="group 'chapter' of question 'q1' is no passage's conversation"):
        read_set(folder)


def test_metadata_that_is_not_known_does_no_harm(folder: Path) -> None:
    about = {"conversation": "c1", "session": 2, "dia_id": "D1:1", "raw_text": None}
    (folder / "corpus.jsonl").write_text(lines({**CORPUS[0], "metadata": about}))
    assert read_set(folder).passages[0].about == Metadata(conversation="c1", session=2)


@pytest.mark.parametrize(
    ("given", "answers"),
    [(None, ()), ("a", ("a",)), (2022, ("2022",)), (["a", "b"], ("a", "b")), (" ", ())],
)
def test_answers_of_every_form(given: str | int | list[str] | None, answers: tuple[str, ...]) -> None:
    assert Question(id="q", text="t", answer=given).answers == answers


def test_limit_spreads_over_the_file() -> None:
    asked = [Question(id=str(number), text="t") for number in range(10)]
    assert [question.id for question in limited(asked, 4)] == ["0", "2", "5", "7"]
    assert limited(asked, None) == limited(asked, 99) == tuple(asked)


def test_the_set_of_the_example_vault_is_whole() -> None:
    found = read_set(REPOSITORY / "evals" / "examples")
    kinds = {question.type for question in found.questions}
    assert (len(found.questions) >= 40, found.unjudged) == (True, 0)
    assert {
        "exact",
        "fact",
        "paraphrase",
        "procedure",
        "person",
        "hop",
        "time",
        "ko",
        "ko-en",
        "en-ko",
    } == kinds
    assert {grade for grades in found.gold.values() for grade in grades.values()} == {1.0, 2.0}
    assert all(max(grades.values()) == 2.0 for grades in found.gold.values())
