"""What stands around a document."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from search_api.documents_graph import DEPTH_MAX
from search_api.graph_answers import GraphAnswer, RelatedAnswer
from search_api.routes.documents import DocId
from search_api.routes.shared import PrincipalDep, ServicesDep, bearer, problems

router = APIRouter(prefix="/v1/documents/{doc_id}", tags=["documents"], dependencies=[Depends(bearer)])


@router.get("/related", summary="What is related to a document", responses=problems(401, 404, 422, 503))
async def get_related(
    doc_id: DocId,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    page_size: Annotated[int, Query(ge=1, le=50, description="Most documents.")] = 20,
) -> RelatedAnswer:
    """Documents one step away, each with its reasons.

    Links both ways, neighbouring turns, names that both say, shared tags, category or content terms.
    """
    return await services.graph.related(principal, doc_id, size=page_size)


@router.get("/graph", summary="The graph around a document", responses=problems(401, 404, 422, 503))
async def get_graph(
    doc_id: DocId,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    depth: Annotated[int, Query(ge=1, le=DEPTH_MAX, description="Edges from the document.")] = 1,
) -> GraphAnswer:
    """Documents and entities around it with the edges between them, at most 200 nodes and 600 edges."""
    return await services.graph.graph(principal, doc_id, depth=depth)
