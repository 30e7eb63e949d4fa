"""The client of OpenSearch and the one function through which every request goes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

import aiohttp
import msgspec
from opensearchpy import AIOHttpConnection, AsyncOpenSearch, JSONSerializer
from opensearchpy.exceptions import ConnectionError as Unreachable
from opensearchpy.exceptions import ConnectionTimeout, TransportError

from indexers.errors import Away, ConfigurationError, RefusedRequest, Transient
from indexers.settings import OpenSearchSettings

T = TypeVar("T")
Method = Literal["GET", "POST", "PUT", "DELETE"]
TRANSIENT_STATUS = frozenset({429, 500, 502, 503, 504})
#: Set by the connection for the error that it is about to raise, in the same task.
_retry_after: ContextVar[float | None] = ContextVar("retry_after", default=None)


class _Serializer(JSONSerializer):
    """Leaves answers as text: they are decoded where their type is known, by msgspec."""

    def loads(self, s: str) -> str:
        return s


class _Connection(AIOHttpConnection):
    """Keeps Retry-After, which the library drops with the other headers of a failed request."""

    async def _create_aiohttp_session(self) -> None:
        await super()._create_aiohttp_session()
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(_note_retry_after)
        trace.freeze()
        self.session.trace_configs.append(trace)


async def _note_retry_after(
    _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestEndParams
) -> None:
    value = params.response.headers.get("retry-after", "")
    _retry_after.set(float(value) if value.isdecimal() else None)


def connect(settings: OpenSearchSettings, url: str) -> AsyncOpenSearch:
    """A client that tries once: retries are `RetryPolicy`'s. One per event loop; the gate closes it."""
    # At DEBUG the library logs request bodies, which hold the text of memories.
    logging.getLogger("opensearch").setLevel(logging.ERROR)
    password = settings.password
    auth = (settings.username, password.get_secret_value()) if settings.username and password else None
    options: dict[str, Any] = {} if settings.ca_file is None else {"ca_certs": str(settings.ca_file)}
    return AsyncOpenSearch(
        hosts=[url],
        http_auth=auth,
        timeout=settings.timeout_seconds,
        max_retries=0,
        # The async client's name of the pool size; the documented `pool_maxsize` is the sync one's.
        maxsize=settings.pool_size,
        connection_class=_Connection,
        serializer=_Serializer(),
        **options,
    )


async def request(
    client: AsyncOpenSearch,
    method: Method,
    path: str,
    *,
    params: Mapping[str, str] | None = None,
    body: Any = None,
    timeout: float | None = None,  # noqa: ASYNC109 - the client's socket timeout, which must cover every request
) -> Any:
    """The decoded answer. Raises Transient, ConfigurationError or RefusedRequest, nothing of the library's.

    `timeout` is the client's: the engine's own parameter of that name can't be sent through the library.
    """
    text = await request_text(client, method, path, params=params, body=body, timeout=timeout)
    return decoded(msgspec.json.decode, text)


async def request_text(
    client: AsyncOpenSearch,
    method: Method,
    path: str,
    *,
    params: Mapping[str, str] | None = None,
    body: Any = None,
    timeout: float | None = None,  # noqa: ASYNC109 - see `request`
) -> str:
    """As `request`, the answer not yet decoded."""
    _retry_after.set(None)
    try:
        text: str = await client.transport.perform_request(
            method, path, params=dict(params or {}), body=body, timeout=timeout
        )
    except TransportError as fault:
        raise _translated(fault) from fault
    return text


def decoded(decode: Callable[[str], T], text: str) -> T:
    """Transient for what is no JSON: a part of an answer, or one of something before the engine."""
    try:
        return decode(text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as fault:
        msg = "OpenSearch answered with something that is no JSON"
        raise Transient(msg) from fault


def _translated(fault: TransportError) -> Exception:
    if isinstance(fault, ConnectionTimeout):
        return Away("OpenSearch", "OpenSearch did not answer in time")
    if isinstance(fault, Unreachable):
        return Away("OpenSearch", f"OpenSearch can't be reached: {fault.error}")
    status = int(fault.status_code)
    error_type, reason = _cause(fault)
    if is_transient(status, error_type):
        return Transient(f"OpenSearch answered {status}: {reason}", _retry_after.get())
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return ConfigurationError(
            f"OpenSearch answered {status}: check HOPLINE_OPENSEARCH__USERNAME, HOPLINE_OPENSEARCH__PASSWORD"
            " and that user's rights"
        )
    return RefusedRequest(status, error_type, reason)


def is_transient(status: int, error_type: str) -> bool:
    """A missing index or a write block is the cluster's state, never a row's fault: wait for it to end."""
    return status in TRANSIENT_STATUS or error_type in (
        "index_not_found_exception",
        "cluster_block_exception",
    )


def _cause(fault: TransportError) -> tuple[str, str]:
    match fault.info:
        case {"error": {"root_cause": [{"type": str(kind), "reason": str(reason)}, *_]}}:
            return kind, reason
        case {"error": {"type": str(kind), "reason": str(reason)}}:
            return kind, reason
        case _:
            return str(fault.error), str(fault.error)[:500]
