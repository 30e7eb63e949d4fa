"""Serves the page and its files, ahead of authentication: they are the same for everybody."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from indexers.errors import ConfigurationError
from indexers.version import VERSION
from search_api.edge import header, send_problem
from search_api.identity.settings import OidcSettings
from search_api.problems import Problem
from search_api.web.files import BELOW, StaticFile, static_file, static_files
from search_api.web.settings import WebSettings

CONFIG_PATH: Final = f"{BELOW}config.json"
_NO_METHOD: Final = Problem(
    kind="method-not-allowed", detail="The page is read only; see `Allow`.", headers={"allow": "GET, HEAD"}
)
_NO_FILE: Final = Problem(kind="no-such-route", detail="The page has no such file; it begins at `/`.")


@dataclass(frozen=True, slots=True)
class _Route:
    """What log lines and metrics call it."""

    path: str = "/"


class WebPage:
    """ASGI: answers `/` and what is below `/web/`, and gives all else on.

    Raises ConfigurationError where a login is named and no issuer.
    """

    def __init__(self, app: ASGIApp, settings: WebSettings, oidc: OidcSettings) -> None:
        self._app = app
        login = _login(settings, oidc)
        config = {"version": VERSION, "login": login}
        self._files = {
            **static_files(),
            CONFIG_PATH: static_file(json.dumps(config).encode(), ".json"),
        }
        guards = security_headers(None if login is None else origin(login["authority"]))
        self._guards = [(name.encode(), value.encode()) for name, value in guards.items()]
        self._no_file = replace(_NO_FILE, headers=guards)
        self._no_method = replace(_NO_METHOD, headers={**guards, **_NO_METHOD.headers})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path == "/" or path.startswith(BELOW)):
            await self._app(scope, receive, send)
            return
        scope["route"] = _Route()
        file, request_id = self._files.get(path), scope["state"]["request_id"]
        if file is None:
            await send_problem(send, self._no_file, request_id)
        elif scope["method"] not in {"GET", "HEAD"}:
            await send_problem(send, self._no_method, request_id)
        else:
            await self._send(file, scope, send)

    async def _send(self, file: StaticFile, scope: Scope, send: Send) -> None:
        packs = _takes_gzip(scope)
        tag = file.packed_tag if packs else file.tag
        headers = [
            *self._guards,
            (b"content-type", file.media_type.encode()),
            (b"etag", tag.encode()),
            # Asked about each time, and sent again only when it has changed: a new release is seen at once.
            (b"cache-control", b"no-cache"),
            (b"vary", b"accept-encoding"),
        ]
        if _knows(scope, tag):
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        body = file.packed if packs else file.content
        headers += [(b"content-encoding", b"gzip")] if packs else []
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def security_headers(issuer: str | None) -> dict[str, str]:
    """Nothing runs but our files, nothing is fetched but from here. `issuer`: origin of the login, asked for tokens."""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'" if issuer is None else f"'self' {issuer}",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        # Templates that stand in our files; what they are filled with becomes text.
        "trusted-types": "lit-html",
    }
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    }


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _login(settings: WebSettings, oidc: OidcSettings) -> dict[str, Any] | None:
    if settings.oidc_client_id is None:
        return None
    if oidc.issuer is None:
        msg = "web.oidc_client_id is set, but oidc.issuer isn't: the page couldn't log in anywhere"
        raise ConfigurationError(msg)
    return {"authority": oidc.issuer, "client_id": settings.oidc_client_id, "scope": settings.oidc_scope}


def _knows(scope: Scope, tag: str) -> bool:
    told = (header(scope, b"if-none-match") or b"").decode("latin-1")
    return not {"*", tag}.isdisjoint(part.strip().removeprefix("W/") for part in told.split(","))


def _takes_gzip(scope: Scope) -> bool:
    """Whether `Accept-Encoding` names it, or else all, with a weight above 0 (RFC 9110, 12.5.3)."""
    weights: dict[str, float] = {}
    for part in (header(scope, b"accept-encoding") or b"").decode("latin-1").lower().split(","):
        coding, _, parameter = part.partition(";")
        name, _, value = parameter.partition("=")
        weights[coding.strip()] = _weight(value) if name.strip() == "q" else 1.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weight(text: str) -> float:
    """0 for what is none: plain bytes are understood by everybody."""
    try:
        return float(text)
    except ValueError:
        return 0.0
