"""What routes have in common: their services, the principal, and the documented problems."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from indexers.domain.identity import Principal
from search_api.edge import LOG_FIELDS
from search_api.identity.audit import Actor
from search_api.identity.boundary import actor_of
from search_api.problems import MEDIA_TYPE, Problem, ProblemError
from search_api.services import Services

#: Stands in OpenAPI; the check itself is `edge.Authenticate`, which no route can forget.
bearer = HTTPBearer(auto_error=False, description="An API key.")

_MEANINGS = {
    401: "No key, or not one that this service knows.",
    403: "The key has none of the roles that this takes.",
    404: "No such thing, or not one that this key may see: the two are never told apart.",
    405: "The path has another method.",
    408: "The body did not arrive in time.",
    409: "What it is based on has changed: the file is not what was indexed (or is no text), or the labels.",
    413: "The body is larger than `api.body_max_bytes`.",
    415: "The body is not `application/json`.",
    422: "The request was refused; `errors` names each field.",
    429: "A limit of the tenant is reached; see `Retry-After`.",
    500: "A fault of the service; its log has it under the request id.",
    503: "OpenSearch, the broker or the vault is away, or the answer took too long; see `Retry-After`.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """With 401 comes what stands before every route that takes a key."""
    schema = {"$ref": "#/components/schemas/ProblemAnswer"}
    before = (403, 408, 413, 429, 503) if 401 in statuses else ()
    return {
        status: {"description": _MEANINGS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*statuses, *before, 405, 500})
    }


async def services_of(request: Request) -> Services:
    return cast("Services", request.app.state.services)


async def principal_of(request: Request) -> Principal:
    return cast("Principal", request.state.principal)


def note(request: Request, **fields: Any) -> None:
    """Adds fields to the request's log line: numbers and names of a closed set, never text."""
    getattr(request.state, LOG_FIELDS).update(fields)


async def require_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        detail = "Send the body as `application/json`."
        raise ProblemError(
            Problem(kind="unsupported-media-type", detail=detail, headers={"accept-post": "application/json"})
        )


async def actor_of_request(request: Request) -> Actor:
    return actor_of(request.scope)


ServicesDep = Annotated[Services, Depends(services_of)]
PrincipalDep = Annotated[Principal, Depends(principal_of)]
ActorDep = Annotated[Actor, Depends(actor_of_request)]
