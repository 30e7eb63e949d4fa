"""One namespace's rows out of the index, before its files are sent again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from typing import TypeVar

from indexers.domain.identity import EntityNamespace, Namespace, Principal
from indexers.domain.title_names import names_of
from indexers.linking.settle import settle
from indexers.linking.sources import ChangedDocument, links_naming
from indexers.linking.unlinked import NamesChanged, Naming, settle_mentions
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import Query, owned_by
from streams.event_fields import new_event_fields
from streams.events import MentionsExtracted, encode
from streams.producer import OutgoingRecord
from streams.topics import Topics
from streams.versions import VersionClock, is_possible

T = TypeVar("T")
LINK_PAGE = 200
EVENTS_MAX = 1_000


async def clear_namespace(gate: Gate, namespace: Namespace, naming: Naming) -> int:
    """Remove one namespace's rows; others' links into it dangle until it is back. The newest version.

    Mentions of its titles go, and what these overlaid or made common is looked at again.
    """
    principal = Principal.pipeline(namespace.tenant_id)
    query = owned_by(namespace)
    await gate.refresh()
    documents: list[ChangedDocument] = []
    gone: list[NamesChanged] = []
    async for document, names in _documents(gate, namespace):
        documents.append(document)
        gone.append(names)
    await gate.delete_matching(principal, Index.DOCUMENTS, query)
    await gate.refresh()
    for part in _pages(gone):
        await settle_mentions(gate, namespace.tenant_id, part, naming)
    for index in (Index.GATE, Index.CHUNKS, Index.LINKS, Index.RELATIONS, Index.EXTRACTIONS):
        await gate.delete_matching(principal, index, query)
    await gate.refresh()
    for page in _pages(documents):
        async with aclosing(links_naming(gate, namespace.tenant_id, page)) as found:
            async for links in found:
                await settle(gate, namespace.tenant_id, links)
    return max((d.version for d in documents if is_possible(d.version)), default=0)


async def clear_entities(
    gate: Gate, namespace: Namespace, *, topics: Topics, clock: VersionClock
) -> AsyncGenerator[list[OutgoingRecord], None]:
    """Remove the names that only this namespace's documents mention; events for link, where others mention names too.

    Names of shared and team documents belong to several authors. Whose edges go in part, link counts and clusters
    anew: it alone writes names. An author alone has all rows of the namespace removed, mistaken ones too.
    """
    owner = EntityNamespace.of(namespace)
    principal = Principal.pipeline(namespace.tenant_id)
    mine: Query = {"term": {"namespace": owner.owner}}
    await gate.refresh()
    await _remove_curation(gate, principal, mine)
    others: Query = {"bool": {"filter": [mine], "must_not": [owned_by(namespace)]}}
    if await gate.count(principal, Index.MENTIONS, others):
        async with aclosing(_ends(gate, namespace, clock)) as pages:
            async for page in pages:
                yield [_record(topics, event) for event in page]
    else:
        for index in (Index.MENTIONS, Index.PROPOSALS, Index.ENTITIES):
            await gate.delete_matching(principal, index, mine)


async def _remove_curation(gate: Gate, principal: Principal, query: Query) -> None:
    """Row by row with its own version: what the journal brings back is of the same one, and must not be stale."""
    async with aclosing(gate.scan(principal, Index.CURATION, query, fields=("event_id",))) as scan:
        removals = [
            RowWrite(
                principal=principal,
                index=Index.CURATION,
                row_id=row.row_id,
                action="delete",
                version=row.version,
            )
            async for row in scan
        ]
    if removals:
        await gate.write(removals)


async def _ends(
    gate: Gate, namespace: Namespace, clock: VersionClock
) -> AsyncGenerator[list[MentionsExtracted], None]:
    """The end of each document and label that has an edge; some twice, which changes nothing."""
    principal = Principal.pipeline(namespace.tenant_id)
    fields = ("path", "label")
    pairs: set[tuple[str, str]] = set()
    async with aclosing(gate.scan(principal, Index.MENTIONS, owned_by(namespace), fields=fields)) as scan:
        async for row in scan:
            pairs.add((row.source["path"], row.source["label"]))
            if len(pairs) == EVENTS_MAX:
                yield [_end(namespace, path, label, clock) for path, label in sorted(pairs)]
                pairs.clear()
    yield [_end(namespace, path, label, clock) for path, label in sorted(pairs)]


def _end(namespace: Namespace, path: str, label: str, clock: VersionClock) -> MentionsExtracted:
    return MentionsExtracted(
        **new_event_fields(namespace),
        version=clock.next(),
        path=path,
        kind="deleted",
        doc_id=namespace.document(path).doc_id,
        label=label,
    )


def _record(topics: Topics, event: MentionsExtracted) -> OutgoingRecord:
    key = EntityNamespace.of(event.namespace).record_key(event.label)
    return OutgoingRecord(topic=topics.mentions, key=key, value=encode(event))


async def _documents(gate: Gate, namespace: Namespace) -> AsyncIterator[tuple[ChangedDocument, NamesChanged]]:
    fields = ("path", "alias_keys", "version", "title", "aliases")
    principal = Principal.pipeline(namespace.tenant_id)
    async with aclosing(gate.scan(principal, Index.DOCUMENTS, owned_by(namespace), fields=fields)) as scan:
        async for row in scan:
            key, version = namespace.document(row.source["path"]), row.source["version"]
            names = frozenset(names_of(row.source["title"], row.source["aliases"]))
            yield (
                ChangedDocument(
                    key=key, version=version, deleted=True, alias_keys=tuple(row.source["alias_keys"])
                ),
                NamesChanged(key=key, version=version, text=None, names=frozenset(), turned=names),
            )


def _pages(documents: Sequence[T]) -> Iterable[Sequence[T]]:
    return (documents[start : start + LINK_PAGE] for start in range(0, len(documents), LINK_PAGE))
