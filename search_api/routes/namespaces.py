"""What is looked for in the documents of a namespace."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from search_api.entities.models import LabelsAnswer, LabelsBody
from search_api.routes.shared import PrincipalDep, ServicesDep, bearer, problems, require_json

router = APIRouter(prefix="/v1/namespaces", tags=["namespaces"], dependencies=[Depends(bearer)])

Owner = Annotated[str, Path(description="`shared`, `team:<team>` or `agent:<agent>`.")]


@router.get("/{namespace}/labels", summary="Entity labels", responses=problems(401, 404, 422, 503))
async def get_labels(namespace: Owner, services: ServicesDep, principal: PrincipalDep) -> LabelsAnswer:
    """Labels with their thresholds, patterns, and how many documents are extracted with just these."""
    return await services.labelling.get(principal, namespace)


@router.put(
    "/{namespace}/labels",
    summary="Change the entity labels",
    responses=problems(401, 403, 404, 409, 413, 415, 422, 503),
    dependencies=[Depends(require_json)],
)
async def put_labels(
    namespace: Owner, body: LabelsBody, services: ServicesDep, principal: PrincipalDep
) -> LabelsAnswer:
    """The namespace's documents are extracted again in the background; `progress` says how far it is."""
    return await services.labelling.put(principal, namespace, body)
