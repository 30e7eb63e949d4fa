"""What no key may ask, whatever a route would make of it: another tenant by header or query, memory by an operator."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from indexers.domain.identity import INSTALLATION, Principal
from search_api.edge import DENIED, send_problem
from search_api.identity.audit import Actor, Audit
from search_api.metrics import ApiMetrics
from search_api.problems import Problem

TENANT_HEADER: Final = b"x-hopline-tenant"
_ADMIN: Final = "/v1/admin/"
#: All that an operator's key opens.
_OF_OPERATORS: Final = ("/v1/admin/", "/v1/whoami", "/openapi.json")
_TENANT_NAMES: Final = frozenset({"tenant", "tenant_id"})

FOREIGN: Final = Problem(
    kind="forbidden",
    detail="A key opens its own tenant only, which needs no naming: leave out what names another.",
)
OPERATOR: Final = Problem(
    kind="forbidden", detail="An operator's key manages tenants and keys; it has no memory to read or write."
)


class Boundary:
    """Behind `Authenticate`."""

    def __init__(self, app: ASGIApp, *, metrics: ApiMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope["state"].get("principal") if scope["type"] == "http" else None
        problem = None if principal is None else _refusal(scope, principal)
        if problem is None:
            await self._app(scope, receive, send)
            return
        if problem is FOREIGN:
            scope["state"][DENIED] = "request.cross_tenant"
        self._metrics.problems.labels(kind=problem.kind).inc()
        await send_problem(send, problem, scope["state"]["request_id"])


def record_denied(audit: Audit, scope: Scope, route: str) -> None:
    """After an answer 403, or a refusal that left its name under `DENIED`."""
    state = scope["state"]
    if state.get("principal") is not None:
        audit.record(
            actor_of(scope),
            state.get(DENIED, "request.denied"),
            target=f"{scope['method']} {route}"[:200],
            outcome="denied",
        )


def actor_of(scope: Scope) -> Actor:
    state = scope["state"]
    return Actor(
        principal=state["principal"], key_id=state["identity"].key_id, request_id=state["request_id"]
    )


def note_foreign_body(scope: Scope, errors: Sequence[Any]) -> None:
    """`errors`: pydantic's, of a body that was refused. Unknown fields are refused whatever they hold."""
    principal = scope["state"].get("principal")
    named = any(
        error["type"] == "extra_forbidden"
        and error["loc"][-1] in _TENANT_NAMES
        and error["input"] != principal.tenant_id
        for error in errors
        if principal is not None
    )
    if named:
        scope["state"][DENIED] = "request.cross_tenant"


def _refusal(scope: Scope, principal: Principal) -> Problem | None:
    if any(name != principal.tenant_id for name in _named_tenants(scope)):
        return FOREIGN
    if principal.tenant_id == INSTALLATION and not scope["path"].startswith(_OF_OPERATORS):
        return OPERATOR
    return None


def _named_tenants(scope: Scope) -> Iterator[str]:
    """By header (each one, should there be several) and, but for the admin routes, in the query string."""
    for name, value in scope["headers"]:
        if name == TENANT_HEADER:
            yield unicodedata.normalize("NFC", value.decode("utf-8", "replace"))
    query: bytes = scope.get("query_string", b"")
    if b"tenant" in query and not scope["path"].startswith(_ADMIN):
        for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            if name in _TENANT_NAMES:
                yield unicodedata.normalize("NFC", text)
