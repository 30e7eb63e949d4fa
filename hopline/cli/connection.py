"""The reading commands' client, and what a person may write for a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from uuid import UUID

import stamina

from hopline.calls import NotFound
from hopline.client import HoplineClient
from hopline.service_address import admin_key, api_url
from hopline.settings import Settings, load_settings
from indexers.domain.identity import AgentId, Namespace, Scope, TeamId, TenantId
from indexers.errors import HoplineError, WrongUsage
from indexers.settings import VaultRoot


@contextmanager
def connected() -> Iterator[tuple[HoplineClient, Settings]]:
    settings = load_settings()
    # A command says what failed once, at its end; its output is for programs too.
    stamina.instrumentation.set_on_retry_hooks(())
    with HoplineClient.from_settings(settings) as client:
        yield client, settings


@contextmanager
def administering() -> Iterator[HoplineClient]:
    """With the key that may most: HOPLINE_API_KEY, else the local operator's.

    Nothing is asked twice by itself: a key whose answer got lost would be a key that nobody has.
    """
    settings = load_settings()
    with HoplineClient(api_url(settings), admin_key(settings), attempts=1) as client:
        yield client


def resolve(client: HoplineClient, settings: Settings, document: str) -> str:
    """An id as it is; a path as the document with this path in the first configured vault that has it.

    After these come the vaults that the service keeps for the key's own memories: personal, teams', shared.
    """
    if _is_id(document):
        return document
    if PurePath(document).is_absolute():
        return client.document(_inside_a_vault(settings.vaults, Path(document))).doc_id
    for namespace in _namespaces(client, settings.vaults):
        try:
            doc_id = namespace.document(document).doc_id
        except ValueError as exc:
            msg = f"{exc}, counted from the vault root"
            raise WrongUsage(msg) from exc
        try:
            return client.document(doc_id).doc_id
        except NotFound:
            continue
    msg = (
        f"no document {document!r}: give an id (`hopline search --json`) or a path relative to the vault root"
    )
    raise HoplineError(msg)


def _namespaces(client: HoplineClient, vaults: Iterable[VaultRoot]) -> Iterator[Namespace]:
    """Each once; the service is asked who the key is only where no configured vault has it."""
    configured = [root.namespace for root in vaults]
    yield from configured
    who = client.whoami()
    scopes = [
        (Scope.PERSONAL, None),
        *((Scope.TEAM, TeamId(team)) for team in who.teams),
        (Scope.SHARED, None),
    ]
    own = [
        Namespace(tenant_id=TenantId(who.tenant), agent_id=AgentId(who.agent), scope=scope, team_id=team)
        for scope, team in scopes
    ]
    yield from (namespace for namespace in own if namespace not in configured)


def _inside_a_vault(vaults: Iterable[VaultRoot], path: Path) -> str:
    """The id of a file that is named by its whole path."""
    for root in vaults:
        for folder in (root.path, root.path.resolve()):
            if path.is_relative_to(folder):
                return root.namespace.document(path.relative_to(folder).as_posix()).doc_id
    msg = f"{str(path)!r} lies in no configured vault: give the path relative to the vault root, or an id"
    raise WrongUsage(msg)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
