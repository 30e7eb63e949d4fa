"""How far a reindex is, as the cluster and the brokers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate
from indexers.opensearch.generations import Generation, Generations
from indexers.opensearch.rows import Index
from streams.agents.config import AgentConfig
from streams.reindex.group import members, second_group, waiting_records


async def status_of(config: AgentConfig, gate: Gate, tenants: Sequence[Principal]) -> dict[str, Any]:
    """`state`: none, building, swapped or closing; rows of the tenants, waiting records and workers of each side."""
    known = await gate.generations()
    groups = {} if known.old is None else {known.old.number: config.topics.group("embed")}
    if known.fed is not None:
        groups[known.fed.number] = second_group(config, known.fed.number)
    generations = [await _described(config, gate, one, groups.get(one.number), tenants) for one in known.all]
    return {"state": state_of(known), "generations": generations}


def state_of(known: Generations) -> str:
    if known.fed is None:
        return "none"
    if not known.are_two:
        return "closing"
    return "swapped" if known.fed.live else "building"


async def _described(
    config: AgentConfig, gate: Gate, one: Generation, group: str | None, tenants: Sequence[Principal]
) -> dict[str, Any]:
    view = gate.of_chunks(one.number if one.aliased == one.indices.keys() else None)
    rows = [await view.count(principal, Index.CHUNKS, {"match_all": {}}) for principal in tenants]
    return {
        "generation": one.number,
        "model_id": None if one.made_by is None else one.made_by.model_id,
        "model": None if one.made_by is None else one.made_by.model,
        "space": one.space.pair_id,
        "searched": one.live,
        "chunks": sum(rows),
        "group": group,
        "waiting_records": None if group is None else await waiting_records(config, group),
        "workers": None if group is None else await members(config, group),
    }
