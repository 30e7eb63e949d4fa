"""The short way of `POST /v1/search`, the one route that is asked all day: nothing to look up, nothing to wrap.

It takes what is plainly a good request and calls the route. Anything else goes on to the framework, which describes
the service and finds the words for what is wrong with a request.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from indexers.errors import Transient
from search_api.edge import header
from search_api.limits import replay
from search_api.models import SearchAnswer
from search_api.problems import ProblemError
from search_api.requests import SearchRequest
from search_api.routes import search
from search_api.services import Services

_ANSWER: Final = TypeAdapter(SearchAnswer)
#: What a fault of a route is answered with.
OnFault = Callable[[Request, Exception], Awaitable[Response]]


class DirectSearch:
    """Behind the edge: the principal is known, the body read. `on_fault`: as the framework's routes have it."""

    def __init__(self, api: FastAPI, services: Services, *, on_fault: OnFault) -> None:
        self._api = api
        self._services = services
        self._on_fault = on_fault
        [self._route] = [
            route
            for route in search.router.routes
            if isinstance(route, APIRoute) and route.endpoint is search.search
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_plain(scope):
            await self._api(scope, receive, send)
            return
        body = (await receive())["body"]
        asked = _good_request(body)
        if asked is None:
            await self._api(scope, replay(body, receive), send)
            return
        scope.update(app=self._api, route=self._route)
        await self._answer(Request(scope, receive, send), asked, send)

    def _is_plain(self, scope: Scope) -> bool:
        return (
            scope["type"] == "http"
            and scope["path"] == self._route.path
            and scope["method"] == "POST"
            and header(scope, b"content-type") == b"application/json"
        )

    async def _answer(self, request: Request, asked: SearchRequest, send: Send) -> None:
        try:
            found = await search.search(asked, request, self._services, request.state.principal)
            response = Response(_ANSWER.dump_json(found, by_alias=True), media_type="application/json")
        except (ProblemError, Transient) as fault:
            response = await self._on_fault(request, fault)
        except Exception as fault:
            response = await self._on_fault(request, fault)
            await response(request.scope, request.receive, send)
            # The edge logs it with its traceback.
            raise
        await response(request.scope, request.receive, send)


def _good_request(body: bytes) -> SearchRequest | None:
    """None: let the framework say what is wrong."""
    try:
        return SearchRequest.model_validate(json.loads(body))
    except (ValueError, RecursionError):
        return None
