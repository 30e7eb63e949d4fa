"""A labelled set: what is searched, the questions, and which documents answer them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from hopline.evaluation.lines import WrongSet, json_lines, one_of, text_lines

#: Type of the questions that name none.
NO_TYPE = "-"
VAULT = "vault"
_TEXT_MAX_CHARS = 2_000


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a passage knows of itself; other fields are ignored."""

    conversation: str | None = None
    session: str | int | None = None
    date_time: str | None = None
    speaker: str | None = None
    tags: list[str] = []
    aliases: list[str] = []
    category: str | None = None
    doc_type: str | None = None
    source: str | None = None
    updated: str | None = None
    valid_from: str | None = None
    expires_at: str | None = None


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    text: str
    metadata: Metadata | None = None

    @property
    def about(self) -> Metadata:
        return self.metadata or Metadata()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """`answer`: a text that a good context holds, or several of which one is enough. `group`: where to look."""

    id: str
    text: str
    type: str = NO_TYPE
    answer: str | int | float | list[str] | None = None
    group: str | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        if self.answer is None:
            return ()
        given = self.answer if isinstance(self.answer, list) else [str(self.answer)]
        return tuple(answer for answer in given if answer.strip())


Line = TypeVar("Line", Passage, Question)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSet:
    """`passages`: empty where the documents are files of `vault`. `gold`: by question, the grade of each id."""

    name: str
    folder: Path
    passages: tuple[Passage, ...] = ()
    vault: Path | None = None
    questions: tuple[Question, ...]
    gold: Mapping[str, Mapping[str, float]]
    #: Questions of the file that no judgement calls anything right for: not asked.
    unjudged: int = 0


def read_set(folder: Path, *, queries: Path | None = None, qrels: Path | None = None) -> EvalSet:
    """Raises WrongSet for whatever is missing, malformed, doubled, unknown or empty.

    `queries`, `qrels`: files other than the folder's own (questions in another language, for example).
    """
    if not folder.is_dir():
        msg = f"{folder} is no folder: a set is a folder with corpus.jsonl (or vault/), queries.jsonl and qrels.tsv"
        raise WrongSet(msg)
    vault = folder / VAULT if (folder / VAULT).is_dir() else None
    passages = () if vault else _read_passages(one_of(folder, "corpus.jsonl", "corpus.jsonl.gz"))
    known = paths_of(vault) if vault else frozenset(passage.id for passage in passages)
    asked = read_questions(queries or one_of(folder, "queries.jsonl", "queries.jsonl.gz"))
    names = frozenset(question.id for question in asked)
    gold = read_judgements(qrels or one_of(folder, "qrels.tsv"), queries=names, documents=known)
    judged = tuple(question for question in asked if question.id in gold)
    if not judged:
        msg = f"{folder}: no question has a right answer in the judgements"
        raise WrongSet(msg)
    _check_groups(folder, judged, passages)
    return EvalSet(
        name=folder.resolve().name,
        folder=folder.resolve(),
        passages=passages,
        vault=vault,
        questions=judged,
        gold=gold,
        unjudged=len(asked) - len(judged),
    )


def limited(questions: Sequence[Question], limit: int | None) -> tuple[Question, ...]:
    """So many of them, spread evenly over the file: the types keep about their shares."""
    if limit is None or limit >= len(questions):
        return tuple(questions)
    return tuple(questions[number * len(questions) // limit] for number in range(limit))


def paths_of(vault: Path) -> frozenset[str]:
    """Notes of a vault as paths below it, NFC. Raises WrongSet where there is none."""
    from indexers.vault.local import LocalVaultFiles

    found = frozenset(entry.path for entry in LocalVaultFiles(vault).entries())
    if not found:
        msg = f"{vault} has no Markdown file"
        raise WrongSet(msg)
    return found


def _read_passages(path: Path) -> tuple[Passage, ...]:
    def check(passage: Passage, where: str) -> None:
        if not passage.id.strip():
            msg = f"{where}: `id` is empty"
            raise WrongSet(msg)

    return _each_once(path, Passage, check, what="passage")


def read_questions(path: Path) -> tuple[Question, ...]:
    def check(question: Question, where: str) -> None:
        if not question.text.strip():
            msg = f"{where}: `text` is empty"
            raise WrongSet(msg)
        if len(question.text) > _TEXT_MAX_CHARS:
            msg = f"{where}: `text` is longer than {_TEXT_MAX_CHARS} characters"
            raise WrongSet(msg)

    return _each_once(path, Question, check, what="question")


def _each_once(
    path: Path, kind: type[Line], check: Callable[[Line, str], None], *, what: str
) -> tuple[Line, ...]:
    """The file's lines, at least one and no id twice. `check` raises for what else is wrong with one."""
    found: dict[str, Line] = {}
    for number, line in json_lines(path, kind):
        where = f"{path}, line {number}"
        check(line, where)
        if line.id in found:
            msg = f"{where}: the id {line.id!r} is there already"
            raise WrongSet(msg)
        found[line.id] = line
    if not found:
        msg = f"{path} has no {what}"
        raise WrongSet(msg)
    return tuple(found.values())


def read_judgements(
    path: Path, *, queries: frozenset[str], documents: frozenset[str]
) -> dict[str, dict[str, float]]:
    """By question with at least one right document: the grade of each judged one. A heading line is skipped."""
    judged: dict[str, dict[str, float]] = {}
    for number, line in text_lines(path):
        where = f"{path}, line {number}"
        cells = line.split("\t")
        if number == 1 and cells[-1].strip() == "score":
            continue
        if len(cells) != 3:
            msg = f"{where}: {len(cells)} columns instead of three (query-id, corpus-id, score) with tabs between"
            raise WrongSet(msg)
        query, document = (
            cells[0],
            unicodedata.normalize("NFC", cells[1]) if cells[1] not in documents else cells[1],
        )
        for what, value, known in (("query-id", query, queries), ("corpus-id", document, documents)):
            if value not in known:
                msg = f"{where}: {what} {value!r} is in no other file of the set"
                raise WrongSet(msg)
        if document in judged.setdefault(query, {}):
            msg = f"{where}: {document!r} is judged twice for {query!r}"
            raise WrongSet(msg)
        judged[query][document] = _grade(cells[2], where)
    return {query: grades for query, grades in judged.items() if any(grade > 0 for grade in grades.values())}


def _grade(text: str, where: str) -> float:
    try:
        grade = float(text)
    except ValueError:
        grade = math.nan
    if not math.isfinite(grade):
        msg = f"{where}: the score {text!r} is no number"
        raise WrongSet(msg)
    return grade


def _check_groups(folder: Path, questions: Sequence[Question], passages: Sequence[Passage]) -> None:
    """Where passages say their conversation, a question's group must be one; else a group is a mere label."""
    known = {passage.about.conversation for passage in passages} - {None}
    for question in questions:
        if known and question.group is not None and question.group not in known:
            msg = f"{folder}: the group {question.group!r} of question {question.id!r} is no passage's conversation"
            raise WrongSet(msg)
