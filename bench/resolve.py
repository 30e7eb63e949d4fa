"""What it costs to say which entity a mention names: 100,000 names in one label, new names, nothing cached.

    python -m bench.resolve [--names 100000] [--kinds people companies services mixed]
                            [--kafka HOST:PORT --opensearch URL]

A batch is one of the link agent's: 100 documents with four mentions each, of distinct names that the label doesn't
hold yet, every tenth a misspelling of one that it holds. `resolve_ms` is what saying it costs, by the function that
link calls for it: look-ups in the store, comparisons, clustering, up to the placement of each name (target: at most 2).
`link_ms` is all that link does with such a batch, edges, counts, rows and proposals written and made findable; it asks
twice. Medians over batches, milliseconds per mention; nothing is cached.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from bench.engines import Addresses, add_arguments, engines
from bench.entity_names import distinct_names
from bench.report import Report
from indexers.domain.entities.clusters import Clusters, Placement, Proposal, place, proposals_of
from indexers.domain.entities.curation import Curation
from indexers.domain.entities.names import PROPOSES_FROM, name_key, order, shape_of
from indexers.domain.identity import DocumentId, NameId, Principal, mention_id
from indexers.linking.counts import NameCount
from indexers.linking.entity_rows import CountedName, LabelRows
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import Index, MentionRow, OwnedRow, owner_fields
from streams.agents.link.decode import Place
from streams.agents.link.likeness import recluster
from streams.agents.link.work import LabelWork
from tests.agents import agent_config, vault_root
from tests.conftest import Stack
from tests.linking import LinkRig, entity_indices, opened_link_rig, own_tenant

LABELS = {"people": "person", "companies": "organization", "services": "service", "mixed": "concept"}
TARGET_MS = 2.0
DOCUMENTS, MENTIONS = 100, 4
BATCH = DOCUMENTS * MENTIONS
BATCHES = 8
#: The node compiles its code in these.
WARM_UP = 2


async def fill(rig: LinkRig, keys: Sequence[str], label: str) -> None:
    """Rows as link would leave them, each name in a document of its own."""
    rows = LabelRows(namespace=rig.owner, label=label, curation=Curation())
    clusters = clustered(keys, label)
    members = Counter(placement.entity_key for placement in clusters.placements.values())
    made: list[tuple[Index, str, OwnedRow]] = []
    for at, (key, placement) in enumerate(clusters.placements.items()):
        name = CountedName(
            key=key,
            mentions=1,
            spelling=key,
            likeness_id=rows.name_id(placement.likeness_key),
            entity_id=rows.name_id(placement.entity_key),
        )
        edge = mention_row(rig, label, key, f"held/{at}.md")
        # Who has joined is told by the number of keys alone, as nothing is renamed or blocked.
        made.append((Index.ENTITIES, edge.name_id, rows.entity_row(name, [key] * members[key], members[key])))
        made.append((Index.MENTIONS, mention_id(DocumentId(edge.doc_id), NameId(edge.name_id)), edge))
    proposals = rows.proposal_rows(p for found in clusters.proposals.values() for p in found)
    made += [(Index.PROPOSALS, proposal_id, row) for proposal_id, row in proposals.items()]
    principal = Principal.pipeline(rig.home.tenant_id)
    for start in range(0, len(made), 5_000):
        writes = [
            RowWrite(principal=principal, index=index, row_id=row_id, action="create", row=row)
            for index, row_id, row in made[start : start + 5_000]
        ]
        await rig.gate.write(writes)
    await rig.gate.refresh(Index.ENTITIES, Index.MENTIONS, Index.PROPOSALS)


def clustered(keys: Sequence[str], label: str) -> Clusters:
    """As `cluster_all`, which would take an hour: pairs come from a matrix of each block. No name here has digits."""
    blocks: defaultdict[str, list[str]] = defaultdict(list)
    for key in keys:
        if (block := shape_of(key, label).block) is not None:
            blocks[block].append(key)
    near: defaultdict[str, list[str]] = defaultdict(list)
    for names in blocks.values():
        alike = cdist(names, names, scorer=Levenshtein.normalized_similarity, score_cutoff=PROPOSES_FROM)
        for at, other in zip(*alike.nonzero(), strict=True):
            near[names[at]].append(names[other])
    placements: dict[str, Placement] = {}
    proposals: dict[str, tuple[Proposal, ...]] = {}
    for key in sorted(keys, key=order):
        earlier = [other for other in near[key] if other in placements and other != key]
        canonical = [other for other in earlier if placements[other].likeness_key == other]
        root, doubts = place(key, canonical, label, ())
        placements[key] = Placement(likeness_key=root, entity_key=root)
        if found := proposals_of(key, doubts, {}):
            proposals[key] = found
    return Clusters(placements=placements, proposals=proposals)


def mention_row(rig: LinkRig, label: str, key: str, path: str) -> MentionRow:
    document = rig.home.document(path)
    return MentionRow(
        **owner_fields(rig.home),
        doc_id=document.doc_id,
        path=document.path,
        name_id=rig.owner.name_id(label, key),
        namespace=rig.owner.owner,
        label=label,
        key=key,
        surface=key,
        weight=0.9,
        start=0,
        end=len(key),
        sentence=f"{key} stands here.",
        occurrences=[],
        count=1,
        source="model",
        version=1,
    )


def misspelt(name: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(name) - 1)
    return name[:at] + name[at + 1 :]


def new_names(kind: str, count: int) -> tuple[list[str], list[list[str]], list[list[str]]]:
    """Keys that the label holds, batches of names that it doesn't, and others for the look-up alone."""
    label, rng = LABELS[kind], random.Random(4)  # noqa: S311  # the same names in each run
    rounds = BATCHES + WARM_UP
    names = distinct_names(count + 2 * rounds * BATCH + 2_000, kind)
    by_key = {name_key(name, label): name for name in names}
    held, new = list(by_key)[:count], list(by_key.values())[count:]
    for at in range(0, rounds * BATCH, 10):
        new[at] = misspelt(rng.choice(held), rng)
    batches = [new[at * BATCH : (at + 1) * BATCH] for at in range(2 * rounds)]
    return held, batches[:rounds], batches[rounds:]


