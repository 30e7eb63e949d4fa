"""What curators said of names that an erased document alone mentioned: it goes with them, from rows and journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexers.domain.identity import EntityNamespace, Principal
from indexers.linking.curations import read_curations
from indexers.opensearch.gate import Gate, RowRef, RowWrite
from indexers.opensearch.rows import Index
from streams.agents.link.decode import Place, Word
from streams.agents.link.edges import Edges


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedCommands:
    """Curators' commands of one namespace that name somebody whom nothing mentions any more; id → version."""

    namespace: EntityNamespace
    versions: dict[str, int]


async def erased_commands(gate: Gate, words: Sequence[Word], edges: Edges) -> list[ErasedCommands]:
    """Asked after the names were settled and before the edges go: a repeated batch finds the same."""
    places = {word.place for word in words if word.event.erased}
    found: dict[EntityNamespace, dict[str, int]] = {}
    for place in sorted(places, key=lambda place: (place.namespace.owner, place.label)):
        gone = await _gone(gate, place, edges.affected.get(place, set()))
        if gone:
            labelled = (place.namespace, place.label)
            for op in (await read_curations(gate, [labelled]))[labelled]:
                if gone.intersection(op.keys):
                    found.setdefault(place.namespace, {})[op.event_id] = op.version
    return [ErasedCommands(namespace=namespace, versions=versions) for namespace, versions in found.items()]


async def remove_commands(gate: Gate, erased: Sequence[ErasedCommands]) -> None:
    removals = [
        RowWrite(
            principal=Principal.pipeline(one.namespace.tenant_id),
            index=Index.CURATION,
            row_id=event_id,
            action="delete",
            version=version,
        )
        for one in erased
        for event_id, version in one.versions.items()
    ]
    if removals:
        await gate.write(removals)


async def _gone(gate: Gate, place: Place, keys: set[str]) -> set[str]:
    """Names without a row: no document mentions them."""
    wanted = sorted(keys)
    principal = Principal.pipeline(place.tenant_id)
    refs = [RowRef(principal=principal, row_id=place.namespace.name_id(place.label, key)) for key in wanted]
    rows = await gate.get_many(Index.ENTITIES, refs, fields=("key",)) if refs else []
    return {key for key, row in zip(wanted, rows, strict=True) if row is None}
