"""Memories as files: rendered, revised where they stand, set aside, in the tree of their namespaces."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain import memory_file
from indexers.domain.frontmatter import Frontmatter, read_frontmatter
from indexers.domain.identity import AgentId, Namespace, Scope, TeamId, TenantId
from indexers.domain.memory_revision import revise
from indexers.errors import VaultUnavailable
from indexers.settings import VaultRoot
from indexers.vault.forgotten import set_aside
from indexers.vault.local import LocalVaultFiles
from indexers.vault.tree import VaultTree

MAX = 65_536
FURTHER = {
    "valid_from": "2031-04-05",
    "expires_at": "2031-04-06T09:30:00+09:00",
    "session": "s-1",
    "speaker": "김아나",
    "position": 3,
}


def read(raw: bytes) -> tuple[Frontmatter, str]:
    text = raw.decode("utf-8", "surrogateescape")
    found = read_frontmatter(text, max_bytes=MAX)
    return found, text[found.body_start :]


def test_every_field_of_a_memory_is_read_back() -> None:
    raw = memory_file.render(
        title="Über: 결제 🧭",
        content="Body",
        tags=["a b", "ops"],
        category="Runbooks",
        source="memory_tool",
        created="2031-04-04T00:00:00+00:00",
        **FURTHER,  # type: ignore[arg-type]
    )
    found, body = read(raw)
    assert (found, body) == (
        Frontmatter(
            title="Über: 결제 🧭",
            tags=("a b", "ops"),
            category="runbooks",
            doc_type="memory",
            source="memory_tool",
            created="2031-04-04T00:00:00+00:00",
            body_start=found.body_start,
            **FURTHER,  # type: ignore[arg-type]
        ),
        "Body\n",
    )


LINES = st.sampled_from(
    [
        "title: old",
        "tags: [a, b]",
        "tags:\n  - a\n  - b",
        "# a comment",
        "aliases:\n- x\n- y",
        "owner: {team: payments}",
        'source: "x: y"',
        "session: |\n  long\n  one",
        "'category': quoted",
        "superseded_by: '[[other]]'",
        "Title: Phase: two",
        "",
    ]
)
FIELDS = st.dictionaries(
    st.sampled_from(["title", "category", "session", "superseded_by", "source", "expires_at"]),
    st.sampled_from(["new", "2031-04-05", "6f1d6f5e-3c1b-5d0a-9c53-5b8d2f6a7e41", None]),
    min_size=1,
)


@given(
    st.lists(LINES, max_size=6), FIELDS, st.sampled_from(["\n", "\r\n"]), st.sampled_from([None, "text\n"])
)
def test_a_revision_says_its_fields_keeps_the_rest_and_is_done_once(
    lines: list[str], fields: dict[str, Any], line_end: str, content: str | None
) -> None:
    raw = f"---\n{chr(10).join(lines)}\n---\nbody [[x]]\n".replace("\n", line_end).encode()
    revised = revise(raw, fields, content, frontmatter_max_bytes=MAX)
    assert revised is not None
    assert revise(revised, fields, content, frontmatter_max_bytes=MAX) == revised
    before, body = read(raw)
    after, now = read(revised)
    alone, _ = read(_head(fields))
    assert now == (body if content is None else content)
    for name in ("title", "tags", "aliases", "category", "session", "superseded_by", "source", "expires_at"):
        assert getattr(after, name) == getattr(alone if name in fields else before, name), name


def _head(fields: dict[str, Any]) -> bytes:
    return f"---\n{memory_file.head_lines(fields)}---\n".encode()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"body\xff", b"---\nsuperseded_by: x.md\n---\nbody\xff", id="no frontmatter, no UTF-8"),
        pytest.param(
            b"\xef\xbb\xbfbody", b"\xef\xbb\xbf---\nsuperseded_by: x.md\n---\nbody", id="byte order mark"
        ),
        pytest.param(
            b"---\njust words\n---\nb",
            b"---\nsuperseded_by: x.md\n---\n---\njust words\n---\nb",
            id="no YAML",
        ),
        pytest.param(b"---\n{a: b}\n---\nc", b"---\nsuperseded_by: x.md\n---\nc", id="a flow mapping"),
        pytest.param(b"a\x00b", None, id="no text"),
    ],
)
def test_odd_files_are_revised_or_left(raw: bytes, expected: bytes | None) -> None:
    assert revise(raw, {"superseded_by": "x.md"}, frontmatter_max_bytes=MAX) == expected


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a, *a]\n" for n in range(2_000)), id="aliases"
        ),
        pytest.param("a: " + "[" * 20_000, id="nested"),
        pytest.param("k: v\n" * 12_000, id="keys"),
        pytest.param("title: " + "x " * 30_000, id="a long one"),
    ],
)
def test_frontmatter_like_a_bomb_costs_no_more_than_its_bytes(block: str) -> None:
    started = time.process_time()
    raw = f"---\n{block}\n---\nbody\n".encode()
    revised = revise(raw, {"superseded_by": "x.md"}, frontmatter_max_bytes=MAX)
    assert revised is not None
    assert read(revised)[0].superseded_by == "x.md"
    assert len(revised) < len(raw) + 200
    assert time.process_time() - started < 5


def test_a_note_set_aside_can_be_taken_back_and_none_is_lost(tmp_path: Path) -> None:
    files = LocalVaultFiles(tmp_path)
    for text in (b"one", b"two"):
        files.write_atomic("memories/결제.md", text)
        files.set_aside("memories/결제.md")
    kept = (tmp_path / ".hopline").rglob("*.md")
    assert {p.relative_to(tmp_path / ".hopline").as_posix(): p.read_bytes() for p in kept} == {
        "forgotten/memories/결제.md": b"one",
        "forgotten.2/memories/결제.md": b"two",
    }
    assert list(files.entries()) == []
    assert (files.set_aside_copies("memories/결제.md"), files.set_aside_copies("memories/a.md")) == (2, 0)
    assert (files.remove_copies("memories/결제.md"), files.remove_copies("memories/결제.md")) == (2, 0)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_copy_is_found_where_an_earlier_one_was_taken_back(tmp_path: Path) -> None:
    files = LocalVaultFiles(tmp_path)
    for text in (b"one", b"two", b"three"):
        files.write_atomic("a.md", text)
        files.set_aside("a.md")
    (tmp_path / ".hopline/forgotten/a.md").rename(tmp_path / "a.md")
    assert (files.set_aside_copies("a.md"), files.remove_copies("a.md")) == (2, 2)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["a.md"]


def test_copies_behind_a_link_are_not_ours_to_delete(tmp_path: Path) -> None:
    vault, elsewhere = tmp_path / "vault", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.md").write_bytes(b"another's")
    (vault / ".hopline").mkdir(parents=True)
    (vault / ".hopline/forgotten").symlink_to(elsewhere)
    assert LocalVaultFiles(vault).remove_copies("a.md") == 0
    assert (elsewhere / "a.md").read_bytes() == b"another's"


def test_a_note_is_not_set_aside_through_a_link(tmp_path: Path) -> None:
    vault, elsewhere = tmp_path / "vault", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (vault / ".hopline").mkdir(parents=True)
    (vault / ".hopline/forgotten").symlink_to(elsewhere)
    (vault / "a.md").write_bytes(b"mine")
    with pytest.raises(NotADirectoryError):
        set_aside(os.fspath(vault), "a.md", "a.md")
    assert ((vault / "a.md").read_bytes(), list(elsewhere.iterdir())) == (b"mine", [])


def namespace(
    agent: str, scope: Scope = Scope.PERSONAL, team: str | None = None, tenant: str = "acme"
) -> Namespace:
    return Namespace(
        tenant_id=TenantId(tenant),
        agent_id=AgentId(agent),
        scope=scope,
        team_id=None if team is None else TeamId(team),
    )


OWNERS = [
    (namespace("ada"), "acme/personal/ada"),
    (namespace("ada", Scope.SHARED), "acme/shared/ada"),
    (namespace("ada", Scope.TEAM, "ops"), "acme/team/ops/ada"),
    (namespace("김", tenant="a.b"), "a.b/personal/김"),
]


def test_each_namespace_has_a_folder_of_its_own_that_comes_with_its_first_file(tmp_path: Path) -> None:
    tree = VaultTree([], tmp_path / "memories")
    assert tree.found() == []
    for owner, place in OWNERS:
        files = tree.get(owner)
        assert files is not None
        assert list(files.entries()) == []
        with pytest.raises(FileNotFoundError):
            files.read("a.md")
        files.write_atomic("a.md", place.encode())
        assert (tmp_path / "memories" / place / "a.md").read_bytes() == place.encode()
    assert [(root.namespace, root.name) for root in tree.found()] == sorted(
        ((owner, place.replace("/", ".")) for owner, place in OWNERS), key=lambda pair: pair[1]
    )


def test_a_root_of_the_settings_goes_before_the_tree(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    root = VaultRoot(name="own", path=tmp_path / "own", tenant="acme", agent="ada", scope=Scope.PERSONAL)
    (tmp_path / "memories/acme/personal/ada").mkdir(parents=True)
    tree = VaultTree([root], tmp_path / "memories")
    files = tree.get(root.namespace)
    assert files is not None
    files.write_atomic("a.md", b"x")
    assert ((tmp_path / "own/a.md").exists(), tree.found(), VaultTree([root]).get(OWNERS[1][0])) == (
        True,
        [],
        None,
    )


def test_a_link_in_the_tree_leads_nowhere(tmp_path: Path) -> None:
    tree = VaultTree([], tmp_path / "memories")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.md").write_bytes(b"another's")
    (tmp_path / "memories/acme/personal").mkdir(parents=True)
    (tmp_path / "memories/acme/personal/ada").symlink_to(elsewhere)
    files = tree.get(OWNERS[0][0])
    assert files is not None
    with pytest.raises(VaultUnavailable):
        files.read("a.md")
    with pytest.raises(NotADirectoryError):
        files.write_atomic("b.md", b"x")
    assert (tree.found(), [p.name for p in elsewhere.iterdir()]) == ([], ["a.md"])


def test_a_tree_that_is_away_is_not_an_empty_one(tmp_path: Path) -> None:
    tree = VaultTree([], tmp_path / "volume" / "memories")
    files = tree.get(OWNERS[0][0])
    assert files is not None
    with pytest.raises(VaultUnavailable):
        files.read("a.md")


def test_no_vault_takes_a_name_that_no_folder_can_have(tmp_path: Path) -> None:
    tree = VaultTree((), tmp_path)
    fits, too_long = namespace("가" * 85), namespace("가" * 86)
    assert (tree.get(fits) is not None, tree.root_of(fits) is not None) == (True, True)
    assert (tree.get(too_long), tree.root_of(too_long)) == (None, None)
