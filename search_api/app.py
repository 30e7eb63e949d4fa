"""The application: routes, edge and error answers, put together. Nothing here decides anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from indexers.errors import Transient
from indexers.version import VERSION
from search_api.auth import KeyRing
from search_api.direct import DirectSearch
from search_api.edge import Authenticate, RequestEdge
from search_api.identity.authenticator import Authenticator
from search_api.identity.boundary import Boundary, note_foreign_body, record_denied
from search_api.limits import BodyLimit, Deadline, RateLimit
from search_api.models import ProblemAnswer
from search_api.problems import MEDIA_TYPE, FieldError, Problem, ProblemError, invalid, store_away
from search_api.routes import (
    admin,
    context,
    documents,
    entities,
    erasures,
    events,
    graph,
    health,
    memories,
    namespaces,
    search,
)
from search_api.services import Services
from search_api.settings import ApiSettings

if TYPE_CHECKING:
    from search_api.mcp.endpoint import McpEndpoint

log = structlog.get_logger()

_ERRORS_SHOWN: Final = 20
_FIELD_CHARS: Final = 120


def create_app(
    services: Services,
    *,
    keys: KeyRing,
    settings: ApiSettings,
    mcp: McpEndpoint | None = None,
    page: Callable[[ASGIApp], ASGIApp] | None = None,
) -> ASGIApp:
    """The whole service as an ASGI application; the caller owns what `services` hold and closes it.

    `mcp` answers at its path, behind all that REST requests pass, while it is `serving`. `page` gives the web page,
    which needs no key, and hands on what isn't its own.
    """
    api = _routes()
    api.state.services = services
    metrics, seconds = services.metrics, settings.request_timeout_seconds
    app: ASGIApp = DirectSearch(api, services, on_fault=_on_fault)
    if mcp is not None:
        app = mcp.before(app)
    app = Deadline(app, timeout_seconds=seconds, metrics=metrics)
    app = BodyLimit(app, max_bytes=settings.body_max_bytes, timeout_seconds=seconds, metrics=metrics)
    app = RateLimit(app, quotas=services.quotas, metrics=metrics)
    parts = services.identity
    authenticator = Authenticator(
        keys, keys=parts.keys, tokens=parts.tokens, tenants=parts.tenants, quotas=services.quotas
    )
    app = Boundary(app, metrics=metrics)
    app = Authenticate(app, authenticator=authenticator, metrics=metrics)
    if page is not None:
        app = page(app)
    return RequestEdge(
        app,
        metrics=metrics,
        on_denied=lambda scope, route: record_denied(services.audit, scope, route),
        tracing=services.tracing,
    )


def openapi_document() -> dict[str, Any]:
    """OpenAPI 3.1 of all routes; needs no services."""
    return _routes().openapi()


def _routes() -> FastAPI:
    api = FastAPI(
        title="Hopline",
        version=VERSION,
        summary="Search and read the memory of agent fleets.",
        description="Errors are `application/problem+json` (RFC 9457); every answer carries `X-Request-Id`.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={
            ProblemError: _problem,
            Transient: _store_away,
            RequestValidationError: _refused,
            HTTPException: _http_error,
            Exception: _fault,
        },
    )
    routers = (
        search.router,
        context.router,
        documents.router,
        graph.router,
        entities.of_documents,
        memories.router,
        events.router,
        entities.router,
        namespaces.router,
        erasures.router,
        admin.of_askers,
        admin.router,
        health.router,
    )
    for router in routers:
        api.include_router(router)
    described = api.openapi

    def with_problem_schema() -> dict[str, Any]:
        document = described()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas.setdefault("ProblemAnswer", ProblemAnswer.model_json_schema())
        return document

    # FastAPI's documented way to extend its description.
    api.openapi = with_problem_schema  # type: ignore[method-assign]
    return api


def _answer(request: Request, problem: Problem) -> Response:
    services: Services = request.app.state.services
    services.metrics.problems.labels(kind=problem.kind).inc()
    return Response(
        problem.body(request.state.request_id),
        status_code=problem.status,
        headers=dict(problem.headers),
        media_type=MEDIA_TYPE,
    )


async def _on_fault(request: Request, error: Exception) -> Response:
    """The answer to what a route raised, where no framework picks one."""
    if isinstance(error, ProblemError):
        return await _problem(request, error)
    return await (_store_away if isinstance(error, Transient) else _fault)(request, error)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)  # noqa: S101 - registered for this type
    return _answer(request, error.problem)


async def _store_away(request: Request, error: Exception) -> Response:
    assert isinstance(error, Transient)  # noqa: S101 - registered for this type
    log.warning("store.unavailable", reason=error.reason, request_id=request.state.request_id)
    return _answer(request, store_away(error.retry_after))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type
    note_foreign_body(request.scope, error.errors())
    return _answer(request, invalid([_field_error(item) for item in error.errors()[:_ERRORS_SHOWN]]))


async def _http_error(request: Request, error: Exception) -> Response:
    """What the framework itself refuses."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type
    if error.status_code == 404:
        return _answer(request, Problem(kind="no-such-route", detail="No such route; see `/openapi.json`."))
    if error.status_code == 405:
        headers = {name: value for name, value in (error.headers or {}).items() if name.lower() == "allow"}
        detail = "This path takes another method; see `Allow`."
        return _answer(request, Problem(kind="method-not-allowed", detail=detail, headers=headers))
    # Its only other use of this exception: a body that can't be read as JSON at all.
    return _answer(request, invalid([FieldError(field="body", message="can't be read as JSON")]))


async def _fault(request: Request, _error: Exception) -> Response:
    """The edge logs it with its traceback."""
    detail = "The service met a fault of its own; its log has it under this request id."
    return _answer(request, Problem(kind="internal-error", detail=detail))


def _field_error(item: Any) -> FieldError:
    """Names the field and the rule; the value that was given is never repeated."""
    if item["type"] == "json_invalid":
        return FieldError(field="body", message=f"not JSON: {item['ctx']['error']}")
    name = ".".join(str(part) for part in item["loc"])
    name = name.encode("utf-8", "replace").decode()[:_FIELD_CHARS]
    return FieldError(field=name, message=item["msg"].removeprefix("Value error, "))
