"""What every new event says of itself, whatever it is about."""

from __future__ import annotations

from typing import Any

from indexers.domain.identity import Namespace
from streams.events import new_event_id, now_iso


def new_event_fields(namespace: Namespace) -> dict[str, Any]:
    """A new id, whose it is, and now. The version is drawn by who tells, often before."""
    return {
        "event_id": new_event_id(),
        "tenant_id": namespace.tenant_id,
        "agent_id": namespace.agent_id,
        "scope": namespace.scope,
        "team_id": namespace.team_id,
        "occurred_at": now_iso(),
    }
