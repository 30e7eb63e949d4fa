"""The requests of the client as values, and answers as values or errors. Pure; both clients share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

import msgspec

from hopline.answers import Context, Problem, SearchPage
from hopline.document_answers import BacklinkPage, ContentPage, Document, LinkPage
from indexers.errors import HoplineError, Transient, WrongUsage

T = TypeVar("T")
Part = Literal["keyword", "vector", "names", "graph"]


class ApiError(HoplineError):
    """The service refused; `problem` is its whole answer."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        faults = "".join(f"\n  {fault.field}: {fault.message}" for fault in self.problem.errors)
        return f"{self.problem.detail}{faults} (request {self.problem.request_id})"


class NotAuthorised(ApiError):  # noqa: N818 - named as what happened
    """No key, or not one that the service knows."""

    def __str__(self) -> str:
        return (
            f"the service at this address doesn't know the key. {super().__str__()}\n"
            "  Check HOPLINE_API_KEY; `hopline keys show` prints the local one"
        )


class NotFound(ApiError):  # noqa: N818 - see above
    """No such document, or not one that the key may see."""


class NotAllowed(ApiError):  # noqa: N818 - see above
    """The key has none of the roles that this takes."""


class OutOfStep(ApiError):  # noqa: N818 - see above
    """What the request is based on has changed (a file, labels): read it again."""


class InvalidRequest(ApiError, WrongUsage):  # noqa: N818 - see above
    """The request is wrong; `problem.errors` names the fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    answer: type[T]
    params: Mapping[str, str | int] | None = None
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None


def search(
    query: str,
    *,
    filters: Mapping[str, Any] | None = None,
    parts: Sequence[Part] | None = None,
    page_size: int | None = None,
    cursor: str | None = None,
    explain: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Call[SearchPage]:
    """`options`: weights, depths and switches that are otherwise for this search."""
    body: dict[str, Any] = {
        "query": query,
        "filters": filters or None,
        "parts": None if parts is None else list(parts),
        "page_size": page_size,
        "cursor": cursor,
        "explain": explain or None,
        "options": options or None,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return Call(method="POST", path="/v1/search", answer=SearchPage, json=given)


def context(
    query: str,
    *,
    budget_tokens: int | None = None,
    documents_max: int | None = None,
    l1_documents_max: int | None = None,
    filters: Mapping[str, Any] | None = None,
    parts: Sequence[Part] | None = None,
) -> Call[Context]:
    body: dict[str, Any] = {
        "query": query,
        "filters": filters or None,
        "parts": None if parts is None else list(parts),
        "budget_tokens": budget_tokens,
        "documents_max": documents_max,
        "l1_documents_max": l1_documents_max,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return Call(method="POST", path="/v1/context", answer=Context, json=given)


def document(doc_id: str) -> Call[Document]:
    return Call(method="GET", path=_path(doc_id), answer=Document)


def content(doc_id: str, *, start: int = 0, max_chars: int | None = None) -> Call[ContentPage]:
    return Call(
        method="GET",
        path=_path(doc_id, "/content"),
        answer=ContentPage,
        params=given(start=start, max_chars=max_chars),
    )


def links(doc_id: str, *, page_size: int | None = None, cursor: str | None = None) -> Call[LinkPage]:
    params = given(page_size=page_size, cursor=cursor)
    return Call(method="GET", path=_path(doc_id, "/links"), answer=LinkPage, params=params)


def backlinks(doc_id: str, *, page_size: int | None = None, cursor: str | None = None) -> Call[BacklinkPage]:
    params = given(page_size=page_size, cursor=cursor)
    return Call(method="GET", path=_path(doc_id, "/backlinks"), answer=BacklinkPage, params=params)


def read_answer(call: Call[T], status: int, body: bytes, retry_after: str | None) -> T:
    """The typed answer; ApiError or Transient (503, 429) for a problem."""
    if status in (200, 201, 202):
        try:
            return msgspec.json.decode(body, type=call.answer)
        except msgspec.MsgspecError as exc:
            msg = f"not the answer expected ({exc}): are client and service of one version?"
            raise HoplineError(msg) from exc
    problem = _problem(status, body)
    if status in (429, 502, 503, 504):
        wait = retry_after or ""
        raise Transient(problem.detail, float(wait) if wait.isdecimal() else None)
    raise _ERRORS.get(status, ApiError)(problem)


_ERRORS: Mapping[int, type[ApiError]] = {
    401: NotAuthorised,
    403: NotAllowed,
    404: NotFound,
    409: OutOfStep,
    422: InvalidRequest,
}


def _problem(status: int, body: bytes) -> Problem:
    """Something between client and service may answer in its own words."""
    try:
        return msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        detail = f"HTTP status {status}, and no problem document: is this address Hopline's?"
        return Problem(type="about:blank", title="", status=status, detail=detail, request_id="unknown")


def _path(doc_id: str, suffix: str = "") -> str:
    return f"/v1/documents/{quote(doc_id, safe='')}{suffix}"


def given(**params: str | int | None) -> dict[str, str | int]:
    return {name: value for name, value in params.items() if value is not None}
