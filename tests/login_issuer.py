"""An issuer that people log in at: authorization code with PKCE for a public client, as the page uses it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.issuer import AUDIENCE, SigningKey, key_set, rsa_key

CLIENT = "hopline-page"


class LoginIssuer(ThreadingHTTPServer):
    """`claims`: of the access token. Refuses a code without the verifier of its challenge.

    `refusal`: error that people get instead of a code.
    """

    daemon_threads = True

    def __init__(self, claims: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.claims = claims
        self.refusal: str | None = None
        self.key: SigningKey = rsa_key()
        #: Code → what its authorization asked for.
        self.open: dict[str, dict[str, str]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def settings(self) -> dict[str, str]:
        return {
            "HOPLINE_OIDC__ISSUER": self.url,
            "HOPLINE_OIDC__AUDIENCE": AUDIENCE,
            "HOPLINE_OIDC__JWKS_URL": f"{self.url}/jwks",
            "HOPLINE_OIDC__REGISTERED_TENANTS_ONLY": "false",
            "HOPLINE_WEB__OIDC_CLIENT_ID": CLIENT,
        }

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        if self.refusal is not None:
            return f"{asked['redirect_uri']}?{urlencode({'error': self.refusal, 'state': asked['state']})}"
        code = secrets.token_urlsafe(16)
        self.open[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        asked = self.open.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if asked is None or base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return None
        said: dict[str, Any] = {"iss": self.url, "sub": "ada", "iat": int(time.time())}
        named = self.key.sign(**said, aud=CLIENT, nonce=asked.get("nonce"))
        return {
            "access_token": self.key.sign(**(said | self.claims)),
            "id_token": named,
            "token_type": "Bearer",
            "expires_in": 300,
        }


class _Handler(BaseHTTPRequestHandler):
    server: LoginIssuer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self.send_response(302)
            self.send_header("location", self.server.authorize(asked))
            self.end_headers()
        elif parts.path == "/jwks":
            self._tell(200, key_set(self.server.key))
        else:
            self._tell(200, json.dumps(self.server.description()).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        answer = self.server.token({name: values[0] for name, values in parse_qs(body).items()})
        if answer is None:
            self._tell(400, b'{"error": "invalid_grant"}')
        else:
            self._tell(200, json.dumps(answer).encode())

    def _tell(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("access-control-allow-origin", "*")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Nothing: the test says what went wrong."""


@contextlib.contextmanager
def login_issuer(**claims: Any) -> Iterator[LoginIssuer]:
    with LoginIssuer(claims) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()
