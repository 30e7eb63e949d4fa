"""What a model is told when a call fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_api.mcp.answers import found_document
from search_api.mcp.rest import document_path
from search_api.mcp.telling import told_problem


def problem(status: int, detail: str, **more: Any) -> bytes:
    body = {"type": "t", "title": "T", "status": status, "detail": detail, "request_id": "r-1"} | more
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("status", "body", "retry_after", "says"),
    [
        (
            422,
            problem(422, "refused", errors=[{"field": "body.filters.tags.0", "message": "too long"}]),
            None,
            "tags.0: too long. Correct this and call again. (request r-1)",
        ),
        (
            422,
            problem(422, "refused", errors=[{"field": "query.page_size", "message": "too many"}] * 2),
            None,
            "limit: too many; limit: too many. Correct this and call again. (request r-1)",
        ),
        (
            429,
            problem(429, "The tenant's limit is 5 writes a second."),
            "7",
            "The tenant's limit is 5 writes a second. Nothing was done. Wait 7 s, then call again. (request r-1)",
        ),
        (
            503,
            problem(503, "The search store is away."),
            "2",
            "The search store is away. Nothing is wrong with the arguments. Wait 2 s, then call again. (request r-1)",
        ),
        (500, problem(500, "A fault."), None, "A fault. Tell the person. (request r-1)"),
        (502, b"<html>", "3", "The service answered with status 502 and no explanation. Tell the person."),
    ],
)
def test_what_is_wrong_and_what_to_do(status: int, body: bytes, retry_after: str | None, says: str) -> None:
    assert told_problem(status, body, retry_after) == says


@given(st.text())
def test_no_id_leaves_its_place_in_the_path(doc_id: str) -> None:
    path = document_path(doc_id, "/content")
    assert path.startswith("/v1/documents/")
    assert path.endswith("/content")
    assert path.count("/") == 4
    assert path.isascii()
    assert "/../" not in path
    assert not {"?", "#", " "} & set(path)


def test_a_hit_says_in_one_line_why_it_is_one() -> None:
    hit = {
        **dict.fromkeys(("doc_id", "title", "path", "doc_type", "scope"), "x"),
        "updated_at": None,
        "score": 0.123456,
        "excerpt": None,
        "reasons": [
            {"part": "keyword", "matched_terms": ["ferry"]},
            {"part": "vector"},
            {"part": "vector"},
            {
                "part": "walk",
                "path": [{"from": {"title": "A"}, "kind": "wikilink", "to": {"title": "B"}}],
            },
            {"part": "pagerank", "path": []},
        ],
    }
    found = found_document(hit)
    assert (found.why, found.score) == ("words: ferry; near in meaning; A –wikilink– B", 0.1235)
