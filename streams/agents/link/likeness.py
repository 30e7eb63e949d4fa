"""TEMPORARY: every name of the label by the reference; to be replaced by the incremental form."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from indexers.domain.entities.clusters import place
from indexers.domain.entities.names import order
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index
from streams.agents.link.closing import in_label
from streams.agents.link.work import LabelWork, stored_name


async def relike(gate: Gate, works: Sequence[tuple[LabelWork, set[str]]]) -> None:
    for work, triggers in works:
        if not triggers:
            continue
        rows = {}
        async with aclosing(
            gate.scan(work.principal, Index.ENTITIES, in_label(work, {"match_all": {}}))
        ) as scan:
            async for row in scan:
                one = stored_name(row)
                rows[one.row.key] = one
        keys = {k for k in {*rows, *work.asked} if (k in work.counts if k in work.asked else k in rows)}
        canonical: list[str] = []
        for key in sorted(keys, key=order):
            joined, proposals = place(key, canonical, work.place.label, work.curation.apart)
            work.likeness[key] = joined
            if joined == key:
                work.proposals[key] = tuple(proposals)
            if key in rows:
                work.learn([rows[key]])
            if joined == key:
                canonical.append(key)
