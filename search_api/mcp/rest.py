"""The REST API as the tools ask it: whoever calls a tool is who asks, and what REST refuses the tool refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote

import httpx2
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from search_api.mcp.telling import told_problem, told_unreachable

#: What a call to a tool adds to its requests: the caller's key and request id.
HeadersOf = Callable[[Context], Mapping[str, str]]


class RefusedError(ToolError):
    """The service refused; `status` is its answer's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. `None` in `params` and `json` is left out."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    params: Mapping[str, str | int | float | bool | None] | None = None
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None


class Rest:
    """`http` knows the address, and the key where there is one for all calls."""

    def __init__(self, http: httpx2.AsyncClient, headers_of: HeadersOf) -> None:
        self._http = http
        self._headers_of = headers_of

    async def send(self, context: Context, ask: Ask) -> dict[str, Any]:
        """The answer. Raises RefusedError with what the model should know."""
        try:
            response = await self._http.request(
                ask.method,
                ask.path,
                params=_given(ask.params),
                json=_given(ask.json),
                headers={**self._headers_of(context), **(ask.headers or {})},
            )
        except httpx2.RequestError as exc:
            raise RefusedError(503, told_unreachable(str(self._http.base_url))) from exc
        except UnicodeEncodeError as exc:
            msg = "An argument holds half of a surrogate pair: send whole characters."
            raise RefusedError(422, msg) from exc
        if response.status_code not in (200, 202):
            text = told_problem(response.status_code, response.content, response.headers.get("retry-after"))
            raise RefusedError(response.status_code, text)
        answer: dict[str, Any] = response.json()
        return answer


def document_path(doc_id: str, suffix: str = "") -> str:
    """Of an id, or of the address of its resource."""
    return f"/v1/documents/{segment(doc_id)}{suffix}"


def segment(given_id: str) -> str:
    """As one segment of a path. What can't be one is no id either: it is asked for as `-`, which nothing has."""
    found = given_id.removeprefix(DOCUMENT_URI)
    return "-" if "/" in found or found in ("", ".", "..") else quote(found, safe="", errors="replace")


DOCUMENT_URI: Final = "hopline://documents/"


def _given(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if values is None else {name: value for name, value in values.items() if value is not None}
