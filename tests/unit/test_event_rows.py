"""Rows of the events index: what is left of a caller's key once its document is erased."""

from __future__ import annotations

from typing import Any

import msgspec

from indexers.domain.identity import AgentId, Namespace, Principal, Scope, TenantId
from indexers.event_rows import ERASED_KEY, KEY, emptied_key, events_with_text, key_id
from indexers.opensearch.calls import StoredRow

ADA = Principal(tenant_id=TenantId("acme"), agent_id=AgentId("ada"))
OWN = Namespace(tenant_id=ADA.tenant_id, agent_id=ADA.agent_id, scope=Scope.PERSONAL)


def test_an_emptied_key_says_whose_it_was_and_nothing_of_the_text() -> None:
    source: dict[str, Any] = {
        "tenant_id": "acme", "agent_id": "ada", "team_id": None, "scope": "personal", "event_id": "e-1",
        "stage": KEY, "at": "t0", "doc_id": "d-1", "path": "memories/2031/orla-mint.md", "version": 7,
        "kind": "write", "body_hash": "of a short text it can be guessed", "occurred_at": "t0",
    }  # fmt: skip
    row = StoredRow(row_id=key_id(ADA, "k"), source=source, seq_no=3, primary_term=1, version=2)
    write = emptied_key(row, ADA.tenant_id)
    assert (write.row_id, write.action, write.seq_no, write.primary_term) == (row.row_id, "replace_if", 3, 1)
    written = {name: value for name, value in msgspec.to_builtins(write.row).items() if value}
    assert written == {
        "tenant_id": "acme", "agent_id": "ada", "scope": "personal", "event_id": "e-1",
        "stage": ERASED_KEY, "at": "t0", "doc_id": "d-1", "version": 7,
    }  # fmt: skip


def test_emptied_keys_are_no_text() -> None:
    assert events_with_text(["d-1"]) == {
        "bool": {
            "filter": [{"terms": {"doc_id": ["d-1"]}}],
            "must_not": [{"term": {"stage": ERASED_KEY}}],
        }
    }
