"""The page as files: what it weighs, what it must not hold, and how it is served."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from indexers.errors import ConfigurationError
from search_api.identity.settings import OidcSettings
from search_api.web.files import FOLDER
from search_api.web.page import WebPage
from search_api.web.settings import WebSettings

OURS = sorted(path for path in FOLDER.rglob("*.js") if path.parent.name != "vendor")
#: Loaded when a graph is looked at, another language is chosen, or somebody logs in elsewhere.
LATER = {"graph-canvas.js", "text-ko.js", "vendor/cytoscape.js", "vendor/oidc-client-ts.js"}
ISSUER = OidcSettings(
    issuer="https://login.example.com/realm", audience="hopline", jwks_url="https://login.example.com/jwks"
)


async def behind(scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def client(settings: WebSettings | None = None, oidc: OidcSettings | None = None) -> httpx2.AsyncClient:
    page = WebPage(behind, settings or WebSettings(), oidc or OidcSettings())

    async def with_request_id(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"request_id": "r1"}
        await page(scope, receive, send)

    return httpx2.AsyncClient(transport=httpx2.ASGITransport(with_request_id), base_url="http://hopline")


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with client() as opened:
        yield opened


async def test_the_page_is_html_with_a_policy_that_lets_nothing_else_run(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "connect-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


async def test_a_file_that_is_known_is_not_sent_again(http: httpx2.AsyncClient) -> None:
    first = await http.get("/web/app.js", headers={"accept-encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    assert first.text == (FOLDER / "app.js").read_text(encoding="utf-8")
    again = await http.get("/web/app.js", headers={"if-none-match": f'"x", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    head = await http.head("/web/app.js", headers={"accept-encoding": "identity"})
    assert int(head.headers["content-length"]) == (FOLDER / "app.js").stat().st_size
    assert head.content == b""


@pytest.mark.parametrize(
    ("asked", "packed"),
    [
        ("gzip, br", True),
        ("br;q=1, GZIP;q=0.2", True),
        ("*", True),
        ("gzip;q=0", False),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("x-gzip-not, br", False),
        ("gzip;q=nonsense", False),
        ("", False),
    ],
)
async def test_who_takes_no_gzip_gets_none(http: httpx2.AsyncClient, asked: str, packed: bool) -> None:  # noqa: FBT001 - a parameter
    answer = await http.get("/web/app.js", headers={"accept-encoding": asked})
    assert ("content-encoding" in answer.headers) is packed
    assert answer.text == (FOLDER / "app.js").read_text(encoding="utf-8")


async def test_packed_and_plain_are_two_things_to_a_cache(http: httpx2.AsyncClient) -> None:
    """A strong tag names bytes, not what they unpack to (RFC 9110, 8.8.3.3)."""
    packed = await http.get("/web/app.js", headers={"accept-encoding": "gzip"})
    plain = await http.get("/web/app.js", headers={"accept-encoding": "identity"})
    assert packed.headers["etag"] != plain.headers["etag"]
    for first, encoding in ((packed, "gzip"), (plain, "identity")):
        asked = {"if-none-match": first.headers["etag"], "accept-encoding": encoding}
        again = await http.get("/web/app.js", headers=asked)
        assert (again.status_code, again.headers["etag"]) == (304, first.headers["etag"])
    anything = await http.get("/web/app.js", headers={"if-none-match": "*"})
    assert anything.status_code == 304


@pytest.mark.parametrize(("method", "path"), [("GET", "/web/nothing.js"), ("POST", "/")])
async def test_what_is_refused_is_guarded_like_the_page(
    http: httpx2.AsyncClient, method: str, path: str
) -> None:
    answer = await http.request(method, path)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    "path", ["/web/", "/web/../page.py", "/web/%2e%2e/page.py", "/web/nothing.js", "/web/vendor"]
)
async def test_nothing_but_the_pages_files_can_be_named(http: httpx2.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert answer.status_code in {404, 418}
    assert b"WebPage" not in answer.content


async def test_the_page_is_only_read(http: httpx2.AsyncClient) -> None:
    answer = await http.post("/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_all_else_goes_on_to_the_service(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/v1/search")).status_code == 418
    assert (await http.get("/webx")).status_code == 418


async def test_a_login_elsewhere_is_told_and_allowed_for_its_tokens_alone() -> None:
    async with client(WebSettings(oidc_client_id="page"), ISSUER) as http:
        config = (await http.get("/web/config.json")).json()
        policy = (await http.get("/")).headers["content-security-policy"]
    assert config["login"] == {"authority": ISSUER.issuer, "client_id": "page", "scope": "openid"}
    assert "connect-src 'self' https://login.example.com;" in policy


def test_a_login_without_an_issuer_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"oidc\.issuer"):
        client(WebSettings(oidc_client_id="page"))


def test_the_first_view_is_under_300_kb_even_unpacked() -> None:
    first = [p for p in FOLDER.rglob("*.*") if p.suffix in {".js", ".css", ".html", ".svg"}]
    first = [p for p in first if p.relative_to(FOLDER).as_posix() not in LATER]
    assert sum(path.stat().st_size for path in first) < 300_000
    assert sum(len(gzip.compress(path.read_bytes())) for path in first) < 100_000


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_text_becomes_markup_or_code(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    ways = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|unsafeHTML"
        r"|style=|\son\w+=[\"\']"
    )
    assert re.findall(ways, source) == []


def test_all_languages_have_the_same_words() -> None:
    keys = {
        path.name: re.findall(r'^  "([^"]+)": ', path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in FOLDER.glob("text-*.js")
    }
    assert len(keys) == 2
    english, korean = keys["text-en.js"], keys["text-ko.js"]
    assert sorted(english) == sorted(korean) == sorted(set(english))


def test_words_that_the_page_asks_for_are_there() -> None:
    known = set(
        re.findall(r'^  "([^"]+)": ', (FOLDER / "text-en.js").read_text(encoding="utf-8"), re.MULTILINE)
    )
    asked = {key for path in OURS for key in re.findall(r'\bt\("([^"]+)"', path.read_text(encoding="utf-8"))}
    assert asked - known == set()


def test_libraries_are_as_their_makers_released_them() -> None:
    """But for the address of a source map, which is taken out, and the login's last line, which names what it gives."""
    named = json.loads((FOLDER.parent / "vendored.json").read_text())
    files = {path.name: path for path in (FOLDER / "vendor").glob("*.js")}
    assert named.keys() == files.keys()
    for name, one in named.items():
        assert hashlib.sha256(files[name].read_bytes()).hexdigest() == one["sha256"], name
        assert (FOLDER / "vendor" / f"{one['package']}.LICENSE.txt").stat().st_size > 500
