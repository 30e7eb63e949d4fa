"""Which names join which, brought up to date: the pure clustering asks, this fetches, for all places at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from indexers.domain.entities.reclustering import Reclustering
from indexers.linking import similar_names
from indexers.opensearch.gate import Gate
from indexers.together import together
from streams.agents.link.work import LabelWork

#: With a few requests each, which wait for one of the client's connections within their own timeout.
LABELS_AT_ONCE: Final = 8


async def recluster(gate: Gate, works: Sequence[LabelWork]) -> None:
    """Sets the works' `changes`. Places where only counts change ask for nothing.

    The caller has refreshed names and proposals.
    """
    due = [work for work in works if work.to_judge or work.curated]
    await together(*(_recluster_one(gate, work) for work in due), at_once=LABELS_AT_ONCE)


async def _recluster_one(gate: Gate, work: LabelWork) -> None:
    namespace, label = work.place.namespace, work.place.label
    merged = await similar_names.read_names(gate, namespace, label, work.merged_keys)
    task = Reclustering(
        label,
        added={key for key in work.to_judge if work.exists(key)},
        removed={key for key in work.to_judge if not work.exists(key)},
        touched=work.curated,
        apart=work.curation.apart,
        merges=work.curation.merges,
        merge_names=merged.values(),
    )
    work.changes = await similar_names.recluster(gate, namespace, label, task)
