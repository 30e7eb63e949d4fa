"""A corpus written as a vault, and what counting words finds in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopline.evaluation.corpus import moment, path_prefixes, safe_path, write_vault
from hopline.evaluation.grep import GrepIndex
from hopline.evaluation.sets import Metadata, Passage, Question
from indexers.domain.markdown import parse


def turn(number: int, session: int = 1) -> Passage:
    about = Metadata(
        conversation="conv-26", session=session, date_time="1:56 pm on 8 May, 2023", speaker="Mel"
    )
    return Passage(
        id=f"conv-26/D{session}:{number}", title=f'Mel: "{number}"', text="Mel: hi", metadata=about
    )


def test_a_turn_becomes_a_note_that_knows_its_session(tmp_path: Path) -> None:
    ids = write_vault([turn(1), turn(2), turn(1, session=2)], tmp_path)
    assert ids == {
        "conv-26/D1_1.md": "conv-26/D1:1",
        "conv-26/D1_2.md": "conv-26/D1:2",
        "conv-26/D2_1.md": "conv-26/D2:1",
    }
    assert (tmp_path / "conv-26/D1_2.md").read_text() == (
        '---\ntitle: "Mel: \\"2\\""\nsession: "conv-26/1"\nposition: 2\ncreated: "2023-05-08T13:56:00"\n'
        'speaker: "Mel"\n---\nMel: hi\n'
    )
    assert '\nsession: "conv-26/2"\nposition: 1\n' in (tmp_path / "conv-26/D2_1.md").read_text()


def test_the_note_is_read_as_it_was_meant(tmp_path: Path) -> None:
    passage = Passage(id="p", title="Phase: two — “완료”\\", text="---\nno: frontmatter\n---\n[[link]]")
    (path,) = write_vault([passage], tmp_path)
    note = parse((tmp_path / path).read_text(), path=path, frontmatter_max_bytes=65_536)
    assert (note.frontmatter.title, note.frontmatter.warnings) == ("Phase: two — “완료”\\", ())
    assert note.text[note.frontmatter.body_start :] == f"{passage.text}\n"


def test_what_frontmatter_has_a_key_for_is_handed_on(tmp_path: Path) -> None:
    about = Metadata(
        tags=["a b", "c"], aliases=["Uno"], category="x", doc_type="memory", updated="2031-01-01"
    )
    (path,) = write_vault([Passage(id="p", title="One", text="x", metadata=about)], tmp_path)
    assert (tmp_path / path).read_text() == (
        '---\ntitle: "One"\ntags: ["a b", "c"]\naliases: ["Uno"]\ncategory: "x"\ndoc_type: "memory"\n'
        'updated: "2031-01-01"\n---\nx\n'
    )


@pytest.mark.parametrize(
    ("id_", "path"),
    [
        ("2w0000", "2w0000.md"),
        ("en:bases/syntax", "en_bases/syntax.md"),
        ("finance - 은행 가이드.pdf - 4", "finance_-_은행_가이드.pdf_-_4.md"),
        ("../../etc/passwd", "etc/passwd.md"),
        ("/absolute", "absolute.md"),
        (".hidden/.x", "_.hidden/_.x.md"),
        ("a.sync-conflict-1", "a.sync_conflict-1.md"),
        ("//", "passage.md"),
        ("x" * 200, "x" * 60 + ".md"),
    ],
)
def test_ids_as_paths(id_: str, path: str) -> None:
    assert safe_path(Passage(id=id_, title="t", text="x")) == path


def test_ids_that_differ_only_in_case_or_in_what_a_path_can_not_hold(tmp_path: Path) -> None:
    ids = write_vault([Passage(id=id_, title="t", text=id_) for id_ in ("a:b", "A_b", "a?b")], tmp_path)
    assert list(ids.values()) == ["a:b", "A_b", "a?b"]
    assert [(tmp_path / path).read_text().splitlines()[-1] for path in ids] == ["a:b", "A_b", "a?b"]
    assert len({path.casefold() for path in ids}) == 3


def test_a_conversation_has_a_folder_also_where_ids_do_not_name_it() -> None:
    passage = Passage(id="D1:1", title="t", text="x", metadata=Metadata(conversation="conv 30"))
    asked = [Question(id="q", text="t", group="conv 30"), Question(id="r", text="t", group="other")]
    assert safe_path(passage) == "conv_30/D1_1.md"
    assert path_prefixes(asked, [passage]) == {"conv 30": "conv_30/"}


@pytest.mark.parametrize(
    ("told", "iso"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00"),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00"),
        ("8 May 2023", "2023-05-08T00:00:00"),
        ("2031-04-05T09:30:00+09:00", "2031-04-05T09:30:00+09:00"),
        ("last week", None),
        (None, None),
    ],
)
def test_dates_as_people_tell_them(told: str | None, iso: str | None) -> None:
    assert moment(told) == iso


def test_grep_counts_words_first_distinct_ones_then_all() -> None:
    index = GrepIndex.of(
        [("a.md", "ferry ferry ferry"), ("b.md", "The Ferry left"), ("c.md", "left"), ("d.md", "x")]
    )
    assert index.find("ferry left") == ["b.md", "a.md", "c.md"]
    assert index.find("ferry left", under="c") == ["c.md"]
    assert index.find("ferry left", limit=1) == ["b.md"]
    assert index.find("nothing here at all") == []
