"""The HTTP client: `HoplineClient` (blocking) and `AsyncHoplineClient`.

    with HoplineClient.from_settings(load_settings()) as client:
        for hit in client.search_all("why did the ferry stop"):
            print(hit.title)

A service that is away or overloaded is asked again with back-off. Errors are `HoplineError`s.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import httpx2
import stamina

from hopline import calls, entity_calls
from hopline.answers import Context, Hit, SearchPage
from hopline.calls import Call, Part
from hopline.document_answers import Backlink, BacklinkPage, ContentPage, Document, Link, LinkPage
from hopline.entity_answers import (
    DocumentMention,
    DocumentMentionPage,
    Entity,
    EntityLine,
    EntityPage,
    Mention,
    MentionPage,
    Relation,
    RelationPage,
)
from hopline.memory_client import AsyncMemoryMethods, MemoryMethods
from hopline.service_address import api_key, api_url, checked_url
from hopline.settings import Settings
from indexers.errors import Away, HoplineError, Transient

T = TypeVar("T")
TIMEOUT_SECONDS = 15.0
ATTEMPTS = 4
RETRY_SECONDS = 30.0


class HoplineClient(MemoryMethods):
    """Blocking. One connection pool: make it once, use it as a context manager or close it."""

    def __init__(
        self, url: str, key: str, *, timeout_seconds: float = TIMEOUT_SECONDS, attempts: int = ATTEMPTS
    ) -> None:
        self._http = httpx2.Client(base_url=checked_url(url), headers=_headers(key), timeout=timeout_seconds)
        self._attempts = attempts

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(api_url(settings), api_key(settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(self, call: Call[T]) -> T:
        """Any call of `hopline.calls`, `entity_calls` and `memory_calls`; the methods are short forms."""
        for attempt in _attempts(self._attempts):
            with attempt:
                try:
                    response = self._http.request(
                        call.method, call.path, params=call.params, json=call.json, headers=call.headers
                    )
                except httpx2.RequestError as exc:
                    raise _unreachable(self._http.base_url, exc) from exc
                return _read(call, response)
        raise AssertionError  # pragma: no cover - the loop returns or raises

    def search(
        self,
        query: str,
        *,
        filters: Mapping[str, Any] | None = None,
        parts: Sequence[Part] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
        explain: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> SearchPage:
        call = calls.search(
            query,
            filters=filters,
            parts=parts,
            page_size=page_size,
            cursor=cursor,
            explain=explain,
            options=options,
        )
        return self.call(call)

    def search_all(self, query: str, **options: Any) -> Iterator[Hit]:
        """Hit after hit to the last candidate; pages are fetched as they are needed."""
        cursor: str | None = None
        while True:
            page = self.search(query, cursor=cursor, **options)
            yield from page.hits
            cursor = page.next_cursor
            if cursor is None:
                return

    def context(self, query: str, **options: Any) -> Context:
        """What a model should read about a question; options as in `calls.context`."""
        return self.call(calls.context(query, **options))

    def document(self, doc_id: str) -> Document:
        return self.call(calls.document(doc_id))

    def content(self, doc_id: str, *, start: int = 0, max_chars: int | None = None) -> ContentPage:
        return self.call(calls.content(doc_id, start=start, max_chars=max_chars))

    def text(self, doc_id: str, *, start: int = 0) -> Iterator[str]:
        """The text to its end, page after page, all of one version of the file."""
        page = self.content(doc_id, start=start)
        first = page.content_hash
        yield page.text
        while page.next is not None:
            page = self.content(doc_id, start=page.next)
            _require_same(first, page)
            yield page.text

    def links(self, doc_id: str, *, page_size: int | None = None, cursor: str | None = None) -> LinkPage:
        return self.call(calls.links(doc_id, page_size=page_size, cursor=cursor))

    def backlinks(
        self, doc_id: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> BacklinkPage:
        return self.call(calls.backlinks(doc_id, page_size=page_size, cursor=cursor))

    def links_all(self, doc_id: str) -> Iterator[Link]:
        pages = _pages(lambda cursor: self.links(doc_id, cursor=cursor))
        return (link for page in pages for link in page.links)

    def backlinks_all(self, doc_id: str) -> Iterator[Backlink]:
        pages = _pages(lambda cursor: self.backlinks(doc_id, cursor=cursor))
        return (link for page in pages for link in page.links)

    def entities(self, words: str | None = None, **options: Any) -> EntityPage:
        """By name, or those with most mentions; options as in `entity_calls.entities`."""
        return self.call(entity_calls.entities(words, **options))

    def entities_all(self, **options: Any) -> Iterator[EntityLine]:
        """Those with most mentions first, to the last one."""
        pages = _pages(lambda cursor: self.call(entity_calls.entities(cursor=cursor, **options)))
        return (line for page in pages for line in page.entities)

    def entity(self, entity_id: str) -> Entity:
        return self.call(entity_calls.entity(entity_id))

    def mentions_all(self, entity_id: str) -> Iterator[Mention]:
        """Documents that name the entity, each with its sentence, the most certain first."""
        pages = _pages(lambda cursor: self.call(entity_calls.mentions(entity_id, cursor=cursor)))
        return (mention for page in pages for mention in page.mentions)

    def mentioned_in(self, doc_id: str) -> Iterator[DocumentMention]:
        """What one document names, the most certain first."""
        pages = _pages(lambda cursor: self.call(entity_calls.mentioned_in(doc_id, cursor=cursor)))
        return (mention for page in pages for mention in page.mentions)

    def relations_all(self, entity_id: str) -> Iterator[Relation]:
        pages = _pages(lambda cursor: self.call(entity_calls.relations(entity_id, cursor=cursor)))
        return (relation for page in pages for relation in page.relations)


class AsyncHoplineClient(AsyncMemoryMethods):
    """The same for asyncio."""

    def __init__(
        self, url: str, key: str, *, timeout_seconds: float = TIMEOUT_SECONDS, attempts: int = ATTEMPTS
    ) -> None:
        self._http = httpx2.AsyncClient(
            base_url=checked_url(url), headers=_headers(key), timeout=timeout_seconds
        )
        self._attempts = attempts

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(api_url(settings), api_key(settings))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, call: Call[T]) -> T:
        async for attempt in _attempts(self._attempts):
            with attempt:
                try:
                    response = await self._http.request(
                        call.method, call.path, params=call.params, json=call.json, headers=call.headers
                    )
                except httpx2.RequestError as exc:
                    raise _unreachable(self._http.base_url, exc) from exc
                return _read(call, response)
        raise AssertionError  # pragma: no cover - the loop returns or raises

    async def search(self, query: str, **options: Any) -> SearchPage:
        return await self.call(calls.search(query, **options))

    async def search_all(self, query: str, **options: Any) -> AsyncIterator[Hit]:
        cursor: str | None = None
        while True:
            page = await self.search(query, cursor=cursor, **options)
            for hit in page.hits:
                yield hit
            cursor = page.next_cursor
            if cursor is None:
                return

    async def context(self, query: str, **options: Any) -> Context:
        return await self.call(calls.context(query, **options))

    async def document(self, doc_id: str) -> Document:
        return await self.call(calls.document(doc_id))

    async def content(self, doc_id: str, **options: Any) -> ContentPage:
        return await self.call(calls.content(doc_id, **options))

    async def links(self, doc_id: str, **options: Any) -> LinkPage:
        return await self.call(calls.links(doc_id, **options))

    async def backlinks(self, doc_id: str, **options: Any) -> BacklinkPage:
        return await self.call(calls.backlinks(doc_id, **options))

    async def entities(self, words: str | None = None, **options: Any) -> EntityPage:
        return await self.call(entity_calls.entities(words, **options))

    async def entity(self, entity_id: str) -> Entity:
        return await self.call(entity_calls.entity(entity_id))

    async def mentions(self, entity_id: str, **options: Any) -> MentionPage:
        return await self.call(entity_calls.mentions(entity_id, **options))

    async def mentioned_in(self, doc_id: str, **options: Any) -> DocumentMentionPage:
        return await self.call(entity_calls.mentioned_in(doc_id, **options))

    async def relations(self, entity_id: str, **options: Any) -> RelationPage:
        return await self.call(entity_calls.relations(entity_id, **options))


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


P = TypeVar("P", bound=_Page)


def _pages(fetch: Callable[[str | None], P]) -> Iterator[P]:
    """Page after page; the next one is fetched when it is needed."""
    page = fetch(None)
    yield page
    while page.next_cursor is not None:
        page = fetch(page.next_cursor)
        yield page


def _attempts(attempts: int) -> Any:
    """A call reads, or says what changes nothing when it is said twice: all may be repeated."""
    return stamina.retry_context(
        on=_backoff, attempts=attempts, timeout=RETRY_SECONDS, wait_initial=0.1, wait_max=2.0, wait_jitter=0.2
    )


def _backoff(error: Exception) -> bool | float:
    if not isinstance(error, Transient):
        return False
    return True if error.retry_after is None else min(error.retry_after, RETRY_SECONDS)


def _read(call: Call[T], response: httpx2.Response) -> T:
    return calls.read_answer(
        call, response.status_code, response.content, response.headers.get("retry-after")
    )


def _unreachable(url: httpx2.URL, error: httpx2.RequestError) -> Transient:
    return Away(
        "the query service",
        f"{url} can't be reached ({type(error).__name__}): is the query service up? `hopline status`",
    )


def _require_same(first: str, page: ContentPage) -> None:
    if page.content_hash != first:
        msg = f"{page.path} changed while it was read: read it again"
        raise HoplineError(msg)


def _headers(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}", "accept": "application/json, application/problem+json"}
