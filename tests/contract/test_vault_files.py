"""What every adapter of `VaultFiles` does. A second one subclasses the suite and makes an empty vault."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import unicodedata
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from indexers.errors import VaultUnavailable
from indexers.ports import VaultFiles, VaultListing, VaultProblem
from indexers.vault.local import LocalVaultFiles

NFC = "회의록.md"
NFD = unicodedata.normalize("NFD", NFC)


def put_no_file(path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something of this kind at the path; what it needs stands beside it."""
    match kind:
        case "loop":
            path.symlink_to(path.name)
        case "long loop":
            path.symlink_to("other.md")
            (path.parent / "other.md").symlink_to(path.name)
        case "pipe":
            os.mkfifo(path)
        case "link to a pipe":
            os.mkfifo(path.parent / "pipe.md")
            path.symlink_to("pipe.md")
        case "socket":
            monkeypatch.chdir(path.parent)  # its address has a narrow limit
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path.name)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("missing/x.md")


def tree_of(root: Path) -> dict[str, int]:
    return {p.name: stat.S_IFMT(p.lstat().st_mode) for p in root.iterdir()}


class VaultFilesConformance(ABC):
    @pytest.fixture
    @abstractmethod
    def files(self, tmp_path: Path) -> VaultFiles:
        """An empty vault."""

    def test_an_empty_vault_has_no_entries(self, files: VaultFiles) -> None:
        assert files.listing() == VaultListing(entries=(), problems=())

    def test_the_root_stays_the_same_while_files_change(self, files: VaultFiles) -> None:
        before = files.root_identity()
        files.write_atomic("x.md", b"x")
        files.write_atomic("x.md", b"y")
        assert files.root_identity() == before

    def test_entries_come_in_path_order_and_only_notes(self, files: VaultFiles) -> None:
        for path in ("b.md", "a/z.md", "a.md", "a/b/c.MARKDOWN", "a-b/x.md", "회의록.md"):
            files.write_atomic(path, b"x")
        expected = ["a-b/x.md", "a.md", "a/b/c.MARKDOWN", "a/z.md", "b.md", "회의록.md"]
        assert [e.path for e in files.entries()] == expected

    def test_a_listing_can_be_limited_to_a_folder_or_a_file(self, files: VaultFiles) -> None:
        for path in ("a/x.md", "a/b/y.md", "ab/z.md", "a.md"):
            files.write_atomic(path, b"x")
        assert [e.path for e in files.listing("a").entries] == ["a/b/y.md", "a/x.md"]
        assert [e.path for e in files.listing("a/x.md").entries] == ["a/x.md"]
        assert files.listing("gone") == VaultListing(entries=(), problems=())

    def test_what_is_written_is_read(self, files: VaultFiles) -> None:
        written = files.write_atomic("deep/er/x.md", b"0123456789")
        assert written == files.entry("deep/er/x.md") == files.entry("./deep//er/x.md")
        assert (written.path, written.vault_path, written.size) == ("deep/er/x.md", "deep/er/x.md", 10)
        assert files.read("deep/er/x.md") == b"0123456789"
        assert files.read("deep/er/x.md", start=3, max_bytes=4) == b"3456"
        assert files.read("deep/er/x.md", start=8, max_bytes=4) == b"89"
        assert files.read("deep/er/x.md", start=99) == b""
        assert files.read("deep/er/x.md", max_bytes=0) == b""

    @pytest.mark.parametrize("content", [b"", b"a\x00b", b"\xff\xfe", b"x" * 6_000_000], ids=len)
    def test_any_bytes_are_kept(self, files: VaultFiles, content: bytes) -> None:
        files.write_atomic("x.md", content)
        assert files.read("x.md") == content

    def test_writing_again_replaces(self, files: VaultFiles) -> None:
        files.write_atomic("x.md", b"a long first text")
        files.write_atomic("x.md", b"short")
        assert files.read("x.md") == b"short"
        assert [e.size for e in files.entries()] == [5]

    def test_an_open_file_stays_the_one_that_was_opened(self, files: VaultFiles) -> None:
        files.write_atomic("a.md", b"old")
        with files.open("a.md") as file:
            files.write_atomic("a.md", b"newer")
            assert (file.read(2), file.read(9)) == (b"ol", b"d")
        with pytest.raises(FileNotFoundError):
            files.open("missing.md")

    def test_a_reader_never_sees_half(self, files: VaultFiles) -> None:
        texts = [bytes([c]) * 200_000 for c in b"ab"]
        files.write_atomic("x.md", texts[0])
        writer = threading.Thread(target=lambda: [files.write_atomic("x.md", t) for t in texts * 20])
        writer.start()
        seen = set()
        while writer.is_alive():
            seen.add(files.read("x.md"))
        writer.join()
        assert seen <= set(texts)

    @pytest.mark.parametrize(
        "path", ["gone.md", "a/gone.md", ".git/config.md", "x.txt", "한.md", "a" * 300 + ".md"]
    )
    def test_a_missing_file(self, files: VaultFiles, path: str) -> None:
        with pytest.raises(FileNotFoundError):
            files.entry(path)
        with pytest.raises(FileNotFoundError):
            files.read(path)

    @pytest.mark.parametrize(
        "path",
        ["../x.md", "a/../../x.md", "/etc/x.md", "", "a\x00.md", "a\n.md", "x.txt", ".x.md", ".git/x.md"],
    )
    def test_a_path_that_is_refused(self, files: VaultFiles, path: str) -> None:
        with pytest.raises(ValueError, match="is no"):
            files.write_atomic(path, b"x")
        assert list(files.entries()) == []

    def test_a_long_path_of_short_names(self, files: VaultFiles) -> None:
        path = "/".join(["긴폴더이름" * 10] * 6) + "/x.md"
        assert len(path.encode()) > 900
        files.write_atomic(path, b"x")
        assert [e.path for e in files.entries()] == [path]
        assert files.read(path) == b"x"

    def test_a_name_of_255_bytes_and_one_more(self, files: VaultFiles) -> None:
        files.write_atomic("a" * 252 + ".md", b"x")
        with pytest.raises(ValueError, match="longer than 255 bytes"):
            files.write_atomic("a" * 253 + ".md", b"x")
        with pytest.raises(ValueError, match="longer than 255 bytes"):
            files.write_atomic("가" * 85 + "/x.md" + "한" * 90 + ".md", b"x")

    def test_a_file_where_a_folder_is_needed(self, files: VaultFiles) -> None:
        files.write_atomic("a.md", b"x")
        with pytest.raises(ValueError, match="is no folder"):
            files.write_atomic("a.md/b.md", b"x")

    def test_both_normal_forms_name_one_file(self, files: VaultFiles) -> None:
        files.write_atomic(NFC, b"1")
        files.write_atomic(NFD, b"2")
        assert [e.path for e in files.entries()] == [NFC]
        assert files.read(NFD) == files.read(NFC) == b"2"
        assert files.entry(NFD) == files.entry(NFC)

    def test_what_is_set_aside_is_listed_until_its_copies_are_removed(self, files: VaultFiles) -> None:
        for path in ("b/회의.md", NFD, "a.md", "a.md"):
            files.write_atomic(path, b"x")
            files.set_aside(path)
        files.write_atomic("kept.md", b"x")
        assert files.set_aside_paths() == ["a.md", "b/회의.md", NFC]
        assert len(files.set_aside_paths(2)) == 2
        assert files.set_aside_paths(0) == []
        assert [files.remove_copies(path) for path in files.set_aside_paths()] == [2, 1, 1]
        assert files.set_aside_paths() == []

    def test_there_are_no_leftovers_of_writes_that_were_done(self, files: VaultFiles) -> None:
        files.write_atomic("a/b.md", b"x")
        assert [files.remove_leftovers(folder, older_seconds=0) for folder in ("", "a", "gone")] == [0, 0, 0]
        assert files.listing().leftovers == ()
        assert files.read("a/b.md") == b"x"


