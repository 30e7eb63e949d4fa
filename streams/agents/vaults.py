"""The vaults that an agent reads and writes. Blocking: off the event loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from indexers.domain.identity import DocumentKey, Namespace
from indexers.errors import ConfigurationError, PoisonRecord, Transient, VaultUnavailable
from indexers.planning import FileContent
from indexers.ports import VaultFiles
from indexers.settings import VaultRoot
from indexers.vault.content import read_content
from indexers.vault.local import LocalVaultFiles


@dataclass(frozen=True, slots=True)
class Vaults:
    """The vault of each namespace that this worker serves."""

    files: Mapping[Namespace, VaultFiles]

    @classmethod
    def of_roots(cls, roots: Sequence[VaultRoot]) -> Vaults:
        """ConfigurationError where two roots claim one namespace: their paths would be the same documents."""
        files: dict[Namespace, VaultFiles] = {}
        for root in roots:
            if root.namespace in files:
                msg = f"vaults: {root.name!r} has tenant, agent and scope of another root; give each its own"
                raise ConfigurationError(msg)
            files[root.namespace] = LocalVaultFiles(root.path)
        return cls(files)

    def of(self, namespace: Namespace) -> VaultFiles:
        found = self.files.get(namespace)
        if found is None:
            owner = f"{namespace.tenant_id}/{namespace.agent_id}/{namespace.scope_label}"
            raise PoisonRecord(
                "unknown_vault", f"no vault root is set for {owner}: add it to HOPLINE_VAULTS, replay"
            )
        return found


def read_vault(vaults: Vaults, document: DocumentKey, cap_bytes: int) -> FileContent:
    """Raises FileNotFoundError, PoisonRecord for what can't be read, Transient while the root is away."""
    with vault_faults(document.path):
        return read_content(vaults.of(document.namespace), document.path, cap_bytes)


@contextmanager
def vault_faults(path: str) -> Iterator[None]:
    """Faults of the vault as ours. A missing file passes through: what it means depends on who asks."""
    try:
        yield
    except (FileNotFoundError, PoisonRecord):
        raise
    except VaultUnavailable as exc:
        raise Transient(str(exc)) from exc
    except (ValueError, PermissionError, IsADirectoryError, NotADirectoryError) as exc:
        raise PoisonRecord("unreadable_reference", f"{path}: {exc}") from exc
    except OSError as exc:
        msg = f"the vault: {exc}"
        raise Transient(msg) from exc
