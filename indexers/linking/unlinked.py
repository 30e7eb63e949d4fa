"""Unlinked mentions: edges from texts to the documents whose title or alias they say, in any order of arrival.

They are a function of the set of documents. A new text is looked at with the names that there are; a name that comes
or goes has the texts looked at that say it; a name that becomes common, or is common no more, likewise. Nothing is
remembered between batches but what stands in the index.

Workers meet here: each has its documents written and refreshed before it looks, reads the rows of a text before it
looks the text up, replaces and removes rows only as it read them, and looks once more at what it changed until a
look changes nothing. So whoever looks last sees both sides. A second look is left out where the same documents are
visible as before the first, and no row met another writer: who shows a document later looks later.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from indexers.domain.identity import DocumentId, DocumentKey, Principal, TenantId, link_id
from indexers.domain.title_names import UNLINKED_MENTION, NameSet
from indexers.errors import Transient
from indexers.linking.sources import StoredLink
from indexers.linking.unlinked_look import Look, NamedText, look_at
from indexers.linking.unlinked_names import ScopedName, own_scope
from indexers.linking.unlinked_rows import (
    Sayer,
    edges_by_name,
    edges_to,
    keep_marks,
    living_versions,
    mark_row,
    marked,
    newest_visible,
    remove_rows,
    rows_from,
    sayers_of_rows,
)
from indexers.linking.unlinked_sayers import find_sayers
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index, LinkRow

#: Writers that meet on one text more often than this let the batch begin again.
ROUNDS_MAX = 30
#: Texts looked at together: what bounds memory.
TEXTS_MAX = 200


class TextSource(Protocol):
    """What documents say, read from their vaults."""

    async def read(self, sayers: Sequence[Sayer]) -> list[NamedText | None]:
        """None: the file isn't what was indexed, so an event of its own is on the way. Transient: it is away."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What mentions ask for: texts of other documents, and how many texts of a scope may say a name."""

    texts: TextSource
    in_degree_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesChanged:
    """A document after its event. `turned`: names that it has and had not, or had and has not."""

    key: DocumentKey
    version: int
    #: None: it is deleted.
    text: NamedText | None
    names: frozenset[str]
    turned: frozenset[str]


async def settle_mentions(
    gate: Gate, tenant_id: TenantId, changed: Sequence[NamesChanged], naming: Naming
) -> None:
    """The caller has refreshed documents, and then links, after its own last write to them."""
    if not changed:
        return
    settling = Settling(gate=gate, tenant_id=tenant_id, texts=naming.texts, cap=naming.in_degree_max)
    ids = [one.key.doc_id for one in changed]
    versions = {one.key.doc_id: one for one in changed}
    own = await rows_from(gate, tenant_id, ids)
    outdated = [link for link in own if _is_outdated(link, versions[DocumentId(link.row.from_doc_id)])]
    await settling.take_up([one.text for one in changed if one.text is not None])
    await settling.names_turned(changed)
    await settling.texts_left(changed, outdated)
    await settling.run()
    await remove_rows(gate, tenant_id, [link.row_id for link in outdated])


def _is_outdated(link: StoredLink, document: NamesChanged) -> bool:
    if document.text is None:
        return link.row.version <= document.version
    return link.row.version < document.version


