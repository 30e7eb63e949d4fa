"""Documents by id."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Response

from search_api.documents import Unchanged
from search_api.erasure.models import ErasureAnswer
from search_api.memories.answers import MemoryAnswer
from search_api.models import BacklinksAnswer, ContentAnswer, DocumentAnswer, LinksAnswer
from search_api.problems import ProblemError, invalid_field
from search_api.routes.memories import IdempotencyHeader, WaitDep
from search_api.routes.shared import ActorDep, PrincipalDep, ServicesDep, bearer, problems

router = APIRouter(prefix="/v1/documents/{doc_id}", tags=["documents"], dependencies=[Depends(bearer)])

DocId = Annotated[str, Path(description="Id of a document, as a hit or link gives it.")]
Cursor = Annotated[str | None, Query(max_length=16_384, description="`next_cursor` of the page before.")]
PageSize = Annotated[int, Query(ge=1, le=500, description="Links of a page.")]
#: Offsets beyond are beyond any file; OpenSearch and JSON readers keep integers of this size exact.
Start = Annotated[int, Query(ge=0, le=2**53, description="Offset of the first code point.")]
MaxChars = Annotated[
    int | None, Query(ge=1, description="Code points of the page; at most the setting's limit.")
]


@router.get("", summary="A document's row", responses=problems(401, 404, 422, 503))
async def get_document(doc_id: DocId, services: ServicesDep, principal: PrincipalDep) -> DocumentAnswer:
    """What the index knows of a document; its text is under `/content`."""
    return await services.documents.get(principal, doc_id)


@router.delete(
    "",
    status_code=202,
    summary="Forget a document",
    responses=problems(401, 403, 404, 409, 422, 429, 503)
    | {200: {"description": "It is erased, with a receipt.", "model": ErasureAnswer}},
)
async def forget(
    doc_id: DocId,
    services: ServicesDep,
    actor: ActorDep,
    response: Response,
    *,
    erase: Annotated[bool, Query(description="For good, with a receipt.")] = False,
    idempotency_key: IdempotencyHeader = None,
    wait: WaitDep,
) -> MemoryAnswer | ErasureAnswer:
    """Its file is set aside under `.hopline/forgotten/` of its vault, and its rows go as if it were deleted.

    A person can take it back by moving the file. With `erase` nothing of it stays: 200 with a receipt, or 202 while
    the agents aren't through with it yet (`/v1/erasures/{erasure_id}`).
    """
    if erase:
        answer = await services.erasures.erase_document(actor, doc_id)
        response.status_code = 200 if answer.receipt else 202
        return answer
    return await services.memories.end(actor.principal, doc_id, idempotency_key, wait)


@router.get(
    "/content",
    summary="A document's text",
    responses=problems(401, 404, 409, 422, 503)
    | {304: {"description": "The text is the one of `If-None-Match`."}},
)
async def get_content(
    doc_id: DocId,
    response: Response,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    start: Start = 0,
    max_chars: MaxChars = None,
    if_none_match: Annotated[str | None, Header(description="The `ETag` that the caller has.")] = None,
) -> ContentAnswer:
    """Exactly the file's text, in pages counted in code points; `next` is the `start` of the following page.

    The `ETag` is the content hash: pages with the same one belong together. A file that is no longer what was
    indexed, changed or gone, is 409 until the index has followed; then its new text or 404.
    """
    limit = services.settings.content_page_chars
    size = limit if max_chars is None else max_chars
    if size > limit:
        raise ProblemError(invalid_field("query.max_chars", f"larger than {limit}"))
    given = _tags(if_none_match or "")
    answer = await services.documents.content(
        principal,
        doc_id,
        start=start,
        max_chars=size,
        has=lambda content_hash: bool(given & {_tag(content_hash), "*"}),
    )
    response.headers["etag"] = _tag(answer.content_hash)
    if isinstance(answer, Unchanged):
        # A response of its own would lose the declared answer type; the status alone says it.
        response.status_code = 304
        return response  # type: ignore[return-value]
    return answer


@router.get("/links", summary="Where a document points", responses=problems(401, 404, 422, 503))
async def get_links(
    doc_id: DocId,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    page_size: PageSize = 100,
    cursor: Cursor = None,
) -> LinksAnswer:
    """Outgoing links with their places. `to` is null where no visible document has the name yet."""
    return await services.documents.links(principal, doc_id, size=page_size, cursor=cursor)


@router.get("/backlinks", summary="What points at a document", responses=problems(401, 404, 422, 503))
async def get_backlinks(
    doc_id: DocId,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    page_size: PageSize = 100,
    cursor: Cursor = None,
) -> BacklinksAnswer:
    """Links of other documents (and its own) that lead here, with the text around them."""
    return await services.documents.backlinks(principal, doc_id, size=page_size, cursor=cursor)


def _tag(content_hash: str) -> str:
    return f'"{content_hash}"'


def _tags(header: str) -> set[str]:
    """Weak ones compare like strong ones here (RFC 9110, 13.1.2); a hash holds no comma."""
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}
