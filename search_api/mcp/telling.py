"""What a model is told when a tool fails: what is wrong, and what to do next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from pydantic import ValidationError

_FAULTS_SHOWN: Final = 8


class _Fault(msgspec.Struct, frozen=True):
    field: str
    message: str


class _Problem(msgspec.Struct, frozen=True):
    """RFC 9457, as far as it is told."""

    detail: str
    request_id: str = "unknown"
    type: str = ""
    errors: list[_Fault] = []


_NEXT: Final[Mapping[int, str]] = {
    401: "Nothing you can mend: ask the person to put a valid key into this server's configuration.",
    403: "Don't try it again: the key has not the right. Tell the person which role it takes.",
    404: "Ids come from search, related, backlinks and entity; look for it again, it may have moved or been deleted.",
    408: "Call again.",
    409: "Read it again, then call once more.",
    413: "Send less: split the text into several memories.",
    422: "Correct this and call again.",
    429: "Nothing was done.",
    503: "Nothing is wrong with the arguments.",
}


def told_problem(status: int, body: bytes, retry_after: str | None) -> str:
    """Of an answer that is no success."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.MsgspecError:
        return f"The service answered with status {status} and no explanation. Tell the person."
    faults = "; ".join(f"{_argument(f.field)}: {f.message}" for f in problem.errors[:_FAULTS_SHOWN])
    said = faults or problem.detail
    wait = f"Wait {retry_after} s, then call again." if retry_after and status in (429, 503, 409) else ""
    parts = [said.rstrip(".") + ".", _NEXT.get(status, "Tell the person."), wait]
    return f"{' '.join(part for part in parts if part)} (request {problem.request_id})"


def told_unreachable(url: str) -> str:
    return (
        f"Hopline's query service can't be reached at {url}. Ask the person whether it is up: `hopline status`, "
        "`hopline up`."
    )


def told_fault(tool: str) -> str:
    return f"{tool} met a fault of the server, not of the arguments. Don't try it again; tell the person."


def told_arguments(tool: str, error: ValidationError) -> str:
    """Names and rules; what was given is not repeated."""
    faults = "; ".join(
        f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
        for fault in error.errors(include_input=False, include_url=False)[:_FAULTS_SHOWN]
    )
    return _encodable(f"{tool} was not called: {faults}. Correct this and call again.")


def told_unknown_arguments(tool: str, unknown: Iterable[str], known: Iterable[str]) -> str:
    names = ", ".join(sorted(name[:60] for name in unknown)[:_FAULTS_SHOWN])
    return _encodable(f"{tool} was not called: it has no argument {names}. It takes: {', '.join(known)}.")


def _encodable(text: str) -> str:
    """A name that was given may hold half of a surrogate pair, which no answer can."""
    return text.encode("utf-8", "replace").decode()


def _argument(field: str) -> str:
    """As the tools call it."""
    for prefix in ("body.", "query.", "path.", "header.", "filters."):
        field = field.removeprefix(prefix)
    return _RENAMED.get(field, field)


_RENAMED: Final[Mapping[str, str]] = {"page_size": "limit", "content": "content", "q": "name"}
