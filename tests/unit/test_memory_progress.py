"""What stage rows say together, and that equal requests make equal events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from indexers.domain.identity import AgentId, Namespace, Principal, Scope, TenantId
from indexers.event_rows import Followed, stage_row
from search_api.memories.bodies import MemoryBody, MemoryUpdate, body_hash
from search_api.memories.following import progress_of
from search_api.memories.plans import Identity, plan_write
from search_api.problems import ProblemError
from streams.topics import Topics

EVENT = "0192f0c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f"
HOME = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)
ADA = Principal(tenant_id=HOME.tenant_id, agent_id=HOME.agent_id)


def rows(*stages: str) -> dict[str, dict[str, Any]]:
    """`accepted` and these; each a second after the one before."""
    found: dict[str, dict[str, Any]] = {
        EVENT: {"at": "t0", "doc_id": "d", "path": "m.md", "kind": "write", "version": 7}
    }
    for second, stage in enumerate(stages, start=1):
        found[f"{EVENT}/{stage}"] = {"at": f"t{second}", "reason": "file_too_large"}
    return found


@pytest.mark.parametrize(
    ("stages", "linked", "state", "told"),
    [
        pytest.param([], [], "accepted", ["accepted"], id="accepted"),
        pytest.param(["ingested"], [], "ingested", ["accepted", "ingested"], id="ingested"),
        pytest.param(["embedded"], [], "searchable", ["accepted", "embedded"], id="told before ingest could"),
        pytest.param(
            ["ingested", "extracted"], [], "ingested", ["accepted", "ingested", "extracted", "linked"],
            id="no vectors yet"),
        pytest.param(
            ["ingested", "embedded", "extracted", "linked/person"], ["person", "service"], "extracted",
            ["accepted", "ingested", "embedded", "extracted"], id="one label is missing",
        ),
        pytest.param(
            ["ingested", "embedded", "extracted", "linked/person"], ["person"], "linked",
            ["accepted", "ingested", "embedded", "extracted", "linked"], id="linked",
        ),
        pytest.param(["overtaken"], [], "overtaken", ["accepted"], id="overtaken"),
        pytest.param(["ingested", "overtaken"], [], "overtaken", ["accepted", "ingested"], id="overtaken on its way"),
        pytest.param(
            ["ingested", "embedded", "overtaken"], [], "searchable", ["accepted", "ingested", "embedded"],
            id="delivered again",
        ),
        pytest.param(["ingested", "failed/embed"], [], "failed", ["accepted", "ingested"], id="failed"),
        pytest.param(["failed/ingest", "ingested"], [], "ingested", ["accepted", "ingested"], id="replayed"),
    ],
)  # fmt: skip
def test_what_stage_rows_say(stages: list[str], linked: list[str], state: str, told: list[str]) -> None:
    answer = progress_of(EVENT, rows(*stages), [f"{EVENT}/linked/{label}" for label in linked])
    assert (answer.state, [one.stage for one in answer.stages]) == (state, told)
    assert (answer.failure is not None) == (state == "failed")


def test_a_stage_says_nothing_of_the_title() -> None:
    followed = Followed(event_id=EVENT, document=HOME.document("memories/2031/orla-mint.md"), version=7)
    assert b"orla" not in msgspec.json.encode(stage_row(followed, "linked", "t1", part="person"))


def test_equal_requests_make_equal_records() -> None:
    relation = {
        "subject": "Payments", "subject_label": "team", "type": "owns",
        "object": "Ledger", "object_label": "service", "quote": "Payments owns Ledger",
    }  # fmt: skip
    raw = {
        "content": "Payments  owns\nLedger",
        "title": "결제 🧭",
        "valid_from": "2031-04-05",
        "relations": [relation],
    }
    identity = Identity(event_id=EVENT, version=1_000_000, occurred_at="2031-04-04T00:00:00+00:00")
    old = HOME.document("old.md")
    plans = [
        plan_write(identity, HOME, MemoryBody.model_validate(raw), superseded=old, key="k", by="ada")
        for _ in range(2)
    ]
    first, second = (plan.records(Topics("t")) for plan in plans)
    assert first == second
    assert [(e.version, type(e).__name__) for e in (plans[0].event, *plans[0].further)] == [
        (1_000_000, "MemoryWrite"),
        (1_000_001, "RelationWritten"),
        (1_000_002, "MemoryChanged"),
    ]
    assert [record.key for record in first] == [plans[0].event.document.record_key] * 2 + [old.record_key]
    assert len({write.row_id for write in plans[0].rows(ADA)}) == 3


def test_a_key_stands_for_what_was_asked() -> None:
    one = MemoryBody.model_validate({"content": "a", "idempotency_key": "k"})
    named = [
        MemoryUpdate.model_validate({"content": "a"}),
        MemoryUpdate.model_validate({"content": "a", "title": None}),
    ]
    assert body_hash("write", one) == body_hash("write", MemoryBody.model_validate({"content": "a"}))
    assert body_hash("write", one) != body_hash("write", MemoryBody.model_validate({"content": "b"}))
    assert len({body_hash("update x", body) for body in named} | {body_hash("update y", named[0])}) == 3


def test_a_quote_that_the_content_does_not_say_is_named() -> None:
    relation = {
        "subject": "Payments", "subject_label": "team", "type": "owns",
        "object": "Ledger", "object_label": "service", "quote": "Ledger owns",
    }  # fmt: skip
    body = MemoryBody.model_validate({"content": "Payments owns Ledger", "relations": [relation]})
    identity = Identity(event_id=EVENT, version=1, occurred_at="2031-04-04T00:00:00+00:00")
    with pytest.raises(ProblemError) as caught:
        plan_write(identity, HOME, body, superseded=None, key=None, by="ada", field="body.memories.3")
    assert [one.field for one in caught.value.problem.errors] == ["body.memories.3.relations.0.quote"]
