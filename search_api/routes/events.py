"""How far an accepted event is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from search_api.memories.answers import EventAnswer
from search_api.routes.memories import WaitDep
from search_api.routes.shared import PrincipalDep, ServicesDep, bearer, problems

router = APIRouter(prefix="/v1/events", tags=["memories"], dependencies=[Depends(bearer)])


@router.get("/{event_id}", summary="How far an event is", responses=problems(401, 404, 422, 429, 503))
async def get_event(
    event_id: Annotated[str, Path(description="Id of an event, as a write gives it.")],
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    wait: WaitDep,
) -> EventAnswer:
    """Its stages with their times, kept for seven days."""
    events = services.memories.events
    if wait is None:
        return await events.get(principal, event_id)
    return await events.get(principal, event_id, until=wait.until, seconds=wait.seconds)