def arriving(rig: LinkRig, label: str, names: Sequence[str]) -> LabelWork:
    """As link holds it once the edges of new names have been counted."""
    counts = {name_key(name, label): NameCount(mentions=1, spelling=name) for name in names}
    return LabelWork(place=Place(namespace=rig.owner, label=label), asked=set(counts), counts=counts)


async def measure(rig: LinkRig, kind: str, count: int) -> dict[str, Any]:
    label = LABELS[kind]
    held, batches, others = new_names(kind, count)
    await fill(rig, held, label)
    linked: list[float] = []
    resolved: list[float] = []
    for at, (batch, other) in enumerate(zip(batches, others, strict=True)):
        records = []
        for n in range(DOCUMENTS):
            names = batch[n * MENTIONS : (n + 1) * MENTIONS]
            records += await rig.said(f"notes/{at}-{n}.md", {label: names})
        started = time.perf_counter()
        await rig.feed(records)
        linked.append((time.perf_counter() - started) * 1e3 / BATCH)
        arrival = arriving(rig, label, other)
        started = time.perf_counter()
        await recluster(rig.gate, [arrival])
        resolved.append((time.perf_counter() - started) * 1e3 / BATCH)
        assert arrival.changes.placements
    rows = await rig.rows(Index.ENTITIES)
    return {
        "names": len(held),
        "mentions": BATCHES * BATCH,
        "resolve_ms": round(statistics.median(resolved[WARM_UP:]), 2),
        "link_ms": round(statistics.median(linked[WARM_UP:]), 2),
        "joined": sum(row["likeness_id"] != row["name_id"] for row in rows.values()),
        "proposals": len(await rig.rows(Index.PROPOSALS)),
    }


async def run(addresses: Addresses, kinds: Sequence[str], count: int, folder: Path) -> dict[str, Any]:
    stack = Stack(kafka_servers=addresses.kafka_servers, opensearch_url=addresses.opensearch_url)
    figures: dict[str, Any] = {}
    for kind in kinds:
        async with entity_indices(stack) as prefix:
            config = agent_config(stack, prefix, [vault_root(folder, tenant=own_tenant())])
            async with opened_link_rig(config) as rig:
                figures[kind] = await measure(rig, kind, count)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", type=int, default=100_000)
    parser.add_argument("--kinds", nargs="+", default=list(LABELS), choices=list(LABELS))
    add_arguments(parser)
    arguments = parser.parse_args()
    with engines(arguments) as addresses, tempfile.TemporaryDirectory(prefix="hopline-resolve-") as folder:
        figures = asyncio.run(run(addresses, arguments.kinds, arguments.names, Path(folder)))
    holds = all(found["resolve_ms"] <= TARGET_MS for found in figures.values())
    Report(name="resolve", figures={"target_ms": TARGET_MS, "holds": holds, **figures}).finish()


if __name__ == "__main__":
    main()
