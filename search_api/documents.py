"""Documents by id: their row, their text, the links that leave and reach them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, GatedSearch, RowRef, SearchHit
from indexers.opensearch.rows import DocumentRow, Index
from search_api.cursor import ListPosition as Position
from search_api.cursor import decode_list_cursor, encode_cursor, fingerprint
from search_api.models import (
    BacklinkAnswer,
    BacklinksAnswer,
    ContentAnswer,
    DocumentAnswer,
    DocumentName,
    LinkAnswer,
    LinksAnswer,
    OccurrenceAnswer,
)
from search_api.problems import Problem, ProblemError, invalid_field, not_found, unavailable
from search_api.reading import TextPage, Unread, VaultLibrary

_NAME_FIELDS: Final = ("doc_id", "title", "path", "version", "deleted")
_LINK_SORT: Final = ("target_key", "link_type")
_BACKLINK_SORT: Final = ("from_path", "from_doc_id", "target_key", "link_type")
#: Says only that the text says a name too common for edges (indexers.linking.unlinked_rows).
_MARK_OF_COMMON_NAME: Final[Mapping[str, Any]] = {
    "bool": {
        "filter": [{"term": {"link_type": "unlinked_mention"}}],
        "must_not": [{"exists": {"field": "to_doc_id"}}],
    }
}
#: Rows fetched at once, however few are to be shown, and how often one page asks for more.
_BACKLINK_ROWS: Final = 100
_BACKLINK_ROUNDS: Final = 5


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
        list_name = fingerprint("links", principal.tenant_id, principal.agent_id, doc_id)
        after = _after(cursor, list_name, _LINK_SORT)
        query = {
            "bool": {
                "filter": [{"term": {"from_doc_id": doc_id}}, {"term": {"version": row.version}}],
                "must_not": [_MARK_OF_COMMON_NAME],
            }
        }
        hits, following = await self._list(principal, query, _LINK_SORT, after=after, size=size)
        names = await self._names(principal, [hit.source["to_doc_id"] for hit in hits])
        return LinksAnswer(
            links=[_link_answer(hit.source, names) for hit in hits],
            next_cursor=None if following is None else encode_cursor(following, list_name),
        )

    async def backlinks(
        self, principal: Principal, doc_id: str, *, size: int, cursor: str | None
    ) -> BacklinksAnswer:
        """Who points here, by path. Edges of a version that its document has left behind are passed over.

        Where very many are, a page is shorter than `size`, or empty, and still has a following one.
        """
        await self._row(principal, doc_id)
        list_name = fingerprint("backlinks", principal.tenant_id, principal.agent_id, doc_id)
        after = _after(cursor, list_name, _BACKLINK_SORT)
        query = {"term": {"to_doc_id": doc_id}}
        shown: list[BacklinkAnswer] = []
        for _ in range(_BACKLINK_ROUNDS):
            hits, following = await self._list(
                principal, query, _BACKLINK_SORT, after=after, size=max(size, _BACKLINK_ROWS)
            )
            names = await self._names(principal, [hit.source["from_doc_id"] for hit in hits])
            for place, hit in enumerate(hits, start=1):
                found = _backlink_answer(hit.source, names)
                if found is not None:
                    shown.append(found)
                if len(shown) == size:
                    after = following if place == len(hits) else _position(hit)
                    break
            else:
                after = following
            if after is None or len(shown) == size:
                break
        return BacklinksAnswer(
            links=shown, next_cursor=None if after is None else encode_cursor(after, list_name)
        )

    async def _row(self, principal: Principal, doc_id: str) -> DocumentRow:
        if not _is_id(doc_id):
            raise ProblemError(not_found())
        [row] = await self._gate.get_many(Index.DOCUMENTS, [RowRef(principal=principal, row_id=doc_id)])
        if row is None or row.source["deleted"]:
            raise ProblemError(not_found())
        return msgspec.convert(row.source, DocumentRow)

    async def _list(
        self,
        principal: Principal,
        query: dict[str, Any],
        sort: Sequence[str],
        *,
        after: Position | None,
        size: int,
    ) -> tuple[list[SearchHit], Position | None]:
        """A page of link rows in a total order, and where it ended when there are more."""
        body: dict[str, Any] = {
            "query": query,
            "size": size + 1,
            "sort": [{name: "asc"} for name in sort],
            "track_total_hits": False,
        }
        if after is not None:
            body["search_after"] = after.after
        search = GatedSearch(principal=principal, index=Index.LINKS, body=body)
        [found] = await self._gate.search_many([search])
        hits = found.hits[:size]
        if len(found.hits) <= size:
            return hits, None
        return hits, _position(hits[-1])

    async def _names(
        self, principal: Principal, doc_ids: Sequence[str | None]
    ) -> dict[str, Mapping[str, Any]]:
        """Living documents among these that the principal may see."""
        wanted = list(dict.fromkeys(doc_id for doc_id in doc_ids if doc_id is not None))
        refs = [RowRef(principal=principal, row_id=doc_id) for doc_id in wanted]
        rows = await self._gate.get_many(Index.DOCUMENTS, refs, fields=_NAME_FIELDS) if refs else []
        return {row.row_id: row.source for row in rows if row is not None and not row.source["deleted"]}


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


def _is_id(doc_id: str) -> bool:
    """As ids are written: anything else names nothing, and needn't be looked up."""
    try:
        return str(UUID(doc_id)) == doc_id
    except ValueError:
        return False


def _after(cursor: str | None, list_name: str, sort: Sequence[str]) -> Position | None:
    if cursor is None:
        return None
    try:
        return decode_list_cursor(cursor, list_name, length=len(sort))
    except ValueError as exc:
        raise ProblemError(invalid_field("query.cursor", str(exc))) from exc


def _position(hit: SearchHit) -> Position:
    return Position(after=[str(value) for value in hit.sort])


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
        to=None if to is None else _name(to),
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
        from_=_name(origin),
        target=source["target"],
        link_type=source["link_type"],
        ambiguous=source["ambiguous"],
        occurrences=[OccurrenceAnswer(**place) for place in source["occurrences"]],
    )


def _name(source: Mapping[str, Any]) -> DocumentName:
    return DocumentName(doc_id=source["doc_id"], title=source["title"], path=source["path"])
