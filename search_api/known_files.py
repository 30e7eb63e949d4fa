"""Which files were found to be what the index says: their hash needn't be made again for the next page."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import Namespace
from indexers.domain.text_window import TextFacts

#: A file written since may still get the same stamp: clocks of file systems tick in up to two seconds.
QUIET_NS: Final = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Changes whenever the bytes may have changed. The time of change can't be set back by its owner."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, handle: int) -> Stamp:
        info = os.fstat(handle)
        return cls(
            device=info.st_dev,
            inode=info.st_ino,
            size=info.st_size,
            modified_ns=info.st_mtime_ns,
            changed_ns=info.st_ctime_ns,
        )

    def is_quiet(self, now_ns: int) -> bool:
        return max(self.modified_ns, self.changed_ns) < now_ns - QUIET_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFile:
    stamp: Stamp
    content_hash: str
    #: None: only its beginning was decoded.
    facts: TextFacts | None


class KnownFiles:
    """The last so many, by vault and path. Threads share it. It holds hashes and places, no text."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._known: OrderedDict[tuple[Namespace, str], KnownFile] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, namespace: Namespace, path: str, stamp: Stamp) -> KnownFile | None:
        with self._lock:
            found = self._known.get((namespace, path))
            if found is None or found.stamp != stamp:
                return None
            self._known.move_to_end((namespace, path))
            return found

    def remember(self, namespace: Namespace, path: str, file: KnownFile) -> None:
        if not file.stamp.is_quiet(time.time_ns()):
            return
        with self._lock:
            self._known[(namespace, path)] = file
            self._known.move_to_end((namespace, path))
            while len(self._known) > self._entries:
                self._known.popitem(last=False)
