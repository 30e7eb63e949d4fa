"""Relation rows: written with their document, and again when a statement about it comes.

A document's row is written before the journal is read, and the journal before the document's row is read: whichever
of a document and a statement about it comes second sees the other, in one worker or in two.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, TypeVar

from indexers.domain.entities.relations import Statement
from indexers.domain.identity import DocumentKey, Namespace, Principal
from indexers.errors import PoisonRecord, Transient
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index
from indexers.relations import due_relations
from streams.agents.ingest.due import Due, Move, due_of, row_writes
from streams.agents.ingest.statements import Journals, Stated
from streams.agents.ingest.write import Written
from streams.batch import Poisoned
from streams.context import AgentContext

T = TypeVar("T")
_FIELDS: Final = ("version", "content_hash", "deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """The relations' part of ingest. `executor`: a thread for the journals."""

    gate: Gate
    context: AgentContext
    journals: Journals
    executor: Executor

    async def take_along(self, moves: Sequence[Move]) -> tuple[set[DocumentKey], list[Poisoned]]:
        """Statements about moved documents, to be called before these are written. Documents that have new ones."""
        touched: set[DocumentKey] = set()
        refused: list[Poisoned] = []
        for namespace, members in _grouped(moves).items():
            pairs = [(move.old_path, move.document.path) for move in members]
            try:
                paths = await self._vault(lambda n=namespace, p=pairs: self.journals.take_along(n, p))  # type: ignore[misc]
            except PoisonRecord as error:
                # The document is indexed all the same; a replay of the letter takes them along.
                refused += [Poisoned(record=move.record, error=error) for move in members]
            else:
                touched |= {namespace.document(path) for path in paths}
        return touched, refused

    async def follow(self, written: Written) -> None:
        """Relations of documents whose rows were just written. A document without statements costs nothing."""
        due: list[Due] = []
        by_document = {work.document: work for work in written.applied}
        for namespace, documents in _by_namespace(by_document).items():
            statements, sure = await self._run(lambda n=namespace: self._last_known(n))  # type: ignore[misc]
            for document in documents:
                work = by_document[document]
                if not sure:
                    # Its vault is away: the next sight of the file indexes it once more.
                    written.incomplete.add(document.doc_id)
                if document.path in statements:
                    due.append(await self._run(lambda w=work, s=statements: due_of(w, s)))  # type: ignore[misc]
        for document, error in (await self._write(due)).items():
            written.incomplete.add(document.doc_id)
            written.rejected.append(Poisoned(record=by_document[document].arrival.record, error=error))

    async def finish(self, touched: set[DocumentKey], stated: Sequence[Stated]) -> list[Poisoned]:
        """The batch's statements, once its documents are written: into the journal, then into rows."""
        kept: list[Stated] = []
        refused: list[Poisoned] = []
        for namespace, members in _grouped(stated).items():
            try:
                good, bad = await self._vault(lambda n=namespace, m=members: self.journals.accept(n, m))  # type: ignore[misc]
            except PoisonRecord as error:
                bad, good = [Poisoned(record=one.record, error=error) for one in members], []
            kept += good
            refused += bad
        faults = await self._settle(touched | {one.document for one in kept})
        return refused + [
            Poisoned(record=one.record, error=faults[one.document]) for one in kept if one.document in faults
        ]

    async def _settle(self, documents: Collection[DocumentKey]) -> dict[DocumentKey, PoisonRecord]:
        """Rows of documents as they are indexed now; again where another worker appended meanwhile. Refused ones."""
        faults: dict[DocumentKey, PoisonRecord] = {}
        waiting = set(documents)
        while waiting:
            due: list[Due] = []
            for namespace, members in _by_namespace(waiting).items():
                try:
                    due += await self._due_now(namespace, members)
                except PoisonRecord as error:
                    faults |= dict.fromkeys(members, error)
            faults |= await self._write(due)
            changed = {ns for ns in _by_namespace(waiting) if await self._run(lambda n=ns: self._changed(n))}  # type: ignore[misc]
            waiting = {one for one in waiting if one.namespace in changed and one not in faults}
            self.context.beat()
        return faults

    async def _due_now(self, namespace: Namespace, documents: Sequence[DocumentKey]) -> list[Due]:
        """None of a document that is not indexed, or whose file has changed since: its own event brings them."""
        statements = await self._vault(lambda: self.journals.read(namespace))
        refs = [RowRef(principal=_pipeline(namespace), row_id=one.doc_id) for one in documents]
        rows = await self.context.hold(
            "opensearch", lambda: self.gate.get_many(Index.DOCUMENTS, refs, fields=_FIELDS)
        )
        due: list[Due] = []
        for document, row in zip(documents, rows, strict=True):
            if row is None or row.source["deleted"]:
                continue
            version, content_hash = int(row.source["version"]), str(row.source["content_hash"])
            said = statements.get(document.path, ())
            found = await self._vault(
                lambda d=document, v=version, h=content_hash, s=said: self._due_of_file(d, v, h, s)  # type: ignore[misc]
            )
            due += [] if found is None else [found]
        return due

    def _due_of_file(
        self, document: DocumentKey, version: int, content_hash: str, statements: Sequence[Statement]
    ) -> Due | None:
        text = self.journals.read_indexed(document, content_hash)
        if text is None:
            return None
        return Due(
            document=document, version=version, relations=due_relations(document, version, text, statements)
        )

    async def _write(self, due: Sequence[Due]) -> dict[DocumentKey, PoisonRecord]:
        """By document, what the store refused."""
        writes = [(one.document, write) for one in due for write in row_writes(one)]
        if not writes:
            return {}
        results = await self.context.hold(
            "opensearch", lambda: self.gate.write([write for _, write in writes])
        )
        relations = self.context.metrics.relations
        relations.labels(outcome="stands").inc(sum(len(one.relations.rows) for one in due))
        relations.labels(outcome="quote_missing").inc(sum(one.relations.unquoted for one in due))
        return {
            document: PoisonRecord(
                "rejected_by_store", f"{document.path}: {result.reason or 'no reason given'}"
            )
            for (document, _), result in zip(writes, results, strict=True)
            if result.status == "rejected"
        }

    def _last_known(self, namespace: Namespace) -> tuple[Mapping[str, tuple[Statement, ...]], bool]:
        """Blocking. False where the vault is away: a document that came with its text doesn't wait for it."""
        try:
            return self.journals.read(namespace), True
        except (Transient, PoisonRecord):
            return self.journals.known(namespace), False

    def _changed(self, namespace: Namespace) -> bool:
        try:
            return self.journals.has_changed(namespace)
        except OSError:
            return False

    async def _vault(self, call: Callable[[], T]) -> T:
        return await self.context.hold("vault", lambda: self._run(call))

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.executor, call)


def _pipeline(namespace: Namespace) -> Principal:
    return Principal.pipeline(namespace.tenant_id)


M = TypeVar("M", Move, Stated)


def _grouped(members: Iterable[M]) -> dict[Namespace, list[M]]:
    groups: defaultdict[Namespace, list[M]] = defaultdict(list)
    for member in members:
        groups[member.document.namespace].append(member)
    return groups


def _by_namespace(documents: Iterable[DocumentKey]) -> dict[Namespace, list[DocumentKey]]:
    groups: defaultdict[Namespace, list[DocumentKey]] = defaultdict(list)
    for document in documents:
        groups[document.namespace].append(document)
    return groups
