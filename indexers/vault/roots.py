"""The vault roots of the settings: each with a name and a namespace of its own."""

from __future__ import annotations

from collections.abc import Sequence

from indexers.domain.identity import Namespace
from indexers.errors import ConfigurationError
from indexers.ports import VaultFiles
from indexers.settings import VaultRoot
from indexers.vault.local import LocalVaultFiles


def require_distinct(roots: Sequence[VaultRoot]) -> None:
    """Two roots of one namespace would delete each other's documents, two of one name share a status."""
    for what, owners in (
        ("name", [root.name for root in roots]),
        ("tenant, agent and scope", [root.namespace for root in roots]),
    ):
        if len(set(owners)) < len(owners):
            msg = f"vaults: two roots have the same {what}; give each its own"
            raise ConfigurationError(msg)


def files_of(roots: Sequence[VaultRoot]) -> dict[Namespace, VaultFiles]:
    """The tree of each namespace. Raises ConfigurationError as `require_distinct`."""
    require_distinct(roots)
    return {root.namespace: LocalVaultFiles(root.path) for root in roots}


def chosen_roots(roots: Sequence[VaultRoot], name: str | None) -> tuple[VaultRoot, ...]:
    """All roots, or the one with this name."""
    found = tuple(root for root in roots if name in (None, root.name))
    if not found:
        known = ", ".join(root.name for root in roots) or "none (set HOPLINE_VAULTS)"
        msg = f"no vault root is named {name!r}" if name else "no vault root is set"
        raise ConfigurationError(f"{msg}; the roots are: {known}")
    return found


def only_root(roots: Sequence[VaultRoot], name: str | None) -> VaultRoot:
    """The one with this name; without a name, the only one there is."""
    found = chosen_roots(roots, name)
    if len(found) > 1:
        names = ", ".join(root.name for root in found)
        msg = f"there are several vault roots ({names}): choose one with --root"
        raise ConfigurationError(msg)
    return found[0]
