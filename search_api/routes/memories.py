"""Memories: written, updated, followed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query
from pydantic import AfterValidator

from search_api.memories.answers import MemoriesAnswer, MemoryAnswer, Milestone
from search_api.memories.bodies import KEY_MAX_CHARS, MemoriesBody, MemoryBody, MemoryUpdate
from search_api.memories.writing import Wait
from search_api.problems import ProblemError, invalid_field
from search_api.requests import clean_text
from search_api.routes.shared import PrincipalDep, ServicesDep, bearer, problems, require_json

router = APIRouter(
    prefix="/v1/memories", tags=["memories"], dependencies=[Depends(bearer), Depends(require_json)]
)

IdempotencyHeader = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=KEY_MAX_CHARS,
        description="A repeated request with the same key is one write, for seven days.",
    ),
    AfterValidator(lambda key: None if key is None else clean_text(key)),
]
WaitFor = Annotated[
    Milestone | None,
    Query(description="Answer once the event is so far, or the time is over; the state says which."),
]
TimeoutSeconds = Annotated[float, Query(ge=0.1, le=8, description="How long to wait, with `wait_for`.")]


async def wait_of(wait_for: WaitFor = None, timeout_seconds: TimeoutSeconds = 5.0) -> Wait | None:
    return None if wait_for is None else Wait(until=wait_for, seconds=timeout_seconds)


WaitDep = Annotated[Wait | None, Depends(wait_of)]
DocId = Annotated[str, Path(description="Id of a document, as a write or a hit gives it.")]
_PROBLEMS = problems(401, 403, 404, 409, 413, 415, 422, 429, 503)


@router.post("", status_code=202, summary="Write a memory", responses=_PROBLEMS)
async def write(
    body: MemoryBody,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    idempotency_key: IdempotencyHeader = None,
    wait: WaitDep,
) -> MemoryAnswer:
    """Accepted once the broker has confirmed it: it becomes a file of the vault, then it is found.

    A person may edit that file; the edit wins over what was accepted before it.
    """
    key = _one_key(body, idempotency_key)
    [answer] = await services.memories.write(principal, {"body": body}, [key], wait)
    return answer


@router.post("/batch", status_code=202, summary="Write many memories", responses=_PROBLEMS)
async def write_batch(
    body: MemoriesBody,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    idempotency_key: IdempotencyHeader = None,
    wait: WaitDep,
) -> MemoriesAnswer:
    """All are accepted or none. The header's key stands for each memory with its place in the list."""
    bodies = {f"body.memories.{n}": memory for n, memory in enumerate(body.memories)}
    keys = [
        memory.idempotency_key or (None if idempotency_key is None else f"{idempotency_key}/{n}")
        for n, memory in enumerate(body.memories)
    ]
    return MemoriesAnswer(memories=await services.memories.write(principal, bodies, keys, wait))


@router.put("/{doc_id}", status_code=202, summary="Update a memory", responses=_PROBLEMS)
async def update(
    doc_id: DocId,
    body: MemoryUpdate,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    idempotency_key: IdempotencyHeader = None,
    wait: WaitDep,
) -> MemoryAnswer:
    """Its content and what else is named; id and path stay. A field that is null goes.

    An edit that is indexed is replaced. One that isn't yet is left as it is, and the event is `overtaken`: read the
    document and decide anew.
    """
    return await services.memories.update(principal, doc_id, body, _one_key(body, idempotency_key), wait)


def _one_key(body: MemoryBody | MemoryUpdate, header: str | None) -> str | None:
    if header is not None and body.idempotency_key not in (None, header):
        raise ProblemError(invalid_field("body.idempotency_key", "not the key of the header"))
    return body.idempotency_key or header
