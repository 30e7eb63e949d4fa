"""POST /v1/context."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from search_api.context.models import ContextAnswer
from search_api.context.requests import ContextRequest
from search_api.routes.shared import PrincipalDep, ServicesDep, bearer, note, problems, require_json

router = APIRouter(prefix="/v1", tags=["search"], dependencies=[Depends(bearer)])


@router.post(
    "/context",
    summary="Assemble a context",
    responses=problems(401, 408, 413, 415, 422, 503),
    dependencies=[Depends(require_json)],
)
async def context(
    body: ContextRequest, request: Request, services: ServicesDep, principal: PrincipalDep
) -> ContextAnswer:
    """What a model should read about a question, within a budget of tokens: the best documents of a search.

    Every document with one line (L0), the best few with the paragraphs around what was found (L1), checked
    against the indexed text; whole texts (L2) are read by id. No paragraph is shown twice.
    """
    note(request, query_chars=len(body.query), parts="+".join(sorted(set(body.parts))))
    answer = await services.context.context(principal, body)
    note(request, documents=len(answer.documents), tokens=answer.tokens, candidates=answer.candidates)
    return answer
