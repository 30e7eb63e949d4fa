"""Which removed path and which added path are one file that was moved. Pure, and the same for every order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping

from streams.watcher.manifest import Seen

_Key = Callable[[str, Seen], Hashable | None]


def match_moves(removed: Mapping[str, Seen], added: Mapping[str, Seen]) -> dict[str, str]:
    """Added path → removed path.

    Rules, the surest first; inside a rule both sides pair up in path order:
    1. same text and inode; 2. same text and file name; 3. same text;
    4. same inode and file name (moved and edited). The inode alone proves nothing: file systems give the
       number of a deleted file to the next new one. Empty files all have the same text: rules 1 and 4 only.
    """
    moves: dict[str, str] = {}
    left, right = dict(removed), dict(added)
    for key in (_text_and_inode, _text_and_name, _text, _inode_and_name):
        sources: defaultdict[Hashable, list[str]] = defaultdict(list)
        for path in sorted(left, reverse=True):
            found = key(path, left[path])
            if found is not None:
                sources[found].append(path)
        for path in sorted(right):
            found = key(path, right[path])
            if found is not None and sources[found]:
                moves[path] = sources[found].pop()
                del left[moves[path]], right[path]
    return moves


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _text_and_inode(_path: str, seen: Seen) -> Hashable | None:
    return None if seen.inode is None else (seen.content_hash, seen.inode)


def _text_and_name(path: str, seen: Seen) -> Hashable | None:
    return (seen.content_hash, _name(path)) if seen.size != 0 else None


def _text(_path: str, seen: Seen) -> Hashable | None:
    return seen.content_hash if seen.size != 0 else None


def _inode_and_name(path: str, seen: Seen) -> Hashable | None:
    return None if seen.inode is None else (seen.inode, _name(path))
