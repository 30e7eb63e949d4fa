from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.entities.windows import MAX_WORDS
from indexers.errors import ConfigurationError, WrongUsage
from tools.train_entities.examples import (
    MAX_LABELS,
    Example,
    batches,
    make_examples,
    question,
    split_held_out,
)
from tools.train_entities.labelled import Entity, LabelledData, LabelledText, read_labelled
from tools.train_entities.metrics import Score, score
from tools.train_entities.run import Wish, check_out, read_material
from tools.train_entities.training import check_base, libraries

ROOT = Path(__file__).resolve().parents[2]


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the order of examples is no secret


def line(text: str, *entities: tuple[int, int, str], **more: object) -> str:
    named = [{"start": start, "end": end, "label": label} for start, end, label in entities]
    return json.dumps({"text": text, "entities": named, **more}, ensure_ascii=False)


ALICE = line("Alice leads Tally.", (0, 5, "person"), (12, 17, "team"))
OSLO = line("Nobody is in Oslo.", (13, 17, "location"), labels=["location"])


def test_texts_are_read_with_the_labels_that_each_was_searched_for() -> None:
    data = read_labelled([ALICE, "", OSLO])
    assert data == LabelledData(
        texts=(
            LabelledText(
                text="Alice leads Tally.",
                entities=(Entity(start=0, end=5, label="person"), Entity(start=12, end=17, label="team")),
            ),
            LabelledText(
                text="Nobody is in Oslo.",
                entities=(Entity(start=13, end=17, label="location"),),
                labels=("location",),
            ),
        ),
        asked=(("location", "person", "team"), ("location",)),
        counts=(("location", 1), ("person", 1), ("team", 1)),
        left_out=0,
    )


def test_other_labels_are_left_out_where_some_are_wanted() -> None:
    data = read_labelled([ALICE, OSLO], labels=["team"])
    assert [len(text.entities) for text in data.texts] == [1, 0]
    assert (data.asked, data.counts, data.left_out) == ((("team",), ()), (("team", 1),), 2)


def test_every_fault_is_told_with_its_line() -> None:
    lines = [
        ALICE,
        "{",
        line("Alice", (0, 9, "person")),
        line("Alice", (0, 4, "person")),
        line("Alice Cole", (0, 5, "person"), (0, 10, "person")),
        line("Bo", (0, 2, " x")),
        json.dumps({"text": "Bo", "entities": [{"start": 0, "end": 2, "label": "x", "surface": "Al"}]}),
        json.dumps({"text": "Bo", "ents": []}),
        line(" "),
        ALICE,
    ]
    with pytest.raises(WrongUsage) as error:
        read_labelled(lines)
    told = str(error.value).split("\n")
    assert told[0] == "9 problems in the labelled texts:"
    assert told[1].startswith("  line 2: no JSON: ")
    assert told[2:] == [
        "  line 3: person 0-9: not within the text (0-5)",
        "  line 4: person 0-4 ('Alic') begins or ends inside of a word",
        "  line 5: person 0-5 and person 0-10 overlap",
        "  line 6: label ' x' is blank, has blanks around it or over 100 characters",
        "  line 7: x 0-2 is 'Bo', not 'Al'",
        "  line 8: Object contains unknown field `ents`",
        "  line 9: a text has 1 to 100,000 characters",
        "  line 10: the same text as line 1",
    ]


@pytest.mark.parametrize(
    ("lines", "labels", "message"),
    [
        ([ALICE], ["service"], "no text has an entity labelled 'service'; there are: person, team"),
        ([line("Alice")], [], "the file has no entities"),
        ([], [], "the file has no entities"),
    ],
)
def test_nothing_to_learn_is_an_error(lines: list[str], labels: list[str], message: str) -> None:
    with pytest.raises(WrongUsage, match=message):
        read_labelled(lines, labels=labels)


def test_examples_are_words_and_spans_of_words() -> None:
    data = read_labelled([line("Alice-Ann Cole, of v2.3", (0, 14, "person"), (19, 23, "version"))])
    assert make_examples(data, max_width=10).examples == (
        Example(
            words=("Alice-Ann", "Cole", ",", "of", "v2", ".", "3"),
            spans=((0, 1, "person"), (4, 6, "version")),
            asked=("person", "version"),
        ),
    )
    assert make_examples(data, max_width=2).too_wide == 1


def test_a_long_text_is_cut_and_every_entity_is_in_a_window() -> None:
    filler = "and so on it went. " * 40
    text = f"Alice left. {filler}Tally stayed. {filler}Oslo."
    spans = [(text.index(name), text.index(name) + len(name), "x") for name in ("Alice", "Tally", "Oslo")]
    examples = make_examples(read_labelled([line(text, *spans)]), max_width=10).examples
    named = {" ".join(e.words[a : b + 1]) for e in examples for a, b, _ in e.spans}
    assert named == {"Alice", "Tally", "Oslo"}
    assert max(len(example.words) for example in examples) <= MAX_WORDS


