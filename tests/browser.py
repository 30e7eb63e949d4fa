"""A real browser on the page: headless Chromium of the system, and a record of what must not happen in it."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
#: Told of each breach of the page's policy, whatever the console says.
_LISTEN = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@dataclass(kw_only=True)
class Visit:
    """One person at the page. Leaving it fails the test where anything was refused, failed or asked for elsewhere."""

    page: Page
    address: str
    faults: list[str] = field(default_factory=list)
    #: Faults of the console that a test brings about.
    expected: tuple[str, ...] = ()

    def log_in(self, key: str) -> None:
        self.page.goto(self.address)
        self.page.get_by_label("API").fill(key)
        self.page.locator("form button.main").click()
        self.page.get_by_role("searchbox").wait_for()

    def go(self, view: str) -> None:
        self.page.goto(f"{self.address}/#/{view}")

    def serious(self) -> list[str]:
        """What axe finds that is serious or critical, as `rule: where`."""
        source = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        self.page.evaluate(source)
        found: dict[str, Any] = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{rule['id']}: {node['html'][:200]}"
            for rule in found["violations"]
            if rule["impact"] in {"serious", "critical"}
            for node in rule["nodes"]
        ]


def chromium() -> str:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(
            "no Chromium here: apt-get install chromium (or one of these on the path: " + ", ".join(NAMES)
        )
    return found


@contextlib.contextmanager
def opened_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # As root there is no sandbox; the pages are our own.
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def visit(browser: Browser, address: str, *, also: str | None = None, **context: Any) -> Iterator[Visit]:
    """`also`: another place that the page may ask, such as an issuer of tokens."""
    settings = {"viewport": WIDE, "locale": "en-GB", "color_scheme": "light"} | context
    opened: BrowserContext = browser.new_context(**settings)
    opened.add_init_script(_LISTEN)
    page = opened.new_page()
    page.set_default_timeout(15_000)
    here = Visit(page=page, address=address)
    origins = {urlsplit(place).netloc for place in (address, also) if place}

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            here.faults.append(message.text)

    def on_request(request: Request) -> None:
        if urlsplit(request.url).netloc not in origins and not request.url.startswith(("data:", "blob:")):
            here.faults.append(f"asked elsewhere: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: here.faults.append(f"uncaught: {error}"))
    page.on("request", on_request)
    try:
        yield here
        unexpected = [fault for fault in here.faults if not any(part in fault for part in here.expected)]
        assert unexpected == [], json.dumps(unexpected, ensure_ascii=False)
    finally:
        opened.close()
