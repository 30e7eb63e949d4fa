"""Documents by id over the real engine: rows, texts, links and backlinks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from search_api.settings import SearchSettings
from tests.api import Service, principal, rewrite_documents, running_service, vault
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ME = principal("acme")
LONG = "\ufeff# Long\r\n\r\n" + "".join(f"줄 {n} 🚢 e\u0301 line\r\n" for n in range(400))
NOTES = {
    "plan.md": "# Plan\n\nFirst [[ferry]], then [[ferry|the boat]] and [[nowhere]] and ![[pier/map]].\n",
    "ferry.md": "---\naliases: [Osprey]\n---\n# The ferry\n\nDocks at [pier](pier/map.md).\n",
    "pier/map.md": "# Map\n\nSee [[Osprey]].\n",
    "long.md": LONG,
    "empty.md": "",
    "bad.md": "",
} | {f"fan/from-{n:02d}.md": f"# From {n}\n\nAll of them name [[ferry]].\n" for n in range(12)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("documents")
    root = vault(folder / "vault", NOTES)
    (root.path / "bad.md").write_bytes(b"a\x00b")
    settings = SearchSettings(content_page_chars=1_000)
    async with running_service(
        stack.opensearch_url, folder, vaults=[root], principals=[ME], search=settings
    ) as running:
        yield running


def id_of(service: Service, path: str) -> str:
    return service.ids[("vault", path)]


async def listed(service: Service, path: str, kind: str, size: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        answer = await service.get(
            ME, f"/v1/documents/{id_of(service, path)}/{kind}?page_size={size}{cursor}"
        )
        assert answer.status_code == 200, answer.text
        found += answer.json()["links"]
        if answer.json()["next_cursor"] is None:
            return found
        cursor = f"&cursor={answer.json()['next_cursor']}"


async def test_a_documents_row(service: Service) -> None:
    answer = await service.get(ME, f"/v1/documents/{id_of(service, 'ferry.md')}")
    row = answer.json()
    assert answer.status_code == 200
    assert {
        name: row[name] for name in ("path", "title", "aliases", "agent", "team", "scope", "size", "version")
    } == {
        "path": "ferry.md",
        "title": "The ferry",
        "aliases": ["Osprey"],
        "agent": "ada",
        "team": None,
        "scope": "shared",
        "size": len(NOTES["ferry.md"].encode()),
        "version": 1,
    }
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("size", [1, 7, 333, 1_000])
async def test_pages_of_content_are_exactly_the_files_text(service: Service, size: int) -> None:
    path = f"/v1/documents/{id_of(service, 'long.md')}/content"
    pages: list[str] = []
    start: int | None = 0 if size > 1 else len(LONG) - 20
    while start is not None:
        answer = await service.get(ME, f"{path}?start={start}&max_chars={size}")
        page = answer.json()
        assert answer.headers["etag"] == f'"{page["content_hash"]}"'
        assert page["total_chars"] == len(LONG)
        pages.append(page["text"])
        start = page["next"]
    assert "".join(pages) == (LONG if size > 1 else LONG[-20:])


async def test_content_that_the_caller_has_is_not_sent_again(service: Service) -> None:
    path = f"/v1/documents/{id_of(service, 'plan.md')}/content"
    first = await service.get(ME, path)
    again = await service.get(ME, path, **{"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    for given in (f'"sha256:0", W/{first.headers["etag"]}', "*"):
        assert (await service.get(ME, path, **{"if-none-match": given})).status_code == 304
    other = await service.get(ME, path, **{"if-none-match": '"sha256:0"'})
    assert other.status_code == 200


@pytest.mark.parametrize("has_it", [True, False])
async def test_a_conditional_read_looks_the_row_up_once(
    service: Service, monkeypatch: pytest.MonkeyPatch, *, has_it: bool
) -> None:
    path = f"/v1/documents/{id_of(service, 'plan.md')}/content"
    tag = (await service.get(ME, path)).headers["etag"] if has_it else '"sha256:0"'
    looked_up: list[object] = []
    get_many = service.gate.get_many

    async def counted(*given: Any, **more: Any) -> Any:
        looked_up.append(given)
        return await get_many(*given, **more)

    monkeypatch.setattr(service.gate, "get_many", counted)
    answer = await service.get(ME, path, **{"if-none-match": tag})
    assert (answer.status_code, len(looked_up)) == (304 if has_it else 200, 1)


async def test_empty_and_binary_files(service: Service) -> None:
    empty = await service.get(ME, f"/v1/documents/{id_of(service, 'empty.md')}/content")
    assert (empty.status_code, empty.json()["text"], empty.json()["next"]) == (200, "", None)
    binary = await service.get(ME, f"/v1/documents/{id_of(service, 'bad.md')}/content")
    assert (binary.status_code, binary.json()["type"]) == (409, "urn:hopline:problem:content-not-text")


async def test_content_beyond_its_end_is_empty(service: Service) -> None:
    answer = await service.get(
        ME, f"/v1/documents/{id_of(service, 'plan.md')}/content?start=9007199254740992"
    )
    page = answer.json()
    assert (answer.status_code, page["text"], page["next"]) == (200, "", None)


@pytest.mark.parametrize("size", [1, 2, 100])
async def test_links_show_what_is_written_and_where_it_leads(service: Service, size: int) -> None:
    links = await listed(service, "plan.md", "links", size)
    assert [(link["target"], link["link_type"], (link["to"] or {}).get("path")) for link in links] == [
        ("ferry", "wikilink", "ferry.md"),
        ("nowhere", "wikilink", None),
        ("pier/map", "embed", "pier/map.md"),
    ]
    text = NOTES["plan.md"]
    assert [text[o["start"] : o["end"]] for o in links[0]["occurrences"]] == [
        "[[ferry]]",
        "[[ferry|the boat]]",
    ]
    assert [o["display"] for o in links[0]["occurrences"]] == [None, "the boat"]
    assert "First" in links[0]["occurrences"][0]["context"]


@pytest.mark.parametrize("size", [1, 5, 100])
async def test_backlinks_by_path_with_their_context_without_gaps(service: Service, size: int) -> None:
    links = await listed(service, "ferry.md", "backlinks", size)
    fan = [f"fan/from-{n:02d}.md" for n in range(12)]
    assert [link["from"]["path"] for link in links] == [*fan, "pier/map.md", "plan.md"]
    assert links[0]["from"]["title"] == "From 0"
    assert "All of them" in links[0]["occurrences"][0]["context"]
    assert links[-2]["target"] == "Osprey"


async def test_edges_of_an_older_version_and_of_deleted_documents_are_passed_over(
    stack: Stack, tmp_path: Path
) -> None:
    notes = {f"n{n}.md": "# N\n\nsee [[hub]] and [[gone]]\n" for n in range(5)} | {
        "hub.md": "# Hub\n",
        "gone.md": "# G\n",
    }
    root = vault(tmp_path / "vault", notes)
    async with running_service(stack.opensearch_url, tmp_path, vaults=[root], principals=[ME]) as service:
        changes = {"n0.md": {"version": 2}, "n1.md": {"version": 2, "deleted": True}}
        await rewrite_documents(service, ME, "vault", {**changes, "gone.md": {"version": 2, "deleted": True}})
        found = await listed(service, "hub.md", "backlinks", 2)
        assert [link["from"]["path"] for link in found] == ["n2.md", "n3.md", "n4.md"]
        assert await listed(service, "n0.md", "links", 10) == []
        assert (await listed(service, "n2.md", "links", 10))[0]["to"] is None
        for suffix in ("", "/content", "/links", "/backlinks"):
            answer = await service.get(ME, f"/v1/documents/{id_of(service, 'gone.md')}{suffix}")
            assert answer.status_code == 404


async def test_many_edges_left_behind_cost_few_searches(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = {f"n{n:02d}.md": "# N\n\nsee [[hub]]\n" for n in range(40)} | {"hub.md": "# Hub\n"}
    root = vault(tmp_path / "vault", notes)
    async with running_service(stack.opensearch_url, tmp_path, vaults=[root], principals=[ME]) as service:
        await rewrite_documents(
            service,
            ME,
            "vault",
            {path: {"version": 2} for path in notes if path < "n38.md" and path != "hub.md"},
        )
        searches: list[object] = []
        search_many = service.gate.search_many

        async def counted(given: Any) -> Any:
            searches.append(given)
            return await search_many(given)

        monkeypatch.setattr(service.gate, "search_many", counted)
        found = await listed(service, "hub.md", "backlinks", 1)
        assert [link["from"]["path"] for link in found] == ["n38.md", "n39.md"]
        assert len(searches) == 2
        monkeypatch.setattr("search_api.paging._MORE_ROWS", 3)
        assert await listed(service, "hub.md", "backlinks", 1) == found
        first = await service.get(ME, f"/v1/documents/{id_of(service, 'hub.md')}/backlinks?page_size=1")
        assert (first.json()["links"], first.json()["next_cursor"] is None) == ([], False)


async def test_content_of_a_changed_or_missing_file_is_out_of_step(stack: Stack, tmp_path: Path) -> None:
    root = vault(tmp_path / "vault", {"a.md": "# A\n", "b.md": "# B\n"})
    async with running_service(stack.opensearch_url, tmp_path, vaults=[root], principals=[ME]) as service:
        a = f"/v1/documents/{id_of(service, 'a.md')}/content"
        had = {"if-none-match": (await service.get(ME, a)).headers["etag"]}
        assert (await service.get(ME, a, **had)).status_code == 304
        (root.path / "a.md").write_text("# B\n")
        assert (await service.get(ME, a, **had)).status_code == 409
        (root.path / "b.md").unlink()
        for path in ("a.md", "b.md"):
            answer = await service.get(ME, f"/v1/documents/{id_of(service, path)}/content")
            assert (answer.status_code, answer.json()["type"]) == (
                409,
                "urn:hopline:problem:content-out-of-step",
            )
            assert answer.headers["retry-after"] == "1"
        root.path.rename(tmp_path / "moved")
        answer = await service.get(ME, f"/v1/documents/{id_of(service, 'a.md')}/content")
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:hopline:problem:vault-unavailable")
