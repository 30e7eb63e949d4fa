"""Statements about relations: out of the records, checked against the vault, into its journal. Blocking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import msgspec

from indexers.domain.entities.evidence import find_quote
from indexers.domain.entities.relations import Statement, check_statement, copies
from indexers.domain.identity import DocumentKey, Namespace
from indexers.domain.text import decode_text
from indexers.errors import PoisonRecord, Transient
from indexers.planning import FileContent
from indexers.vault.journal import FOLDER
from indexers.vault.relations import RELATIONS_FILE, RelationJournal
from streams.agents.vaults import Vaults, read_vault
from streams.batch import Poisoned, Record
from streams.events import MEMORY_CHANGES, RelationWritten, decode, encode, kind_of
from streams.topics import Topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A record that states a relation."""

    record: Record
    statement: Statement
    document: DocumentKey


def split(records: Sequence[Record], topics: Topics) -> tuple[list[Stated], list[Record], list[Poisoned]]:
    """Statements, the records that are none, and those that want to be one: other kinds are memories' own."""
    stated: list[Stated] = []
    others: list[Record] = []
    poisoned: list[Poisoned] = []
    for record in records:
        if record.topic != topics.memory_writes or kind_of(record.value) in (None, *MEMORY_CHANGES):
            others.append(record)
            continue
        try:
            statement = decode_statement(record.value)
        except PoisonRecord as error:
            poisoned.append(Poisoned(record=record, error=error))
        else:
            stated.append(Stated(record=record, statement=statement, document=statement.document))
    return stated, others, poisoned


def decode_statement(value: bytes | None) -> Statement:
    """Checked; raises PoisonRecord."""
    event = decode(value, RelationWritten)
    try:
        statement = msgspec.json.decode(encode(event), type=Statement)
        check_statement(statement)
    except (msgspec.ValidationError, ValueError) as exc:
        raise PoisonRecord("invalid_fields", str(exc)) from exc
    return statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Journals:
    """The journals of the vaults that this worker serves. Of one that it doesn't serve, nothing is known."""

    vaults: Vaults
    cap_bytes: int
    _opened: dict[Namespace, RelationJournal] = field(default_factory=dict)

    def _of(self, namespace: Namespace) -> RelationJournal | None:
        """Kept: of a quiet namespace, a few numbers."""
        found = self._opened.get(namespace)
        root = None if found is not None else self.vaults.files.root_of(namespace)
        if root is not None:
            found = self._opened.setdefault(namespace, RelationJournal(root))
        return found

    def known(self, namespace: Namespace) -> Mapping[str, tuple[Statement, ...]]:
        """By path, as read last."""
        journal = self._of(namespace)
        return {} if journal is None else journal.known

    def read(self, namespace: Namespace) -> Mapping[str, tuple[Statement, ...]]:
        """By path. Raises Transient while the root is awaited, else PoisonRecord."""
        journal = self._of(namespace)
        if journal is None:
            return {}
        with self.vaults.reach(_place(namespace)) as files:
            return journal.read(files.root_identity)

    def has_changed(self, namespace: Namespace) -> bool:
        """Since the last `read`."""
        journal = self._of(namespace)
        return journal is not None and journal.has_changed()

    def accept(self, namespace: Namespace, stated: Sequence[Stated]) -> tuple[list[Stated], list[Poisoned]]:
        """Those that stand in the journal now, and those refused. Raises Transient while the root is awaited."""
        kept: list[Stated] = []
        refused: list[Poisoned] = []
        present = {one.event_id for some in self.read(namespace).values() for one in some}
        by_document = sorted(stated, key=lambda one: one.document.path)
        for document, members in groupby(by_document, key=lambda one: one.document):
            text: str | None = None
            for one in members:
                try:
                    if one.statement.event_id not in present and one.statement.kind == "related":
                        text = self._text(document) if text is None else text
                        _require_quote(text, one)
                    kept.append(one)
                except PoisonRecord as error:
                    refused.append(Poisoned(record=one.record, error=error))
        self._append(namespace, [one.statement for one in kept])
        return kept, refused

    def take_along(self, namespace: Namespace, moves: Iterable[tuple[str, str]]) -> set[str]:
        """(old path, new path): what was said of the old is said of the new. Paths about which that is news."""
        lines: list[Statement] = []
        found = self.read(namespace)
        for old, new in moves:
            lines += copies(found.get(old, ()), new, found.get(new, ()))
        self._append(namespace, lines)
        return {line.document.path for line in lines}

    def erase(self, document: DocumentKey) -> int:
        """Statements that cite the document, out of the journal. Raises Transient while the root is awaited."""
        journal = self._of(document.namespace)
        if journal is None:
            return 0
        with self.vaults.reach(_place(document.namespace)) as files:
            files.root_identity()
            return journal.erase(document.path)

    def read_indexed(self, document: DocumentKey, content_hash: str) -> str | None:
        """The document's text if the file still is the one that was indexed. Transient while the root is awaited."""
        try:
            content = read_vault(self.vaults, document, self.cap_bytes)
        except (FileNotFoundError, PoisonRecord):
            return None
        return self._decoded(content) if content.content_hash == content_hash else None

    def _text(self, document: DocumentKey) -> str:
        """As the next indexing reads it: the vault is the truth, the index may lag behind."""
        try:
            return self._decoded(read_vault(self.vaults, document, self.cap_bytes))
        except FileNotFoundError as exc:
            raise PoisonRecord(
                "no_such_document", f"{document.path}: there is no such note in the vault"
            ) from exc

    def _decoded(self, content: FileContent) -> str:
        decoded = decode_text(content.head, max_bytes=self.cap_bytes)
        return decoded.text if decoded.is_text else ""

    def _append(self, namespace: Namespace, statements: Sequence[Statement]) -> None:
        if not statements:
            return
        journal = self._of(namespace)
        with self.vaults.reach(_place(namespace)) as files:
            if journal is None:
                raise PoisonRecord(
                    "unknown_vault", "no vault is set for it: add it to HOPLINE_VAULTS, replay"
                )
            files.root_identity()
            self.vaults.files.make(namespace)
            try:
                journal.append(statements)
            except FileNotFoundError as exc:
                # The root went between two looks: the next try sees it as it is then.
                raise Transient(str(exc)) from exc


def _require_quote(text: str, stated: Stated) -> None:
    if find_quote(text, stated.statement.quote) is None:
        raise PoisonRecord(
            "quote_missing", f"{stated.document.path}: the quote doesn't stand in the document's present text"
        )


def _place(namespace: Namespace) -> DocumentKey:
    return DocumentKey(namespace=namespace, path=f"{FOLDER}/{RELATIONS_FILE}")
