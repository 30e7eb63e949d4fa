"""The audit log while the store is away: nobody waits, nothing grows without end, and what is lost is counted."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from hopline.local.ports import free_ports
from indexers.domain.identity import AgentId, Principal, TenantId
from indexers.errors import Transient
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import OpenSearchSettings
from search_api.identity.audit import Actor, Audit, opened_audit
from search_api.metrics import ApiMetrics

ACTOR = Actor(
    principal=Principal(tenant_id=TenantId("acme"), agent_id=AgentId("ada")), key_id=None, request_id="r"
)


async def test_without_a_store_the_queue_is_bounded_and_drops_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("search_api.identity.audit.QUEUE_MAX", 5)
    metrics = ApiMetrics(CollectorRegistry())
    url = f"http://127.0.0.1:{free_ports()}"
    gate = gate_at(url, OpenSearchSettings(), prefix="away", retry=RetryPolicy.once())
    async with opened_audit(gate, metrics) as audit:
        for number in range(8):
            audit.record(ACTOR, "key.create", target=str(number))
        with pytest.raises(Transient):
            await audit.drain()
    dropped = metrics.registry.get_sample_value("hopline_audit_entries_total", {"outcome": "dropped"})
    await gate.close()
    assert dropped == 3.0


async def test_an_affair_of_two_tenants_stands_in_both_logs() -> None:
    gate = gate_at("http://127.0.0.1:9", OpenSearchSettings(), prefix="away", retry=RetryPolicy.once())
    audit = Audit(gate, ApiMetrics(CollectorRegistry()))
    audit.record(ACTOR, "tenant.change", target="zeta", tenant="zeta", detail={"state": "suspended"})
    audit.record(ACTOR, "key.create", target="k", tenant="acme")
    assert [(entry.tenant, entry.action, entry.target) for entry in audit.waiting] == [
        ("acme", "tenant.change", "zeta"),
        ("zeta", "tenant.change", "zeta"),
        ("acme", "key.create", "k"),
    ]
    await gate.close()