@dataclass(slots=True, kw_only=True)
class Settling:
    """One batch of one tenant."""

    gate: Gate
    tenant_id: TenantId
    texts: TextSource
    cap: int
    pending: dict[DocumentId, NamedText] = field(default_factory=dict)
    #: Common names whose marks were seen to, and whose edges were looked for.
    _marked: set[ScopedName] = field(default_factory=set)
    #: Names on rows of the versions before this batch: their marks go over to the new version.
    carried: dict[DocumentId, set[str]] = field(default_factory=dict)
    #: Rows made by this batch, by document.
    _made: dict[DocumentId, set[str]] = field(default_factory=dict)

    async def take_up(self, texts: Iterable[NamedText]) -> None:
        self.pending |= {text.key.doc_id: text for text in texts}

    async def look_again(self, sayers: Iterable[Sayer]) -> None:
        wanted = {sayer.key.doc_id: sayer for sayer in sayers if sayer.key.doc_id not in self.pending}
        found = await self.texts.read(list(wanted.values()))
        await self.take_up([text for text in found if text is not None])

    async def names_turned(self, changed: Sequence[NamesChanged]) -> None:
        """Names that came or went: the texts that say them."""
        turned = {ScopedName(name, own_scope(one.key.namespace)) for one in changed for name in one.turned}
        doubtful = {one.key.doc_id: one for one in changed if one.turned or one.text is None}
        edges = await edges_to(self.gate, self.tenant_id, doubtful) if doubtful else []
        for link in edges:
            one = doubtful[DocumentId(link.row.to_doc_id or "")]
            if link.row.target_key not in one.names:
                turned.add(ScopedName(link.row.target_key, own_scope(one.key.namespace)))
        await self._look_up(turned)

    async def texts_left(self, changed: Sequence[NamesChanged], outdated: Sequence[StoredLink]) -> None:
        """Common names that a text says no more may be common no more."""
        by_id = {one.key.doc_id: one for one in changed}
        for link in outdated:
            self.carried.setdefault(DocumentId(link.row.from_doc_id), set()).add(link.row.target_key)
        left: set[ScopedName] = set()
        for doc_id, names in self.carried.items():
            one = by_id[doc_id]
            still = set[str]() if one.text is None else NameSet(names).said_in(one.text.said)
            left |= {ScopedName(name, own_scope(one.key.namespace)) for name in names - still}
        await self._look_up(await marked(self.gate, self.tenant_id, left))

    async def _look_up(self, names: set[ScopedName]) -> None:
        if not names:
            return
        found = await find_sayers(self.gate, self.tenant_id, sorted(names, key=str), cap=self.cap)
        await self.look_again(found.sayers)
        await self._too_common(found.common)

    async def _too_common(self, names: Iterable[ScopedName]) -> None:
        """Marks, and the texts that still have edges under these names."""
        new = sorted(set(names) - self._marked, key=str)
        self._marked |= set(new)
        if not new:
            return
        # An edge that somebody made by an older count was made before that one's second look, or is seen here.
        await self.gate.refresh(Index.LINKS)
        await keep_marks(self.gate, self.tenant_id, new, cap=self.cap)
        edges = await edges_by_name(self.gate, self.tenant_id, new)
        await self.look_again(await sayers_of_rows(self.gate, self.tenant_id, edges))

    async def run(self) -> None:
        for attempt in range(ROUNDS_MAX):
            texts = list(self.pending.values())
            self.pending = {}
            for start in range(0, len(texts), TEXTS_MAX):
                await self._round(texts[start : start + TEXTS_MAX])
            if not self.pending:
                return
            if attempt:
                await asyncio.sleep(random.uniform(0, 0.02 * attempt))  # noqa: S311 - jitter, no secret
            await self.gate.refresh(Index.LINKS)
        msg = f"mentions kept changing under {ROUNDS_MAX} looks"
        raise Transient(msg)

    async def _round(self, texts: Sequence[NamedText]) -> None:
        """One look at these texts; those with a change stay pending, unless nobody else changed anything."""
        before = await newest_visible(self.gate, self.tenant_id)
        ids = [text.key.doc_id for text in texts]
        rows: dict[DocumentId, list[StoredLink]] = {}
        for link in await rows_from(self.gate, self.tenant_id, ids):
            rows.setdefault(DocumentId(link.row.from_doc_id), []).append(link)
        looks = await look_at(self.gate, self.tenant_id, texts, cap=self.cap)
        living = await living_versions(self.gate, self.tenant_id, ids)
        writes: list[RowWrite] = []
        touched: dict[DocumentId, NamedText] = {}
        common: set[ScopedName] = set()
        for text, look in zip(texts, looks, strict=True):
            doc_id = text.key.doc_id
            present = [link for link in rows.get(doc_id, []) if link.row.version == text.version]
            if living.get(doc_id) != text.version:
                late = {link.row_id for link in present} | self._made.get(doc_id, set())
                await remove_rows(self.gate, self.tenant_id, sorted(late))
                continue
            common |= {ScopedName(name, own_scope(text.key.namespace)) for name in look.common}
            due = self._changes(text, look, present)
            if due:
                touched[doc_id] = text
                self._made.setdefault(doc_id, set()).update(write.row_id for write in due)
                writes += due
        alone = await self._write(writes)
        if not alone or await newest_visible(self.gate, self.tenant_id) != before:
            self.pending |= touched
        await self._too_common(common)

    async def _write(self, writes: Sequence[RowWrite]) -> bool:
        """Whether no row met another writer."""
        results = await self.gate.write(writes) if writes else []
        for result in results:
            if result.status == "rejected":
                msg = f"the store refused a row of a mention: {result.reason}"
                raise ValueError(msg)
        return all(result.status == "applied" for result in results)

    def _changes(self, text: NamedText, look: Look, present: Sequence[StoredLink]) -> list[RowWrite]:
        principal = Principal.pipeline(self.tenant_id)
        stored = {link.row_id: link for link in present}
        due: dict[str, LinkRow] = {str(row_id): row for row_id, row in look.rows.items()}
        marks = {link.row.target_key for link in present} | self.carried.get(text.key.doc_id, set())
        for name in marks & look.common:
            due[link_id(text.key.doc_id, text.version, name, UNLINKED_MENTION)] = _mark(text, name)
        writes = [
            RowWrite(principal=principal, index=Index.LINKS, row_id=row_id, action="create", row=row)
            for row_id, row in due.items()
            if row_id not in stored
        ]
        for row_id, link in stored.items():
            row = due.get(row_id)
            if row == link.row:
                continue
            writes.append(
                RowWrite(
                    principal=principal,
                    index=Index.LINKS,
                    row_id=row_id,
                    action="delete_if" if row is None else "replace_if",
                    row=row,
                    seq_no=link.seq_no,
                    primary_term=link.primary_term,
                )
            )
        return writes


def _mark(text: NamedText, name: str) -> LinkRow:
    return mark_row(Sayer(key=text.key, version=text.version, content_hash=""), name)
