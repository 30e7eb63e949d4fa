"""Errors as `application/problem+json` (RFC 9457).

Texts here name fields and limits, never what a memory or query says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

import msgspec

MEDIA_TYPE = "application/problem+json"
REQUEST_ID_HEADER = "x-request-id"

Kind = Literal[
    "unauthorized",
    "forbidden",
    "tenant-suspended",
    "not-found",
    "no-such-route",
    "method-not-allowed",
    "request-timeout",
    "content-out-of-step",
    "content-not-text",
    "labels-conflict",
    "admin-conflict",
    "idempotency-conflict",
    "body-too-large",
    "unsupported-media-type",
    "rate-limited",
    "quota-exceeded",
    "invalid-request",
    "internal-error",
    "store-unavailable",
    "identity-unavailable",
    "vault-unavailable",
    "broker-unavailable",
    "too-slow",
]

_STATUS: Mapping[Kind, HTTPStatus] = {
    "unauthorized": HTTPStatus.UNAUTHORIZED,
    "forbidden": HTTPStatus.FORBIDDEN,
    "tenant-suspended": HTTPStatus.FORBIDDEN,
    "not-found": HTTPStatus.NOT_FOUND,
    "no-such-route": HTTPStatus.NOT_FOUND,
    "method-not-allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "request-timeout": HTTPStatus.REQUEST_TIMEOUT,
    "content-out-of-step": HTTPStatus.CONFLICT,
    "content-not-text": HTTPStatus.CONFLICT,
    "labels-conflict": HTTPStatus.CONFLICT,
    "admin-conflict": HTTPStatus.CONFLICT,
    "idempotency-conflict": HTTPStatus.CONFLICT,
    "body-too-large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "unsupported-media-type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "rate-limited": HTTPStatus.TOO_MANY_REQUESTS,
    "quota-exceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "invalid-request": HTTPStatus.UNPROCESSABLE_ENTITY,
    "internal-error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "store-unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "identity-unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "vault-unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "broker-unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "too-slow": HTTPStatus.SERVICE_UNAVAILABLE,
}


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with the request; `field` is a dotted path such as `body.filters.tags`."""

    field: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    kind: Kind
    detail: str
    errors: tuple[FieldError, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return int(_STATUS[self.kind])

    def body(self, request_id: str) -> bytes:
        """The same problem gives the same bytes but for the request id."""
        value: dict[str, Any] = {
            "type": f"urn:hopline:problem:{self.kind}",
            "title": self.kind.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
        }
        if self.errors:
            value["errors"] = self.errors
        return msgspec.json.encode(value)


class ProblemError(Exception):
    """Raised by the routes: the request ends with this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def no_such(what: str) -> ProblemError:
    """One text for what does not exist and for what the asker may not see."""
    detail = f"No such {what}, or not one that this key may see."
    return ProblemError(Problem(kind="not-found", detail=detail))


def invalid(errors: Sequence[FieldError]) -> Problem:
    fields = ", ".join(dict.fromkeys(error.field for error in errors))
    return Problem(kind="invalid-request", detail=f"The request was refused: {fields}.", errors=tuple(errors))


def invalid_field(name: str, message: str) -> Problem:
    return invalid([FieldError(field=name, message=message)])


def unavailable(kind: Kind, detail: str, retry_after: float | None = None) -> Problem:
    seconds = max(1, math.ceil(retry_after or 1.0))
    return Problem(kind=kind, detail=detail, headers={"retry-after": str(seconds)})


def store_away(retry_after: float | None = None) -> Problem:
    detail = "The search store is away or overloaded. Nothing is wrong with the request."
    return unavailable("store-unavailable", detail, retry_after)


def forbidden(detail: str) -> ProblemError:
    return ProblemError(Problem(kind="forbidden", detail=detail))