@given(st.integers(0, 30), st.integers(0, 60), st.integers(0, 9))
def test_a_question_asks_all_present_labels_first(present: int, absent: int, seed: int) -> None:
    labels = [f"p{i}" for i in range(present)]
    example = Example(
        words=("w",) * max(present, 1),
        spans=tuple((i, i, label) for i, label in enumerate(labels)),
        asked=tuple(sorted([*labels, *(f"a{i}" for i in range(absent))])),
    )
    asked = question(example, chance(seed))
    names = asked["ner_labels"]
    assert len(names) == len(set(names)) == min(present + absent, MAX_LABELS)
    assert set(labels[:MAX_LABELS]) <= set(names) <= set(example.asked)
    assert asked["ner"] == [[i, i, label] for i, label in enumerate(labels) if label in names]


def test_batches_hold_each_example_once_and_repeat_by_seed() -> None:
    examples = [Example(words=("w",) * (i % 7 + 1), spans=(), asked=(str(i),)) for i in range(23)]
    first = list(batches(examples, 4, chance(1)))
    assert sorted(e.asked[0] for group in first for e in group) == sorted(str(i) for i in range(23))
    assert max(map(len, first)) == 4
    assert first == list(batches(examples, 4, chance(1))) != list(batches(examples, 4, chance(2)))


def test_a_text_stays_on_its_side_when_others_come() -> None:
    lines = [line(f"Alice {i}", (0, 5, "person")) for i in range(200)]
    learn, test = split_held_out(read_labelled(lines), 0.2)
    more, _ = split_held_out(read_labelled([*lines, ALICE]), 0.2)
    assert len(learn.texts) + len(test.texts) == 200
    assert 20 <= len(test.texts) <= 60
    assert {text.text for text in learn.texts} <= {text.text for text in more.texts}
    assert split_held_out(read_labelled(lines), 0)[1].texts == ()


def test_a_name_counts_only_where_ends_and_label_are_right() -> None:
    labelled = [[(0, 5, "person"), (12, 17, "team")], [(0, 4, "place")]]
    found = [[(0, 5, "person"), (12, 18, "team")], [(0, 4, "person")]]
    scores = score(labelled, found)
    assert scores == {
        "person": Score(right=1, found=2, labelled=1),
        "place": Score(labelled=1),
        "team": Score(found=1, labelled=1),
    }
    assert sum(scores.values(), Score()).as_dict() == {
        "f1": 33.3,
        "precision": 33.3,
        "recall": 33.3,
        "labelled": 3,
    }
    assert Score().as_dict() == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "labelled": 0}


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="holds no GLiNER checkpoint"):
        check_base(tmp_path)
    with pytest.raises(WrongUsage, match="exists"):
        check_out(tmp_path)
    (tmp_path / "gliner_config.json").write_text("{}")
    with pytest.raises(WrongUsage, match="holds no weights"):
        check_base(tmp_path)
    check_base(ROOT / "models" / "gliner-mini")


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gliner", None)
    with pytest.raises(ConfigurationError, match=r"pip install torch==2\.13\.0 'hopline\[gpu\]'"):
        libraries()


def test_material_is_split_or_comes_from_two_files(tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text(f"{ALICE}\n{OSLO}\n")
    whole = read_material(Wish(labelled=file, test=None, held_out=0, labels=()))
    assert (len(whole.learn.texts), len(whole.test.texts)) == (2, 0)
    both = read_material(Wish(labelled=file, test=file, held_out=0.5, labels=("team",)))
    assert both.as_dict() == {"texts": {"learn": 2, "test": 2}, "entities": {"team": 1}, "left_out": 2}
    file.write_text("{")
    with pytest.raises(WrongUsage, match=r"labelled\.jsonl: 1 problem in the labelled texts:\n  line 1: "):
        read_material(Wish(labelled=file, test=None, held_out=0, labels=()))
    with pytest.raises(WrongUsage, match=r"gone\.jsonl: No such file"):
        read_material(Wish(labelled=tmp_path / "gone.jsonl", test=None, held_out=0, labels=()))


def test_the_command_checks_a_file_without_torch(tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text(f"{ALICE}\n")
    command = [
        sys.executable,
        "-m",
        "hopline",
        "train-entities",
        str(file),
        "--check",
        "--held-out",
        "0",
        "--json",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        "texts": {"learn": 1, "test": 0},
        "entities": {"person": 1, "team": 1},
        "left_out": 0,
    }
    wrong = subprocess.run([*command[:-4], "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (wrong.returncode, json.loads(wrong.stderr)) == (
        2,
        {"error": "give --out, a new folder for the model (or --check)"},
    )
