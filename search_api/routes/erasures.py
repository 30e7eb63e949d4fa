"""Erasing documents for good."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from search_api.erasure.models import CheckAnswer, ErasureAnswer, ErasureBody, ReceiptBody
from search_api.routes.shared import ActorDep, PrincipalDep, ServicesDep, bearer, problems, require_json

router = APIRouter(prefix="/v1/erasures", tags=["erasures"], dependencies=[Depends(bearer)])

ErasureId = Annotated[str, Path(description="Id of an erasure, as the call that began it gave it.")]


@router.post(
    "",
    summary="Erase documents for good",
    dependencies=[Depends(require_json)],
    responses=problems(401, 403, 408, 413, 415, 422, 429, 503)
    | {202: {"description": "Accepted; the agents aren't through with it yet.", "model": ErasureAnswer}},
)
async def erase(
    body: ErasureBody, response: Response, services: ServicesDep, actor: ActorDep
) -> ErasureAnswer:
    """File, rows, chunks, edges, mentions, entities that nothing else mentions, and all that leads to them.

    An agent erases what it wrote, an admin whatever its tenant has. At most 1,000 documents a call.
    """
    return _with_status(await services.erasures.erase(actor, body), response)


@router.post(
    "/check",
    summary="Whether a receipt is genuine",
    dependencies=[Depends(require_json)],
    responses=problems(401, 408, 413, 415, 422, 503),
)
async def check_receipt(body: ReceiptBody, services: ServicesDep, principal: PrincipalDep) -> CheckAnswer:
    """Whether this installation signed it for the caller's tenant, and nothing in it was changed since."""
    return services.erasures.check(principal, body)


@router.get("/{erasure_id}", summary="How far an erasure is", responses=problems(401, 404, 422, 503))
async def get_erasure(erasure_id: ErasureId, services: ServicesDep, principal: PrincipalDep) -> ErasureAnswer:
    """The receipt, once a search of every store finds nothing."""
    return await services.erasures.answer(principal, erasure_id)


def _with_status(answer: ErasureAnswer, response: Response) -> ErasureAnswer:
    response.status_code = 200 if answer.state == "complete" else 202
    return answer
