"""The page in a real browser over the whole pipeline: search, why, documents, the graph, curation; two tenants."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from indexers.domain.identity import AgentId, Principal, Role, TenantId
from search_api.keys import store_key
from streams.rebuild import AGENTS
from tests.browser import PHONE, Visit, opened_browser, visit
from tests.conftest import Stack
from tests.login_issuer import LoginIssuer, login_issuer
from tests.pipeline import Pipeline, running

pytestmark = pytest.mark.engines

READER, CURATOR, OTHER = (
    f"key-of-{name}-0123456789abcdef0123456789" for name in ("reader", "curator", "other")
)
NOTES = {
    "ferry.md": "---\ntags: [harbour]\n---\n# The ferry\n\nThe ferry to the island sails at nine, says Orla Mint. "
    "It is told in [[harbour]].\n",
    "harbour.md": "# Harbour\n\nCranes unload the coal ships. Orla Mint keeps the harbour.\n",
    "부산항.md": "# 부산항\n\n부산항에서 배가 아침 아홉 시에 떠난다. [[ferry]] 참고.\n",
    "outages.md": "# Outages\n\nINC-2041 at the [[harbour]] was INC-2042 once, and nobody noticed INC-2041.\n",
}
#: What a vault may hold against whoever looks at it.
HOSTILE = (
    "<script>document.title='owned'</script>",
    '<img src="http://203.0.113.9/pixel.png" onerror="document.title=\'owned\'">',
    "[click](javascript:document.title='owned')",
    "![remote](http://203.0.113.9/a.png)",
    "<svg onload=\"document.title='owned'\">",
    "<iframe src='http://203.0.113.9/'></iframe>",
    "${document.title='owned'} {{constructor.constructor('x')()}}",
    "\u202egnp.exe\u202c and \u2066isolated\u2069",
    "<style>body{display:none}</style>",
    "|" + "a|" * 2_000,
)


def write_vault(folder: Path, notes: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in notes.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def hostile_notes() -> dict[str, str]:
    """Forty: each attack in the title, the text, a link and the frontmatter."""
    notes = {}
    for number, attack in enumerate(HOSTILE):
        short = attack[:120]
        notes[f"h{number}-title.md"] = f"# {short}\n\nheliotrope {number}\n"
        notes[f"h{number}-text.md"] = f"# Note {number}\n\nheliotrope {attack}\n\n{attack}\n"
        notes[f"h{number}-link.md"] = (
            f"# Link {number}\n\nheliotrope [[h{number}-title|{short.replace('|', ' ')}]]\n"
        )
        notes[f"h{number}-front.md"] = (
            f"---\ntitle: '{short}\ntags: [{short}\n---\n# Front {number}\n\nheliotrope\n"
        )
    return notes


@pytest.fixture(scope="module")
def issuer() -> Iterator[LoginIssuer]:
    with login_issuer(tenant="one", agent="olga", roles=["reader"]) as issuer:
        yield issuer


@pytest.fixture(scope="module")
def pipeline(
    stack: Stack, tmp_path_factory: pytest.TempPathFactory, issuer: LoginIssuer
) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("page")
    own = Pipeline(
        prefix=f"t{os.urandom(5).hex()}",
        kafka_servers=stack.kafka_servers,
        opensearch_url=stack.opensearch_url,
        data_dir=folder,
        settings=issuer.settings(),
        vaults=[
            {"name": "one", "path": str(write_vault(folder / "one", NOTES)), "tenant": "one"},
            {"name": "two", "path": str(write_vault(folder / "two", hostile_notes())), "tenant": "two"},
        ],
    )
    roles: dict[str, tuple[str, tuple[Role, ...]]] = {
        READER: ("one", ("reader",)),
        CURATOR: ("one", ("agent", "curator")),
        OTHER: ("two", ("agent",)),
    }
    for key, (tenant, own_roles) in roles.items():
        who = Principal(tenant_id=TenantId(tenant), agent_id=AgentId("ada"), roles=own_roles)
        store_key(folder / "keys.json", key, who)
    with running(own, *AGENTS, "watch", "api"):
        own.wait_idle()
        yield own


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as browser:
        yield browser


def search(here: Visit, query: str) -> None:
    here.go(f"search?q={query}")
    here.page.locator(".hit").first.wait_for()


def open_document(here: Visit, title: str) -> None:
    here.page.locator(".hit h2 a", has_text=re.compile(f"^{title}$")).click()
    expect(here.page.get_by_role("heading", name=title, level=1)).to_be_visible()


def test_a_wrong_key_says_so_and_the_right_one_opens_the_page(pipeline: Pipeline, browser: Browser) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.expected = ("401",)
        here.page.goto(here.address)
        here.page.get_by_label("API key").fill("no-such-key")
        here.page.get_by_role("button", name="Log in", exact=True).click()
        expect(here.page.get_by_role("alert")).to_contain_text("This key isn't known")
        here.log_in(READER)
        expect(here.page.locator("header")).to_contain_text("ada · one")
        here.page.get_by_role("button", name="Log out").click()
        expect(here.page.get_by_label("API key")).to_be_visible()
        assert READER not in here.page.url
        here.log_in(READER)
        here.page.evaluate("sessionStorage.setItem('hopline.key', 'revoked')")
        here.go("search?q=ferry")
        expect(here.page.get_by_role("alert")).to_contain_text("This key isn't known")
        expect(here.page.get_by_label("API key")).to_be_visible()
        assert here.page.evaluate("sessionStorage.length") == 0


def test_who_logs_in_at_the_issuer_comes_back_to_the_view_that_was_asked_for(
    pipeline: Pipeline, browser: Browser, issuer: LoginIssuer
) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.expected = (f"asked elsewhere: {issuer.url}/",)
        here.go("search?q=ferry")
        here.page.get_by_role("button", name="Log in at your organisation").click()
        here.page.locator(".hit").first.wait_for()
        expect(here.page.locator("header")).to_contain_text("olga · one")
        assert here.page.url == f"{pipeline.api_url}/#/search?q=ferry"


def test_search_why_document_link_and_backlink(pipeline: Pipeline, browser: Browser) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.log_in(READER)
        here.page.get_by_role("searchbox").fill("when does the ferry sail")
        here.page.keyboard.press("Enter")
        here.page.locator(".hit").first.wait_for()
        assert "q=when" in here.page.url
        first = here.page.locator(".hit").first
        first.get_by_text("Why this?").click()
        expect(first.get_by_role("row", name=re.compile("documents · words"))).to_be_visible()
        shares = first.locator("tbody tr:has(meter)")
        assert shares.count() >= 2
        here.page.get_by_text("How it was found").click()
        expect(here.page.get_by_text("round trips")).to_be_visible()
        assert here.serious() == []
        open_document(here, "The ferry")
        here.page.locator(".text a").first.click()
        expect(here.page.get_by_role("heading", name="Harbour", level=1)).to_be_visible()
        here.page.locator("section[aria-labelledby=h-backlinks] a", has_text="The ferry").first.click()
        expect(here.page.get_by_role("heading", name="The ferry", level=1)).to_be_visible()
        assert here.serious() == []


def test_the_keyboard_alone_goes_from_search_to_a_hit(pipeline: Pipeline, browser: Browser) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.log_in(READER)
        search(here, "harbour")
        here.page.keyboard.press("/")
        expect(here.page.get_by_role("searchbox")).to_be_focused()
        here.page.locator(".hit h2 a").first.focus()
        here.page.keyboard.press("ArrowDown")
        expect(here.page.locator(".hit h2 a").nth(1)).to_be_focused()
        here.page.keyboard.press("Enter")
        expect(here.page.locator("article .text")).to_be_visible()


def test_the_graph_is_walked_by_mouse_and_by_keyboard(pipeline: Pipeline, browser: Browser) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.log_in(READER)
        search(here, "ferry island")
        open_document(here, "The ferry")
        here.page.get_by_role("link", name="Graph around it").click()
        canvas = here.page.locator("#canvas[data-ready]")
        canvas.wait_for()
        here.page.locator("#edges button", has_text="Harbour").first.click()
        expect(here.page.locator("aside h2")).to_have_text("Harbour")
        canvas.focus()
        here.page.keyboard.press("Enter")
        expect(here.page.get_by_role("heading", level=1)).to_contain_text("Harbour")
        canvas.wait_for()
        canvas.focus()
        here.page.keyboard.press("ArrowRight")
        expect(here.page.locator("aside h2")).not_to_have_text("Harbour")
        here.page.keyboard.press("ArrowUp")
        expect(here.page.locator("aside h2")).to_have_text("Harbour")
        box = canvas.bounding_box()
        assert box is not None
        here.page.mouse.click(box["x"] + 3, box["y"] + 3)
        assert here.serious() == []


def test_a_curator_joins_two_entities_and_takes_it_back(pipeline: Pipeline, browser: Browser) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.log_in(CURATOR)
        here.go("entities?q=INC-2041")
        here.page.get_by_role("link", name="INC-2041", exact=True).click()
        here.page.get_by_text("Curate", exact=True).click()
        here.page.get_by_label("Join with another").fill("INC-2042")
        here.page.keyboard.press("Enter")
        here.page.locator("#found button").first.click()
        expect(here.page.get_by_text("They are one now.")).to_be_visible()
        expect(here.page.locator("main")).to_contain_text("Also called")
        here.page.get_by_role("button", name="Undo").first.click()
        expect(here.page.get_by_text("Taken back.")).to_be_visible()
        expect(here.page.locator("main")).not_to_contain_text("Also called")
        assert here.serious() == []


def test_a_reader_is_offered_no_command(pipeline: Pipeline, browser: Browser) -> None:
    with visit(browser, pipeline.api_url) as here:
        here.log_in(READER)
        here.go("entities?q=INC-2041")
        here.page.get_by_role("link", name="INC-2041", exact=True).click()
        expect(here.page.get_by_role("heading", name="INC-2041")).to_be_visible()
        assert here.page.get_by_text("Curate", exact=True).count() == 0


def test_korean_dark_and_narrow(pipeline: Pipeline, browser: Browser) -> None:
    with visit(browser, pipeline.api_url, viewport=PHONE, locale="ko-KR", color_scheme="dark") as here:
        here.log_in(READER)
        assert here.page.evaluate("document.documentElement.lang") == "ko"
        search(here, "부산항 출항")
        first = here.page.locator(".hit").first
        first.get_by_text("왜 나왔나요?").click()
        assert here.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert here.serious() == []
        first.locator("h2 a").click()
        expect(here.page.locator(".text")).to_contain_text("부산항에서")
        assert here.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert here.serious() == []


def test_forty_hostile_notes_of_another_tenant_stay_text(pipeline: Pipeline, browser: Browser) -> None:
    """The visit itself fails on a breach of the policy or a request to elsewhere."""
    with visit(browser, pipeline.api_url) as here:
        here.log_in(OTHER)
        here.go("search?q=heliotrope&parts=keyword")
        here.page.locator(".hit").first.wait_for()
        while here.page.get_by_role("button", name="More", exact=True).count():
            here.page.get_by_role("button", name="More", exact=True).click()
            expect(here.page.locator("main progress")).to_have_count(0)
        links = here.page.locator(".hit h2 a")
        seen = {str(links.nth(at).get_attribute("href")) for at in range(links.count())}
        assert len(seen) == len(hostile_notes()) == 40
        for address in sorted(seen):
            here.page.goto(f"{here.address}/{address}")
            here.page.locator(".text").first.wait_for()
            assert "owned" not in here.page.title().replace("document.title='owned'", "")
            assert (
                here.page.locator(
                    "article img, article iframe, article svg, article script, article style"
                ).count()
                == 0
            )
        here.go("search?q=ferry")
        expect(here.page.locator("main progress")).to_have_count(0)
        expect(here.page.locator("main")).not_to_contain_text("island sails")
