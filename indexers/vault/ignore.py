"""Which names of a vault are notes. Pure: one rule for scan, live changes, writes and reads.

A note is a regular file whose name ends in `.md` or `.markdown` (any case). Ignored, wherever they stand:

- dotfiles and all below a dotfolder: `.git`, `.obsidian`, `.hopline`, `.trash`, `.recipe.md.k3z1`, `.#x.md`;
- lock and backup names of editors: `~$recipe.md`, `recipe.md~`, `#recipe.md#`, `*.swp`, `*.tmp`, `4913`;
- parts and conflict copies of synchronisers and browsers: `.sync-*`, `*.part`, `*.crdownload`,
  `*.sync-conflict-*`.

Most of these lack the suffix and fall out by that alone; the rest is named here: `is_note` is the whole rule.
"""

from __future__ import annotations

SUFFIXES = (".md", ".markdown")
#: Beginnings of a folder's or file's name that hide it.
HIDDEN_PREFIX = "."
_LOCK_PREFIXES = ("~$", "~syncthing~")
_CONFLICT_MARK = ".sync-conflict-"


def is_note(path: str) -> bool:
    """True for a relative path with forward slashes whose folders are walked and whose name is a note's."""
    *folders, name = path.split("/")
    return is_note_name(name) and all(is_walked_folder(folder) for folder in folders)


def is_note_name(name: str) -> bool:
    folded = name.casefold()
    return (
        folded.endswith(SUFFIXES)
        and not folded.startswith((HIDDEN_PREFIX, *_LOCK_PREFIXES))
        and _CONFLICT_MARK not in folded
    )


def is_walked_folder(name: str) -> bool:
    return not name.startswith(HIDDEN_PREFIX)
