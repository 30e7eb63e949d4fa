"""Documents by id: their row, their text, the links that leave and reach them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from indexers.domain.identity import Principal
from indexers.domain.title_names import UNLINKED_MENTION
from indexers.opensearch.gate import Gate, RowRef, SearchHit
from indexers.opensearch.rows import DocumentRow, Index
from search_api.models import (
    BacklinkAnswer,
    BacklinksAnswer,
    ContentAnswer,
    DocumentAnswer,
    LinkAnswer,
    LinksAnswer,
    OccurrenceAnswer,
)
from search_api.paging import RowList, SortKey, read_page
from search_api.problems import Problem, ProblemError, no_such, unavailable
from search_api.reading import TextPage, Unread, VaultLibrary
from search_api.stored import document_name, is_id, living_documents

_BY_TARGET: Final = tuple(SortKey(field=name) for name in ("target_key", "link_type"))
_BY_ORIGIN: Final = tuple(
    SortKey(field=name) for name in ("from_path", "from_doc_id", "target_key", "link_type")
)
#: Says only that the text says a name too common for edges (indexers.linking.unlinked_rows).
_MARK_OF_COMMON_NAME: Final[Mapping[str, Any]] = {
    "bool": {
        "filter": [{"term": {"link_type": UNLINKED_MENTION}}],
        "must_not": [{"exists": {"field": "to_doc_id"}}],
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """The caller has this text, and the file still is what was indexed."""

    content_hash: str


class Documents:
    """Raises ProblemError: 404 alike for what isn't there and what the principal may not see."""

    def __init__(self, gate: Gate, library: VaultLibrary) -> None:
        self._gate = gate
        self._library = library

    async def get(self, principal: Principal, doc_id: str) -> DocumentAnswer:
        return _document_answer(await self._row(principal, doc_id))

    async def content(
        self,
        principal: Principal,
        doc_id: str,
        *,
        start: int,
        max_chars: int,
        has: Callable[[str], bool] = lambda _: False,
    ) -> ContentAnswer | Unchanged:
        """A page of exactly the file's text; 409 where the file isn't what was indexed, changed or gone.

        `has`: whether the caller has the text with this hash; then it is only made sure that it is still true.
        """
        row = await self._row(principal, doc_id)
        is_known = has(row.content_hash)
        found = await self._library.page(row, start=start, max_chars=0 if is_known else max_chars)
        if isinstance(found, str):
            raise ProblemError(_UNREAD[found])
        return Unchanged(content_hash=row.content_hash) if is_known else _content_answer(row, found)

    async def links(self, principal: Principal, doc_id: str, *, size: int, cursor: str | None) -> LinksAnswer:
        """What the document's present version points at, in the order of the targets' keys."""
        row = await self._row(principal, doc_id)
        rows = RowList(
            name=("links", doc_id),
            index=Index.LINKS,
            query={
                "bool": {
                    "filter": [{"term": {"from_doc_id": doc_id}}, {"term": {"version": row.version}}],
                    "must_not": [_MARK_OF_COMMON_NAME],
                }
            },
            sort=_BY_TARGET,
        )

        async def show(hits: Sequence[SearchHit]) -> list[LinkAnswer]:
            to = await living_documents(self._gate, principal, [hit.source["to_doc_id"] for hit in hits])
            return [_link_answer(hit.source, to) for hit in hits]

        shown, following = await read_page(self._gate, principal, rows, show, cursor=cursor, size=size)
        return LinksAnswer(links=shown, next_cursor=following)

    async def backlinks(
        self, principal: Principal, doc_id: str, *, size: int, cursor: str | None
    ) -> BacklinksAnswer:
        """Who points here, by path. Edges of a version that its document has left behind are passed over."""
        await self._row(principal, doc_id)
        rows = RowList(
            name=("backlinks", doc_id),
            index=Index.LINKS,
            query={"term": {"to_doc_id": doc_id}},
            sort=_BY_ORIGIN,
            looks_far=True,
        )

        async def show(hits: Sequence[SearchHit]) -> list[BacklinkAnswer | None]:
            origins = await living_documents(self._gate, principal, [h.source["from_doc_id"] for h in hits])
            return [_backlink_answer(hit.source, origins) for hit in hits]

        shown, following = await read_page(self._gate, principal, rows, show, cursor=cursor, size=size)
        return BacklinksAnswer(links=shown, next_cursor=following)

    async def _row(self, principal: Principal, doc_id: str) -> DocumentRow:
        if not is_id(doc_id):
            raise no_such("document")
        [row] = await self._gate.get_many(Index.DOCUMENTS, [RowRef(principal=principal, row_id=doc_id)])
        if row is None or row.source["deleted"]:
            raise no_such("document")
        return msgspec.convert(row.source, DocumentRow)


_UNREAD: Final[Mapping[Unread, Problem]] = {
    reason: Problem(
        kind="content-out-of-step",
        detail="The file is not what was indexed: changed or gone. The index will follow; ask again.",
        headers={"retry-after": "1"},
    )
    for reason in ("changed", "gone")
} | {
    "not_text": Problem(kind="content-not-text", detail="The file is not text."),
    "unreadable": unavailable("vault-unavailable", "The file can't be read now.", 5),
    "vault_away": unavailable("vault-unavailable", "The vault can't be read now.", 5),
    "no_vault": unavailable("vault-unavailable", "This service has no access to that vault.", 60),
}


def _document_answer(row: DocumentRow) -> DocumentAnswer:
    names = set(DocumentAnswer.model_fields) - {"agent", "team"}
    shown = {name: getattr(row, name) for name in names}
    return DocumentAnswer(**shown, agent=row.agent_id, team=row.team_id)


def _content_answer(row: DocumentRow, page: TextPage) -> ContentAnswer:
    return ContentAnswer(
        doc_id=row.doc_id,
        path=row.path,
        content_hash=row.content_hash,
        start=page.start,
        end=page.end,
        next=page.end if page.end < page.total_chars else None,
        total_chars=page.total_chars,
        text=page.text,
        warnings=list(page.warnings),
    )


def _link_answer(source: Mapping[str, Any], names: Mapping[str, Mapping[str, Any]]) -> LinkAnswer:
    to = names.get(source["to_doc_id"] or "")
    return LinkAnswer(
        target=source["target"],
        link_type=source["link_type"],
        to=None if to is None else document_name(to),
        ambiguous=bool(source["ambiguous"]) and to is not None,
        occurrences=[OccurrenceAnswer(**place) for place in source["occurrences"]],
    )


def _backlink_answer(
    source: Mapping[str, Any], names: Mapping[str, Mapping[str, Any]]
) -> BacklinkAnswer | None:
    origin = names.get(source["from_doc_id"])
    if origin is None or origin["version"] != source["version"]:
        return None
    return BacklinkAnswer(
        from_=document_name(origin),
        target=source["target"],
        link_type=source["link_type"],
        ambiguous=source["ambiguous"],
        occurrences=[OccurrenceAnswer(**place) for place in source["occurrences"]],
    )
