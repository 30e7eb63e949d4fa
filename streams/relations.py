"""A relation that somebody states, or takes back, as an event."""

from __future__ import annotations

import msgspec

from indexers.domain.entities.evidence import find_quote
from indexers.domain.entities.relations import RelationKind, Statement, check_statement
from indexers.domain.identity import Namespace
from indexers.domain.text import decode_text
from indexers.errors import WrongUsage
from indexers.settings import VaultRoot
from indexers.vault.content import read_content
from indexers.vault.local import LocalVaultFiles
from streams.event_fields import new_event_fields
from streams.events import RelationWritten, encode


def relation_written(  # noqa: PLR0913 - one argument per field of the event
    namespace: Namespace,
    path: str,
    *,
    version: int,
    subject: str,
    subject_label: str,
    relation_type: str,
    object: str,  # noqa: A002 - the event's field
    object_label: str,
    quote: str = "",
    by: str | None = None,
    kind: RelationKind = "related",
) -> RelationWritten:
    """`path`: the document that says so; `by`: who states it, the document's agent by default.

    Raises WrongUsage for names, labels, a type, a quote or a path that can't be ones. Whether the quote stands in the
    document is found by ingest.
    """
    try:
        event = RelationWritten(
            **new_event_fields(namespace),
            version=version,
            path=namespace.document(path).path,
            kind=kind,
            subject=subject,
            subject_label=subject_label,
            relation_type=relation_type,
            object=object,
            object_label=object_label,
            quote=quote,
            by=namespace.agent_id if by is None else by,
        )
        check_statement(msgspec.json.decode(encode(event), type=Statement))
    except ValueError as exc:
        raise WrongUsage(str(exc)) from exc
    return event


def require_quote(root: VaultRoot, event: RelationWritten, *, cap_bytes: int) -> None:
    """What ingest will ask, asked at once: a dead letter tells nobody. Blocking; raises WrongUsage, VaultUnavailable.

    A note that isn't there may be a memory on its way, so that is left to ingest.
    """
    try:
        content = read_content(LocalVaultFiles(root.path), event.path, cap_bytes)
    except (OSError, ValueError):
        return
    decoded = decode_text(content.head, max_bytes=cap_bytes)
    if find_quote(decoded.text if decoded.is_text else "", event.quote) is None:
        msg = f"the quote doesn't stand in {event.path}: give its very words (white space doesn't count)"
        raise WrongUsage(msg)
