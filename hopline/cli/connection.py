"""The reading commands' client, and what a person may write for a document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import stamina

from hopline.calls import NotFound
from hopline.client import HoplineClient
from hopline.settings import Settings, load_settings
from indexers.errors import HoplineError


@contextmanager
def connected() -> Iterator[tuple[HoplineClient, Settings]]:
    settings = load_settings()
    # A command says what failed once, at its end; its output is for programs too.
    stamina.instrumentation.set_on_retry_hooks(())
    with HoplineClient.from_settings(settings) as client:
        yield client, settings


def resolve(client: HoplineClient, settings: Settings, document: str) -> str:
    """An id as it is; a path as the document with this path in the first configured vault that has it."""
    if _is_id(document):
        return document
    try:
        ids = [root.namespace.document(document).doc_id for root in settings.vaults]
    except ValueError as exc:
        raise HoplineError(str(exc)) from exc
    for doc_id in ids:
        try:
            return client.document(doc_id).doc_id
        except NotFound:
            continue
    msg = f"no document {document!r}: give an id (`hopline search --json`) or a path in a configured vault"
    raise HoplineError(msg)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
