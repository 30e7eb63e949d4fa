"""Receipts of erasures: every field counts for the signature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.vault.tree import VaultTree
from search_api.erasure.files import FileCount
from search_api.erasure.receipt import Receipt, is_complete, is_genuine, signed
from search_api.problems import ProblemError

KEY = b"k" * 32
RECEIPT = Receipt(
    erasure_id="019",
    tenant_id="acme",
    requested_by="ada",
    requested_at="2026-11-30T10:00:00+00:00",
    completed_at="2026-11-30T10:00:01+00:00",
    doc_ids=["d1", "d2"],
    removed={"documents": 2, "chunks": 3},
    remaining={"documents": 0, "chunks": 0},
    log_expires_at="2026-12-31T10:00:01+00:00",
)


def test_a_receipt_is_genuine_as_it_was_signed_and_after_a_round_trip() -> None:
    receipt = signed(RECEIPT, KEY)
    assert is_genuine(receipt, KEY)
    assert signed(receipt, KEY) == receipt
    read = msgspec.json.decode(msgspec.json.encode(receipt), type=Receipt)
    assert is_genuine(read, KEY)
    assert not is_genuine(read, b"another installation's key")
    assert not is_genuine(msgspec.structs.replace(receipt, signature=""), KEY)
    assert not is_genuine(msgspec.structs.replace(receipt, signature="é"), KEY)


@pytest.mark.parametrize(
    "change",
    [
        {"tenant_id": "bolt"},
        {"doc_ids": ["d1"]},
        {"doc_ids": ["d2", "d1"]},
        {"removed": {"documents": 2}},
        {"remaining": {"documents": 0, "chunks": 1}},
        {"log_expires_at": ""},
        {"requested_by": "eve"},
        {"completed_at": "2027-01-01"},
    ],
)
def test_a_changed_receipt_is_not_genuine(change: dict[str, Any]) -> None:
    assert not is_genuine(msgspec.structs.replace(signed(RECEIPT, KEY), **change), KEY)


def test_it_is_complete_when_nothing_remains() -> None:
    assert is_complete({"documents": 0, "files": 0})
    assert not is_complete({"documents": 0, "files": 1})


def test_what_is_not_seen_is_not_gone(tmp_path: Path) -> None:
    home = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.PERSONAL)
    tree = tmp_path / "disk" / "memories"
    folder = tree / "acme/personal/ada"
    folder.mkdir(parents=True)
    (tmp_path / "elsewhere.md").write_text("another's")
    (folder / "led-out.md").symlink_to(tmp_path / "elsewhere.md")
    count = FileCount(VaultTree((), tree))
    assert [count.of([home.document(path)]) for path in ("led-out.md", "gone.md")] == [1, 0]
    (tmp_path / "disk").rename(tmp_path / "away")
    with pytest.raises(ProblemError) as refused:
        count.of([home.document("led-out.md")])
    assert refused.value.problem.status == 503
