"""A file as it is indexed: the hash of all of it, the bytes up to a cap. Blocking."""

from __future__ import annotations

import hashlib
from typing import Protocol

from indexers.domain.hashing import written_hash
from indexers.domain.identity import DocumentKey, Namespace
from indexers.domain.text import CUT_MARGIN_BYTES
from indexers.errors import HoplineError
from indexers.planning import FileContent
from indexers.ports import VaultFiles

READ_STEP_BYTES = 1_048_576


def read_content(files: VaultFiles, path: str, cap_bytes: int) -> FileContent:
    """Memory stays bounded however large the file is. Raises what `VaultFiles.read` raises."""
    digest = hashlib.sha256()
    size = 0
    head = bytearray()
    while True:
        piece = files.read(path, start=size, max_bytes=READ_STEP_BYTES)
        digest.update(piece)
        size += len(piece)
        head += piece[: max(0, cap_bytes + CUT_MARGIN_BYTES - len(head))]
        if len(piece) < READ_STEP_BYTES:
            return FileContent(head=bytes(head), size=size, content_hash=written_hash(digest.hexdigest()))


class Lookup(Protocol):
    """`VaultTree`, or the roots' files alone."""

    def get(self, namespace: Namespace, /) -> VaultFiles | None: ...


def read_if_there(files: Lookup, document: DocumentKey, cap_bytes: int) -> FileContent | None:
    """None where it can't be had: no such root or file, a vault that is away."""
    vault = files.get(document.namespace)
    try:
        return None if vault is None else read_content(vault, document.path, cap_bytes)
    except (OSError, ValueError, HoplineError):
        return None
