"""What it costs to say which entity a mention names: 100,000 names in one label, new names, nothing cached.

    python -m bench.resolve [--names 100000] [--kinds people companies services mixed]
                            [--kafka HOST:PORT --opensearch URL]

A batch is one of the link agent's: 100 documents with four mentions each, of distinct names that the label doesn't
hold yet, every tenth a misspelling of one that it holds. Timed is all that link does with it, from the records to
the last write, and next to it one look-up of as many names alone. Figures are milliseconds per mention.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.engines import Addresses, add_arguments, engines
from bench.entity_names import distinct_names
from bench.report import Report
from indexers.domain.entities.curation import Curation
from indexers.domain.entities.names import name_key
from indexers.domain.identity import DocumentId, Principal, mention_id
from indexers.linking.entity_rows import CountedName, LabelRows
from indexers.linking.similar_names import similar_names
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import Index, MentionRow, OwnedRow, owner_fields
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
    """Rows as link leaves them for names that are like no other, each in a document of its own."""
    rows = LabelRows(namespace=rig.owner, label=label, curation=Curation())
    principal = Principal.pipeline(rig.home.tenant_id)
    for start in range(0, len(keys), 2_500):
        writes: list[RowWrite] = []
        for at, key in enumerate(keys[start : start + 2_500], start):
            name_id = rows.name_id(key)
            name = CountedName(key=key, mentions=1, spelling=key, likeness_id=name_id, entity_id=name_id)
            edge = mention_row(rig, label, key, f"held/{at}.md")
            made: list[tuple[Index, str, OwnedRow]] = [
                (Index.ENTITIES, name_id, rows.entity_row(name, [key], None)),
                (Index.MENTIONS, mention_id(DocumentId(edge.doc_id), name_id), edge),
            ]
            writes += [
                RowWrite(principal=principal, index=index, row_id=row_id, action="create", row=row)
                for index, row_id, row in made
            ]
        await rig.gate.write(writes)
    await rig.gate.refresh(Index.ENTITIES, Index.MENTIONS)


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


async def measure(rig: LinkRig, kind: str, count: int) -> dict[str, Any]:
    label = LABELS[kind]
    held, batches, others = new_names(kind, count)
    await fill(rig, held, label)
    linked: list[float] = []
    looked_up: list[float] = []
    for at, (batch, other) in enumerate(zip(batches, others, strict=True)):
        records = []
        for n in range(DOCUMENTS):
            names = batch[n * MENTIONS : (n + 1) * MENTIONS]
            records += await rig.said(f"notes/{at}-{n}.md", {label: names})
        started = time.perf_counter()
        await rig.feed(records)
        linked.append((time.perf_counter() - started) * 1e3 / BATCH)
        started = time.perf_counter()
        await similar_names(rig.gate, rig.owner, label, [name_key(name, label) for name in other])
        looked_up.append((time.perf_counter() - started) * 1e3 / BATCH)
    rows = await rig.rows(Index.ENTITIES)
    return {
        "names": len(held),
        "mentions": BATCHES * BATCH,
        "ms": round(statistics.median(linked[WARM_UP:]), 2),
        "look_up_alone_ms": round(statistics.median(looked_up[WARM_UP:]), 2),
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
    holds = all(found["ms"] <= TARGET_MS for found in figures.values())
    Report(name="resolve", figures={"target_ms": TARGET_MS, "holds": holds, **figures}).finish()


if __name__ == "__main__":
    main()
