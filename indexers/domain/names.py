"""How names are compared: NFC, case-folded, note suffix left off where a name (not a path) is meant.

Every key is a plain string, so that the store finds counterparts with `terms` queries: which key of a link
goes with which key of a document is said by `target_keys` and `document_keys` of indexers.domain.links.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import Literal

LinkType = Literal["wikilink", "embed", "reference"]

NOTE_SUFFIXES = (".md", ".markdown")
#: Files that are no documents of a vault: a link to one is no edge.
ATTACHMENT_SUFFIXES = frozenset(
    f".{name}"
    for name in re.findall(
        r"\S+",
        "3gp 7z aac apng avi avif base bmp canvas css csv doc docx epub flac gif gz heic htm html ico ipynb "
        "jpeg jpg js json key log m4a m4v mkv mov mp3 mp4 odp ods odt ogg ogv opus otf pdf png ppt pptx psd "
        "rar svg tar tif tiff tsv ttf txt wasm wav webm webp woff woff2 xls xlsx xml yaml yml zip",
    )
)


def fold(name: str) -> str:
    """NFC and case-folded; NFC again, since folding can decompose."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def path_key(path: str) -> str:
    """Key of a whole path, suffix included: `Ops/회의록.md` in NFD and NFC give one key."""
    return fold(path)


def name_key(path: str) -> str:
    """Key of the last segment without its note suffix."""
    return without_suffix(fold(path).rpartition("/")[2])


def alias_key(alias: str) -> str:
    """Key of an alias; a note suffix is left off as in a target."""
    return without_suffix(fold(alias.strip()))


def target_key(target: str, *, from_path: str, link_type: LinkType) -> str:
    """Key of a link's target as written, `.md` appended when it has no note suffix.

    A leading `/` in the key means: this path from the vault's root and nothing else. It comes from a target
    that starts with `/`, or that is explicitly relative (`../x`; for wikilinks `./x` too) and was joined with
    the note's folder. A path that climbs out of the vault keeps its `..` and so can never match.
    """
    name = fold(target.strip())
    rooted = name.startswith("/")
    segments = [part for part in name.split("/") if part]
    climbs = ".." in segments or (link_type != "reference" and segments[:1] == ["."])
    if climbs and not rooted:
        segments = [*_folder(fold(from_path)), *segments]
    plain = posixpath.normpath("/".join(segments)) if segments else ""
    marker = "/" if rooted or climbs else ""
    return marker + with_suffix(plain)


def target_name_key(key: str) -> str:
    """The part of a target key that any matching document's `name_key` (or last alias segment) equals."""
    return without_suffix(key.rpartition("/")[2])


def target_alias_key(key: str) -> str:
    """What an alias must equal for this target key."""
    return without_suffix(key)


def file_stem(path: str) -> str:
    """The file's name as a title: NFC, without the note suffix."""
    return without_suffix(unicodedata.normalize("NFC", path).rpartition("/")[2])


def is_attachment(target: str) -> bool:
    """True for names that can't be a note: `diagram.png`. `v1.2.3` and `plan.excalidraw` may be notes."""
    return posixpath.splitext(target.strip().casefold())[1] in ATTACHMENT_SUFFIXES


def without_suffix(name: str) -> str:
    for suffix in NOTE_SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def with_suffix(name: str) -> str:
    return name if name.endswith(NOTE_SUFFIXES) else f"{name}.md"


def _folder(path: str) -> list[str]:
    return path.split("/")[:-1]
