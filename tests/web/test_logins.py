"""Who looks: by key or at an issuer of tokens, what ends it, and addresses that nobody wrote for us."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.sync_api import Browser, expect

from hopline.local.ports import free_ports
from indexers.domain.identity import AgentId, Principal, TenantId
from search_api.keys import store_key
from tests.api import running_service, vault
from tests.browser import Visit, opened_browser, visit
from tests.conftest import Stack
from tests.login_issuer import LoginIssuer, login_issuer
from tests.pipeline import Pipeline, running

pytestmark = pytest.mark.engines

READER = "key-of-reader-0123456789abcdef0123456789"
NOTES = {
    "ferry.md": "# The ferry\n\nIt sails at nine. See [[harbour]].\n",
    "harbour.md": "# Harbour\n\nCranes.\n",
}


@pytest.fixture(scope="module")
def issuer() -> Iterator[LoginIssuer]:
    with login_issuer(tenant="acme", agent="nia", roles=["agent"]) as issuer:
        yield issuer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(
    stack: Stack, issuer: LoginIssuer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Pipeline]:
    """The query service alone, over notes that stay as they are."""
    folder = tmp_path_factory.mktemp("logins")
    root = vault(folder / "vault", NOTES, tenant="acme")
    prefix = f"t{free_ports()}logins"
    async with running_service(stack.opensearch_url, folder, vaults=[root], prefix=prefix):
        own = Pipeline(
            prefix=prefix,
            kafka_servers=stack.kafka_servers,
            opensearch_url=stack.opensearch_url,
            data_dir=folder,
            vaults=[{"name": "vault", "path": str(root.path), "tenant": "acme"}],
            settings=issuer.settings(),
        )
        store_key(
            folder / "keys.json", READER, Principal(tenant_id=TenantId("acme"), agent_id=AgentId("ada"))
        )
        with running(own, "api"):
            yield own


@pytest.fixture(scope="module")
def browser(pipeline: Pipeline) -> Iterator[Browser]:
    """After the service, and gone before it: this library and the fixture's loop don't mix."""
    assert pipeline.processes
    with opened_browser() as browser:
        yield browser


def at_issuer(here: Visit) -> None:
    here.page.get_by_role("button", name="Log in at your organisation").click()


def stored(here: Visit) -> str:
    return json.dumps(
        here.page.evaluate("Object.entries(sessionStorage).concat(Object.entries(localStorage))")
    )


def test_who_logs_in_elsewhere_comes_back_to_what_was_asked_for(
    pipeline: Pipeline, issuer: LoginIssuer, browser: Browser
) -> None:
    with visit(browser, pipeline.api_url, also=issuer.url) as here:
        here.go("search?q=cranes&parts=keyword")
        at_issuer(here)
        expect(here.page.locator(".hit h2 a")).to_have_text("Harbour")
        expect(here.page.locator("header")).to_contain_text("nia · acme")
        assert here.page.url == f"{here.address}/#/search?q=cranes&parts=keyword"
        here.page.get_by_role("button", name="Log out").click()
        expect(here.page.get_by_label("API key")).to_be_visible()
        assert "eyJ" not in stored(here)
        assert here.page.evaluate("sessionStorage.length") == 0


def test_a_refusal_of_the_issuer_is_told(pipeline: Pipeline, issuer: LoginIssuer, browser: Browser) -> None:
    issuer.refusal = "access_denied"
    try:
        with visit(browser, pipeline.api_url, also=issuer.url) as here:
            here.go("search?q=cranes")
            at_issuer(here)
            expect(here.page.get_by_role("alert")).to_contain_text("access_denied")
            assert here.page.url == f"{here.address}/#/search?q=cranes"
            here.page.get_by_label("API key").fill(READER)
            here.page.get_by_role("button", name="Log in", exact=True).click()
            expect(here.page.locator(".hit").first).to_be_visible()
    finally:
        issuer.refusal = None


def test_an_issuer_that_does_not_answer_is_told(
    pipeline: Pipeline, browser: Browser, issuer: LoginIssuer
) -> None:
    with visit(browser, pipeline.api_url, also=issuer.url) as here:
        here.expected = ("Failed to load resource",)
        here.page.route(f"{issuer.url}/**", lambda route: route.abort())
        here.page.goto(here.address)
        at_issuer(here)
        expect(here.page.get_by_role("alert")).to_be_visible()
        expect(here.page.get_by_role("button", name="Log in", exact=True)).to_be_enabled()


def test_an_answer_of_another_login_is_not_taken(pipeline: Pipeline, browser: Browser) -> None:
    """A link with a code that somebody else began: nobody is logged in by it, and the address is cleaned."""
    with visit(browser, pipeline.api_url) as here:
        here.page.goto(f"{here.address}/?state=forged&code=stolen#/entities")
        expect(here.page.get_by_role("alert")).to_be_visible()
        expect(here.page.get_by_label("API key")).to_be_visible()
        assert "code" not in here.page.url


def test_a_key_that_counts_no_longer_leads_to_the_login_and_back(
    pipeline: Pipeline, browser: Browser
) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.expected = ("401",)
        here.log_in(READER)
        here.page.evaluate("sessionStorage.setItem('hopline.key', 'withdrawn')")
        here.go("entities?q=ferry")
        expect(here.page.get_by_role("alert")).to_contain_text("This key isn't known")
        expect(here.page.locator("header")).not_to_contain_text("ada")
        assert "withdrawn" not in stored(here)
        here.page.get_by_label("API key").fill(READER)
        here.page.get_by_role("button", name="Log in", exact=True).click()
        expect(here.page.get_by_role("heading", name="Entities")).to_be_visible()
        assert here.page.url == f"{here.address}/#/entities?q=ferry"


def test_a_service_that_is_away_for_a_moment_costs_no_login(pipeline: Pipeline, browser: Browser) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.expected = ("Failed to load resource",)
        here.log_in(READER)
        here.go("search?q=cranes&parts=keyword")
        here.page.locator(".hit").first.wait_for()
        here.page.route("**/v1/whoami", lambda route: route.abort())
        here.page.reload()
        expect(here.page.get_by_role("alert")).to_contain_text("The service doesn't answer")
        here.page.unroute("**/v1/whoami")
        here.page.get_by_role("button", name="Try again").click()
        expect(here.page.locator(".hit h2 a")).to_have_text("Harbour")


@pytest.mark.parametrize(
    "path", ["document/%E0%A4%A", "document/%", "document/", "document/..%2F..%2Fwhoami", "entity/%"]
)
def test_an_address_of_nothing_says_so(pipeline: Pipeline, browser: Browser, path: str) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.expected = ("404", "422")
        here.log_in(READER)
        here.go(path)
        expect(here.page.get_by_role("alert")).to_be_visible()


@pytest.mark.parametrize("path", ["constructor", "toString/x", "__proto__", "%", "nothing/at/all", "//"])
def test_an_address_of_no_view_is_the_search(pipeline: Pipeline, browser: Browser, path: str) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.log_in(READER)
        here.go(path)
        expect(here.page.get_by_role("searchbox")).to_be_visible()
        here.page.reload()
        expect(here.page.get_by_role("searchbox")).to_be_visible()
