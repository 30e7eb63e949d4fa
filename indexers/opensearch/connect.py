"""The client of OpenSearch and the one function through which every request goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Literal, TypeVar
from urllib.parse import urlencode

import msgspec
from opensearchpy import AIOHttpConnection, AsyncOpenSearch, JSONSerializer
from opensearchpy.exceptions import ConnectionError as Unreachable
from opensearchpy.exceptions import ConnectionTimeout, TransportError

from indexers.errors import Away, ConfigurationError, RefusedRequest, Transient
from indexers.opensearch.http import AnswerGivenUp, HttpClient, HttpHost
from indexers.settings import OpenSearchSettings
from indexers.tls import engine_tls

T = TypeVar("T")
Method = Literal["GET", "POST", "PUT", "DELETE"]
#: The ends of paths whose POST changes nothing.
_READS = frozenset({"_search", "_msearch", "_mget"})
TRANSIENT_STATUS = frozenset({429, 500, 502, 503, 504})
#: Set by the connection for the error that it is about to raise, in the same task.
_retry_after: ContextVar[float | None] = ContextVar("retry_after", default=None)


class _Serializer(JSONSerializer):
    """Leaves answers as they are: they are decoded where their type is known, by msgspec."""

    def loads(self, s: str | bytes) -> Any:
        return s


class _Connection(AIOHttpConnection):
    """The library's settings and errors over a client of our own (`indexers.opensearch.http`).

    Keeps Retry-After, which the library drops with the other headers of a failed request.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.headers["accept-encoding"] = "identity"
        host = HttpHost(name=self.hostname, port=self.port, tls=self._ssl_context)
        self._http = HttpClient(host, limit=settings["maxsize"])

    async def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        target = f"{self.url_prefix}{url}?{urlencode(params)}" if params else f"{self.url_prefix}{url}"
        try:
            async with asyncio.timeout(self.timeout if timeout is None else timeout):
                answer = await self._http.ask(
                    method,
                    target,
                    {**self.headers, **(headers or {})},
                    body or b"",
                    is_read=url.rpartition("/")[2] in _READS,
                )
        except TimeoutError as fault:
            raise ConnectionTimeout("TIMEOUT", str(fault), fault) from fault
        except AnswerGivenUp as fault:
            msg = f"OpenSearch was heard only in part: {fault}"
            raise Transient(msg) from fault
        except OSError as fault:
            raise Unreachable("N/A", str(fault), fault) from fault
        except ValueError as fault:
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "invalid_request", str(fault)) from fault
        if not 200 <= answer.status < 300 and answer.status not in ignore:
            asked = answer.headers.get("retry-after", "")
            _retry_after.set(float(asked) if asked.isdecimal() else None)
            text = answer.body.decode("utf-8", "replace")
            self._raise_error(answer.status, text, answer.headers.get("content-type"))
        return answer.status, answer.headers, answer.body

    async def close(self) -> None:
        await self._http.close()


def connect(settings: OpenSearchSettings, url: str) -> AsyncOpenSearch:
    """A client that tries once: retries are `RetryPolicy`'s. One per event loop; the gate closes it.

    Raises ConfigurationError for certificates that can't be used.
    """
    # At DEBUG the library logs request bodies, which hold the text of memories.
    logging.getLogger("opensearch").setLevel(logging.ERROR)
    password = settings.password
    auth = (settings.username, password.get_secret_value()) if settings.username and password else None
    files = (settings.ca_file, settings.cert_file, settings.key_file)
    options: dict[str, Any] = {}
    if any(files) and url.startswith("https:"):
        ca_file, cert_file, key_file = files
        tls = engine_tls(section="opensearch", ca_file=ca_file, cert_file=cert_file, key_file=key_file)
        options = {"ssl_context": tls}
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
    answer = await request_bytes(client, method, path, params=params, body=body, timeout=timeout)
    return decoded(msgspec.json.decode, answer)


async def request_bytes(
    client: AsyncOpenSearch,
    method: Method,
    path: str,
    *,
    params: Mapping[str, str] | None = None,
    body: Any = None,
    timeout: float | None = None,  # noqa: ASYNC109 - see `request`
) -> bytes:
    """As `request`, the answer not yet decoded."""
    _retry_after.set(None)
    try:
        answer: bytes = await client.transport.perform_request(
            method, path, params=dict(params or {}), body=body, timeout=timeout
        )
    except TransportError as fault:
        raise _translated(fault) from fault
    return answer


def decoded(decode: Callable[[bytes], T], answer: bytes) -> T:
    """Transient for what is no JSON: a part of an answer, or one of something before the engine."""
    try:
        return decode(answer)
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
