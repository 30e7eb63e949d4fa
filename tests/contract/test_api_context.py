"""`POST /v1/context` over the real engine with the real model and tokenizer."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from indexers.domain.identity import Principal
from search_api.context.settings import ContextSettings
from tests.api import Service, bearer, embedder, principal, running_service, vault
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ME = principal("acme")
OTHER = principal("umbra")
RULE = "The night crane stops whenever the gauge at berth seven reads more than fourteen."
SHIP = "시험선 가람호는 부산에서 출항했다."
FAR = "\n\n".join(f"Paragraph {n} tells of ropes, paint and the weather." for n in range(40))
NOTES = {
    "crane.md": f"---\ntags: [crane]\n---\n# The night crane\n\nAn old crane.\n\n## Limits\n\n{RULE}\n",
    "copy.md": f"# Minutes\n\n{RULE}\n\nNobody objected to the gauge of the night crane.\n",
    "long.md": f"# Gauges\n\nThe gauge of the crane is read hourly.\n\n{FAR}\n\nA crane gauge fell at noon.\n",
    "trial.md": f"# 시험 기록\n\n{FAR}\n\n{unicodedata.normalize('NFD', SHIP)}\n\n{FAR}\n",
    "list.md": "# Tasks\n\n- paint the shed\n- grease the turntable of the crane\n  before frost\n- sweep\n",
    "line.md": "# Log\n\n" + "a lantern of the pilot " * 900,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("context")
    roots = [
        vault(folder / "mine", NOTES),
        vault(folder / "theirs", {"secret.md": "# The night crane\n\nA crane of umbra.\n"}, tenant="umbra"),
    ]
    settings = ContextSettings(budget_tokens_max=5_000, documents_max=20)
    async with running_service(
        stack.opensearch_url, folder, vaults=roots, principals=[ME, OTHER], context=settings
    ) as running:
        yield running


async def context(service: Service, query: str, who: Principal = ME, **more: Any) -> dict[str, Any]:
    body = {"query": query, **more}
    response = await service.http.post("/v1/context", json=body, headers=bearer(who))
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert answer["tokens"] == (embedder().count_tokens([answer["text"]])[0] if answer["text"] else 0)
    assert answer["tokens"] <= answer["budget_tokens"]
    for document in answer["documents"]:
        for excerpt in document["excerpts"]:
            assert excerpt["text"] == NOTES[document["path"]][excerpt["start"] : excerpt["end"]]
            assert excerpt["text"] in answer["text"]
    return answer


def by_path(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {document["path"]: document for document in answer["documents"]}


async def refused(service: Service, **body: Any) -> list[dict[str, str]]:
    response = await service.http.post("/v1/context", json={"query": "crane", **body}, headers=bearer(ME))
    assert response.status_code == 422, response.text
    errors: list[dict[str, str]] = response.json()["errors"]
    return errors


async def test_whole_paragraphs_with_their_headings_and_each_document_with_its_path(service: Service) -> None:
    answer = await context(service, "when does the night crane stop", parts=["keyword"])
    assert [d["number"] for d in answer["documents"]] == list(range(1, len(answer["documents"]) + 1))
    assert answer["tokenizer"] == embedder().tokenizer_id
    assert (answer["left_out"], answer["words_found"], answer["budget_tokens"]) == (0, True, 4_000)
    crane = by_path(answer)["crane.md"]
    [excerpt] = [excerpt for excerpt in crane["excerpts"] if RULE in excerpt["text"]]
    start = NOTES["crane.md"].index(RULE)
    assert excerpt == {
        "text": RULE,
        "start": start,
        "end": start + len(RULE),
        "heading_path": ["The night crane", "Limits"],
    }
    assert crane["read"] == {"method": "GET", "path": f"/v1/documents/{crane['doc_id']}/content"}
    content = await service.get(ME, crane["read"]["path"])
    assert (content.json()["text"], content.json()["content_hash"]) == (
        NOTES["crane.md"],
        crane["content_hash"],
    )
    for document in answer["documents"]:
        assert f"## {document['number']}. {document['title']} ({document['path']})" in answer["text"]
    assert "tags:" not in answer["text"]


async def test_the_order_is_the_searchs(service: Service) -> None:
    answer = await context(service, "crane gauge", documents_max=4)
    hits = (await service.search(ME, "crane gauge", page_size=4))["hits"]
    assert [(d["doc_id"], d["score"]) for d in answer["documents"]] == [
        (h["doc_id"], h["score"]) for h in hits
    ]


async def test_what_stands_in_two_documents_is_shown_once_and_the_other_says_where(service: Service) -> None:
    answer = await context(service, "the night crane and the gauge at berth seven", parts=["keyword"])
    assert answer["text"].count(RULE) == 1
    documents = by_path(answer)
    showing, naming = (
        (documents["crane.md"], documents["copy.md"])
        if any(RULE in excerpt["text"] for excerpt in documents["crane.md"]["excerpts"])
        else (documents["copy.md"], documents["crane.md"])
    )
    start = NOTES[naming["path"]].index(RULE)
    repeat = {"start": start, "end": start + len(RULE), "shown_in": showing["doc_id"]}
    assert naming["repeats"] == [repeat]
    assert showing["repeats"] == []
    assert f"(Also says what is shown under {showing['number']}.)" in answer["text"]


async def test_matches_that_lie_apart_are_excerpts_of_their_own(service: Service) -> None:
    answer = await context(service, "crane gauge", parts=["keyword"])
    excerpts = [excerpt["text"] for excerpt in by_path(answer)["long.md"]["excerpts"]]
    assert len(excerpts) == 2
    assert excerpts[0].startswith("The gauge of the crane is read hourly.")
    assert excerpts[1].endswith("A crane gauge fell at noon.")


async def test_korean_written_in_parts_is_found_and_shown_as_it_stands(service: Service) -> None:
    answer = await context(service, "가람호가 출항한 곳", parts=["keyword"], documents_max=1)
    [document] = answer["documents"]
    assert document["path"] == "trial.md"
    assert unicodedata.normalize("NFD", SHIP) in document["excerpts"][0]["text"]


async def test_a_list_item_is_shown_whole(service: Service) -> None:
    answer = await context(service, "turntable grease", parts=["keyword"], documents_max=1)
    assert "- grease the turntable of the crane\n  before frost" in answer["text"]


async def test_one_endless_line_is_shown_in_part_between_words(service: Service) -> None:
    answer = await context(service, "lantern pilot", parts=["keyword"], budget_tokens=400, documents_max=1)
    [document] = answer["documents"]
    assert document["path"] == "line.md"
    for excerpt in document["excerpts"]:
        assert 40 <= len(excerpt["text"]) < 2_000
        assert excerpt["text"].split()[0] in {"a", "lantern", "of", "the", "pilot"}
        assert excerpt["text"].split()[-1] in {"a", "lantern", "of", "the", "pilot"}


@pytest.mark.parametrize("budget", [40, 80, 150, 300, 600])
async def test_a_short_budget_names_fewer_documents_and_still_shows_the_best(
    service: Service, budget: int
) -> None:
    answer = await context(service, "crane gauge", budget_tokens=budget)
    whole = await context(service, "crane gauge", budget_tokens=5_000)
    ids = [document["doc_id"] for document in answer["documents"]]
    assert ids == [document["doc_id"] for document in whole["documents"]][: len(ids)]
    assert answer["left_out"] == len(whole["documents"]) - len(ids)
    assert (answer["left_out"] > 0) == (budget < 150)
    assert answer["documents"][0]["excerpts"]


async def test_only_so_many_documents_and_excerpts_as_asked(service: Service) -> None:
    answer = await context(service, "crane gauge", documents_max=3, l1_documents_max=1)
    first, *others = answer["documents"]
    assert len(others) == 2
    assert first["excerpts"]
    assert [(d["excerpts"], d["no_excerpt"]) for d in others] == [([], "not_among_best")] * 2
    lines = await context(service, "crane gauge", l1_documents_max=0)
    assert {d["no_excerpt"] for d in lines["documents"]} == {"not_among_best"}


async def test_limits_are_refused_by_name_and_too_small_a_budget_says_what_would_fit(
    service: Service,
) -> None:
    assert await refused(service, budget_tokens=5_001, documents_max=21, l1_documents_max=21) == [
        {"field": "body.budget_tokens", "message": "larger than 5000"},
        {"field": "body.documents_max", "message": "larger than 20"},
        {"field": "body.l1_documents_max", "message": "larger than 20"},
    ]
    [error] = await refused(service, budget_tokens=1)
    assert error["field"] == "body.budget_tokens"
    needed = int(error["message"].removesuffix(" tokens").rpartition(" ")[2])
    assert len((await context(service, "crane", budget_tokens=needed))["documents"]) == 1
    assert [e["field"] for e in await refused(service, budget_tokens=needed - 1)] == ["body.budget_tokens"]
    assert [e["field"] for e in await refused(service, budget_tokens=0)] == ["body.budget_tokens"]
    assert [e["field"] for e in await refused(service, query=" ")] == ["body.query"]


async def test_nothing_found_is_an_empty_context(service: Service) -> None:
    answer = await context(service, "zzyzx", parts=["keyword"], budget_tokens=1)
    assert (answer["text"], answer["tokens"], answer["documents"], answer["left_out"]) == ("", 0, [], 0)
    assert answer["words_found"] is False


async def test_another_tenants_documents_are_in_no_context(service: Service) -> None:
    mine = await context(service, "night crane of umbra")
    assert "secret.md" not in by_path(mine)
    body = {"query": "night crane gauge"}
    theirs = await service.http.post("/v1/context", json=body, headers=bearer(OTHER))
    assert [document["path"] for document in theirs.json()["documents"]] == ["secret.md"]


async def test_a_file_that_changed_since_has_its_line_and_the_reason(stack: Stack, tmp_path: Path) -> None:
    notes = {"one.md": "# One\n\nA buoy drifts.\n", "two.md": "# Two\n\nA buoy sinks.\n"}
    root = vault(tmp_path / "vault", notes)
    async with running_service(stack.opensearch_url, tmp_path, vaults=[root], principals=[ME]) as service:
        (root.path / "one.md").write_text("# One\n\nA buoy is gone, and this is new.\n")
        (root.path / "two.md").unlink()
        response = await service.http.post("/v1/context", json={"query": "buoy"}, headers=bearer(ME))
        answer = response.json()
        assert {d["path"]: (d["no_excerpt"], d["excerpts"]) for d in answer["documents"]} == {
            "one.md": ("changed", []),
            "two.md": ("gone", []),
        }
        assert "this is new" not in answer["text"]
        assert "One (one.md)" in answer["text"]


QUESTIONS = {
    "Until when does the bank's night desk answer the telephone?": "03:55",
    "why did the payout run fail with ORA-01555": "weekly report of [[fraud-watch]]",
    "What should I do when one partition of a consumer is stuck?": "spine park",
    "부산 물류센터는 언제 문을 열었나": "2025년 9월",
    "급할 때 부산 야간 근무자에게 어떻게 연락하나": "전화로 연락해야 한다",
}


async def test_the_answers_to_questions_about_the_example_stand_in_its_contexts(
    stack: Stack, tmp_path: Path
) -> None:
    example, folder = Path(__file__).parents[2] / "examples/vault", tmp_path / "vault"
    for name in ("memories", "한국 팀", "runbooks", "postmortems"):
        shutil.copytree(example / name, folder / name)
    root = vault(folder, {})
    async with running_service(stack.opensearch_url, tmp_path, vaults=[root], principals=[ME]) as service:
        missed = []
        for question, answer in QUESTIONS.items():
            body = {"query": question, "budget_tokens": 1_500}
            found = await service.http.post("/v1/context", json=body, headers=bearer(ME))
            if answer not in found.json()["text"]:
                missed.append(question)
        assert missed == []
        for budget in (200, 300, 600):
            body = {"query": "until when does the bank answer the telephone", "budget_tokens": budget}
            found = await service.http.post("/v1/context", json=body, headers=bearer(ME))
            assert found.json()["text"].count("night desk answers the telephone until 03:55 UTC") == 1