class TestLocalVaultFiles(VaultFilesConformance):
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "vault"
        root.mkdir()
        return root

    @pytest.fixture
    def files(self, root: Path) -> LocalVaultFiles:
        return LocalVaultFiles(root)

    def test_c15_a_decomposed_name_keeps_its_bytes(self, files: LocalVaultFiles, root: Path) -> None:
        folder = root / unicodedata.normalize("NFD", "자료")
        folder.mkdir()
        (folder / NFD).write_bytes(b"old")
        entry = files.entry(f"자료/{NFC}")
        assert (entry.path, entry.vault_path) == (f"자료/{NFC}", f"{folder.name}/{NFD}")
        assert list(files.entries()) == [entry] == list(files.listing("자료").entries)
        files.write_atomic(f"자료/{NFC}", b"new")
        assert (folder / NFD).read_bytes() == b"new"
        files.write_atomic("자료/새것.md", b"n")
        assert sorted(p.name for p in folder.iterdir()) == sorted([NFD, "새것.md"])

    def test_of_two_spellings_the_composed_one_wins(self, files: LocalVaultFiles, root: Path) -> None:
        (root / NFD).write_bytes(b"decomposed")
        (root / NFC).write_bytes(b"composed")
        listing = files.listing()
        assert [e.vault_path for e in listing.entries] == [NFC]
        assert listing.problems == (VaultProblem(path=NFC, reason="same_name"),)
        assert files.read(NFD) == b"composed"

    def test_two_folders_with_one_name_are_one(self, files: LocalVaultFiles, root: Path) -> None:
        composed, decomposed = root / "가", root / unicodedata.normalize("NFD", "가")
        for folder, name, text in (
            (composed, "a", "NFC"),
            (decomposed, "b", "NFD"),
            (decomposed, "a", "NFD"),
        ):
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.md").write_text(text)
        assert [(e.path, files.read(e.path)) for e in files.entries()] == [
            ("가/a.md", b"NFC"),
            ("가/b.md", b"NFD"),
        ]

    def test_a_kelvin_sign_is_a_k(self, files: LocalVaultFiles, root: Path) -> None:
        (root / "300 \u212a.md").write_bytes(b"warm")
        assert files.read("300 K.md") == b"warm"

    def test_only_notes_that_were_set_aside_are_listed(self, files: LocalVaultFiles, root: Path) -> None:
        aside = root / ".hopline/forgotten"
        (aside / "a").mkdir(parents=True)
        for name in ("a/x.md", "a/.DS_Store", NFD, "line\nbreak.md", "picture.png"):
            (aside / name).write_bytes(b"x")
        (aside / "back").symlink_to(root)
        (root / ".hopline/forgotten.2").symlink_to(aside)
        (root / ".hopline/forgotten.x").mkdir()
        (root / ".hopline/forgotten.x/y.md").write_bytes(b"x")
        assert files.set_aside_paths() == ["a/x.md"]

    def test_symlink_loops_are_walked_once(self, files: LocalVaultFiles, root: Path) -> None:
        (root / "a").mkdir()
        (root / "a/x.md").write_bytes(b"x")
        (root / "a/self").symlink_to(".")
        (root / "a/up").symlink_to("..")
        (root / "b").symlink_to("a")
        (root / "round.md").symlink_to("round.md")
        listing = files.listing()
        assert [e.path for e in listing.entries] == ["a/x.md"]
        assert listing.problems == (VaultProblem(path="round.md", reason="broken_link"),)
        with pytest.raises(FileNotFoundError):
            files.entry("b/x.md")

    def test_a_linked_file_is_a_document(self, files: LocalVaultFiles, root: Path) -> None:
        (root / "CLAUDE.md").write_bytes(b"x")
        (root / "AGENTS.md").symlink_to("CLAUDE.md")
        assert [e.path for e in files.entries()] == ["AGENTS.md", "CLAUDE.md"]
        files.write_atomic("AGENTS.md", b"y")
        assert (root / "AGENTS.md").is_symlink()
        assert files.read("CLAUDE.md") == b"y"

    def test_symlinks_that_leave_the_root_are_refused(
        self, files: LocalVaultFiles, root: Path, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret.md").write_bytes(b"secret")
        (root / ".git").mkdir()
        (root / ".git/config.md").write_bytes(b"secret")
        (root / "folder").symlink_to(outside)
        (root / "file.md").symlink_to(outside / "secret.md")
        (root / "hidden.md").symlink_to(".git/config.md")
        (root / "picture.png").symlink_to(outside / "secret.md")
        listing = files.listing()
        assert listing.entries == ()
        assert [(p.path, p.reason) for p in listing.problems] == [
            ("file.md", "outside_root"),
            ("folder", "outside_root"),
            ("hidden.md", "outside_root"),
        ]
        for path in ("file.md", "folder/secret.md", "hidden.md"):
            with pytest.raises(ValueError, match="symlink"):
                files.read(path)
            with pytest.raises(ValueError, match="symlink"):
                files.write_atomic(path, b"overwritten")
        with pytest.raises(ValueError, match="symlink"):
            files.write_atomic("folder/new/x.md", b"x")
        assert [p.name for p in outside.iterdir()] == ["secret.md"]
        assert (outside / "secret.md").read_bytes() == b"secret"

    def test_what_is_no_file_is_reported(self, files: LocalVaultFiles, root: Path) -> None:
        os.mkfifo(root / "pipe.md")
        (root / "folder.md").mkdir()
        (root / "folder.md/x.md").write_bytes(b"x")
        (root / "dangling.md").symlink_to("nowhere.md")
        listing = files.listing()
        assert [e.path for e in listing.entries] == ["folder.md/x.md"]
        assert [(p.path, p.reason) for p in listing.problems] == [
            ("dangling.md", "broken_link"),
            ("pipe.md", "not_a_file"),
        ]
        for path in ("pipe.md", "folder.md", "dangling.md"):
            with pytest.raises(FileNotFoundError):
                files.read(path)

    @pytest.mark.parametrize(
        "kind", ["loop", "long loop", "pipe", "link to a pipe", "socket", "folder", "into a missing folder"]
    )
    def test_what_is_no_file_is_never_replaced(
        self, files: LocalVaultFiles, root: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        put_no_file(root / "x.md", kind, monkeypatch)
        before = tree_of(root)
        with pytest.raises(ValueError, match="can't be written"):
            files.write_atomic("x.md", b"new")
        assert tree_of(root) == before

    def test_names_that_are_no_text_are_reported(self, files: LocalVaultFiles, root: Path) -> None:
        raw = os.fsencode(root)
        os.mkdir(raw + b"/caf\xe9")  # noqa: PTH102 - a name that Path can't spell
        for name in (b"/caf\xe9/x.md", b"/\xff.md", b"/line\nbreak.md", b"/fine.md", b"/\xff.png"):
            with open(raw + name, "wb"):  # noqa: PTH123 - as above
                pass
        listing = files.listing()
        assert [e.path for e in listing.entries] == ["fine.md"]
        assert [(p.path, p.reason) for p in listing.problems] == [
            ("\\udcff.md", "not_utf8"),
            ("caf\\udce9", "not_utf8"),
            ("line\nbreak.md", "control_characters"),
        ]

    def test_a_failed_write_leaves_the_old_bytes_and_no_rubbish(
        self, files: LocalVaultFiles, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files.write_atomic("x.md", b"old")

        def full(_handle: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            files.write_atomic("x.md", b"new")
        assert {p.name: p.read_bytes() for p in root.iterdir()} == {"x.md": b"old"}

    def test_permissions_of_an_existing_file_are_kept(self, files: LocalVaultFiles, root: Path) -> None:
        (root / "x.md").write_bytes(b"old")
        (root / "x.md").chmod(0o640)
        files.write_atomic("x.md", b"new")
        assert (root / "x.md").stat().st_mode & 0o777 == 0o640

    def test_a_root_that_is_missing_or_no_folder(self, files: LocalVaultFiles, root: Path) -> None:
        root.rmdir()
        with pytest.raises(VaultUnavailable, match="can't be read"):
            files.listing()
        with pytest.raises(VaultUnavailable, match="can't be read"):
            files.read("x.md")
        with pytest.raises(VaultUnavailable, match="can't be read"):
            files.write_atomic("x.md", b"")
        root.write_bytes(b"")
        with pytest.raises(VaultUnavailable, match="no folder"):
            files.listing()

    def test_another_folder_at_the_root_is_told_apart(self, files: LocalVaultFiles, root: Path) -> None:
        before = files.root_identity()
        root.rename(root.with_name("old"))
        root.mkdir()
        assert files.root_identity() != before

    def test_what_permissions_hide_is_reported_and_neighbours_are_read(self) -> None:
        """Root may read everything, so the look is taken by a process of an unprivileged user."""
        root = Path(tempfile.mkdtemp())
        root.chmod(0o755)
        for name in ("shut/x.md", "open/x.md", "locked.md", "fine.md"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(b"x")
        (root / "shut").chmod(0)
        (root / "locked.md").chmod(0)
        script = (
            "import os, sys\nfrom pathlib import Path\nfrom indexers.vault.local import LocalVaultFiles\n"
            "os.chdir(sys.argv[1])\nos.getuid() or os.setuid(65534)\nfiles = LocalVaultFiles(Path('.'))\n"
            "seen = files.listing()\nprint([e.path for e in seen.entries])\n"
            "print([(p.path, p.reason) for p in seen.problems])\n"
            "for name in ('locked.md', 'shut/x.md'):\n"
            "    try:\n        files.read(name)\n"
            "    except PermissionError:\n        print('refused')\n"
            "print(files.read('fine.md'))\n"
        )
        result = subprocess.run(
            [sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=False, timeout=30
        )
        (root / "shut").chmod(0o700)
        shutil.rmtree(root)
        assert result.stdout.splitlines() == [
            "['fine.md', 'locked.md', 'open/x.md']",
            "[('shut', 'unreadable_folder')]",
            "refused",
            "refused",
            "b'x'",
        ], result.stderr
