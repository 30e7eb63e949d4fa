"""`hopline relate`, `hopline unrelate`: state that a document says how two names are related, or take it back."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopline.cli.terminal import visible

if TYPE_CHECKING:
    from hopline.settings import Settings
    from indexers.domain.entities.relations import RelationKind

Document = Annotated[str, typer.Argument(help="Path of the note that says so, relative to the vault root.")]
Subject = Annotated[str, typer.Argument(help="Name, as in the note or spelled otherwise.")]
Type = Annotated[
    str, typer.Argument(metavar="TYPE", help="owns, leads, on_call_for, …: small letters, '_' or '-'.")
]
Object = Annotated[str, typer.Argument(metavar="OBJECT", help="The other name.")]
SubjectLabel = Annotated[
    str, typer.Option("--subject-label", help="Label of the subject: person, team, service, …")
]
ObjectLabel = Annotated[str, typer.Option("--object-label", help="Label of the object.")]
By = Annotated[str | None, typer.Option("--by", help="Who states it; default: the vault's agent.")]
Root = Annotated[
    str | None, typer.Option("--root", help="Vault of the note; needed where there are several.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def register(app: typer.Typer) -> None:
    app.command()(relate)
    app.command()(unrelate)


def relate(  # noqa: PLR0913 - one argument per option
    document: Document,
    subject: Subject,
    relation_type: Type,
    object_name: Object,
    *,
    subject_label: SubjectLabel,
    object_label: ObjectLabel,
    quote: Annotated[
        str, typer.Option("--quote", help="The note's words that say so; white space doesn't count.")
    ],
    by: By = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """State a relation that a note says in so many words; it is shown while the note says it."""
    names = {"subject": subject, "object": object_name, "relation_type": relation_type}
    labels = {"subject_label": subject_label, "object_label": object_label}
    _state("related", document, root, names | labels | {"quote": quote, "by": by}, as_json=as_json)


def unrelate(  # noqa: PLR0913 - one argument per option
    document: Document,
    subject: Subject,
    relation_type: Type,
    object_name: Object,
    *,
    subject_label: SubjectLabel,
    object_label: ObjectLabel,
    by: By = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Take a stated relation back."""
    names = {"subject": subject, "object": object_name, "relation_type": relation_type}
    labels = {"subject_label": subject_label, "object_label": object_label}
    _state("unrelated", document, root, names | labels | {"by": by}, as_json=as_json)


def _state(kind: RelationKind, path: str, root: str | None, fields: dict[str, Any], *, as_json: bool) -> None:
    from hopline.settings import load_settings
    from indexers.vault.roots import only_root
    from streams.logs import quiet_logging
    from streams.relations import relation_written, require_quote
    from streams.versions import VersionClock

    settings = load_settings()
    quiet_logging()
    chosen = only_root(settings.vaults, root)
    event = relation_written(chosen.namespace, path, kind=kind, version=VersionClock().next(), **fields)
    if kind == "related":
        require_quote(chosen, event, cap_bytes=settings.indexing.document_max_bytes)
    asyncio.run(_send(settings, event))
    done = {"event_id": event.event_id, "doc_id": event.document.doc_id, "path": event.path, "kind": kind}
    said = f"{event.subject} {event.relation_type} {event.object}: {kind} in a moment, by {event.path}"
    typer.echo(json.dumps(done, ensure_ascii=False) if as_json else visible(said))


async def _send(settings: Settings, event: Any) -> None:
    from streams.events import encode
    from streams.producer import EventProducer, OutgoingRecord
    from streams.topics import Topics

    topic = Topics(settings.prefix).memory_writes
    record = OutgoingRecord(topic=topic, key=event.document.record_key, value=encode(event))
    async with EventProducer(settings.kafka, settings.kafka_servers) as producer:
        await producer.send_all([record])
