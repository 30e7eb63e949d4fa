"""The vaults that an agent reads and writes. Blocking: off the event loop."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from indexers.domain.identity import DocumentKey, Namespace
from indexers.errors import HoplineError, PoisonRecord, Transient, VaultUnavailable
from indexers.planning import FileContent
from indexers.ports import VaultFiles
from indexers.vault.content import read_content
from indexers.vault.tree import VaultTree

#: Faults of the path itself: waiting mends none of them. Any other is the vault's, or this machine's.
PATH_ERRORS = frozenset(
    {
        errno.EACCES,
        errno.EEXIST,
        errno.EILSEQ,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
        errno.ENXIO,
        errno.EOVERFLOW,
        errno.EPERM,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vaults:
    """The vault of each namespace that this worker serves.

    A root that is away is waited for, but not for ever: its partitions carry other tenants' documents too. After
    `patience_seconds` its records are dead letters, at once, until it answers again.
    """

    files: VaultTree
    patience_seconds: float
    clock: Callable[[], float] = time.monotonic
    _away_since: dict[Namespace, float] = field(default_factory=dict)

    @contextmanager
    def reach(self, document: DocumentKey) -> Iterator[VaultFiles]:
        """The document's vault, its faults as ours. A missing file passes through: its meaning is the caller's."""
        namespace = document.namespace
        files = self._of(namespace)
        try:
            yield files
        except VaultUnavailable as exc:
            raise self._away(document, str(exc)) from exc
        except FileNotFoundError:
            self._away_since.pop(namespace, None)
            raise
        except (ValueError, OSError) as exc:
            if isinstance(exc, OSError) and exc.errno not in PATH_ERRORS:
                raise self._away(document, f"the vault: {exc}") from exc
            self._away_since.pop(namespace, None)
            raise PoisonRecord("unreadable_reference", f"{document.path}: {exc}") from exc
        else:
            self._away_since.pop(namespace, None)

    def _of(self, namespace: Namespace) -> VaultFiles:
        found = self.files.get(namespace)
        if found is None:
            owner = f"{namespace.tenant_id}/{namespace.agent_id}/{namespace.scope_label}"
            raise PoisonRecord(
                "unknown_vault", f"no vault is set for {owner}: add it to HOPLINE_VAULTS, replay"
            )
        return found

    def _away(self, document: DocumentKey, reason: str) -> HoplineError:
        now = self.clock()
        since = self._away_since.setdefault(document.namespace, now)
        if now - since < self.patience_seconds:
            return Transient(reason)
        return PoisonRecord("vault_unavailable", f"{document.path}: {reason}; bring it back, then replay")


def read_vault(vaults: Vaults, document: DocumentKey, cap_bytes: int) -> FileContent:
    """Raises FileNotFoundError, PoisonRecord for what can't be read, Transient while the root is awaited."""
    with vaults.reach(document) as files:
        return read_content(files, document.path, cap_bytes)
