"""POST /v1/search."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from search_api.models import SearchAnswer
from search_api.requests import SearchRequest
from search_api.routes.shared import PrincipalDep, ServicesDep, bearer, note, problems, require_json

router = APIRouter(prefix="/v1", tags=["search"], dependencies=[Depends(bearer)])


@router.post(
    "/search",
    summary="Search documents",
    responses=problems(401, 408, 413, 415, 422, 503),
    dependencies=[Depends(require_json)],
)
async def search(
    body: SearchRequest, request: Request, services: ServicesDep, principal: PrincipalDep
) -> SearchAnswer:
    """Words and meaning over the documents that the key may see, best first.

    The order doesn't depend on the page size; pages follow each other by `next_cursor` with no gap or repeat
    while the index stands still. At most `candidates` documents are ranked.
    """
    note(request, query_chars=len(body.query), parts="+".join(sorted(set(body.parts))))
    answer = await services.search.search(principal, body)
    note(request, hits=len(answer.hits), candidates=answer.candidates)
    return answer
