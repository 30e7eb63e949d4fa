"""An entity with 50,000 mentions: writing one more and expanding from it, against the same of an entity with ten.

    python -m bench.hub [--mentions 50000] [--rounds 30] [--kafka HOST:PORT --opensearch URL]

The hub's edges are written as link writes them, its name by link itself. Each round tells link of one more document
that mentions the hub, then of one that mentions a small entity, one batch each; then the strongest 20 mentions of
both are asked for, as an expansion does. Bounded means: at most a fixed factor dearer, however many edges there are,
and not one edge is read for a write.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from bench.engines import Addresses, add_arguments, engines
from bench.report import Report
from indexers.domain.identity import Principal, mention_id
from indexers.opensearch.gate import GatedSearch, RowWrite
from indexers.opensearch.rows import Index, MentionRow, owner_fields
from tests.agents import agent_config, vault_root
from tests.conftest import Stack
from tests.linking import LinkRig, entity_indices, opened_link_rig, own_tenant

LABEL = "service"
HUB, SMALL = "checkout-gateway", "harbour-ledger"
STRONGEST = 20
#: How much dearer than the small entity a write and an expansion may be. The engine counts, linearly, in milliseconds.
WRITE_FACTOR, EXPAND_FACTOR = 3.0, 3.0


async def measure(addresses: Addresses, folder: Path, *, mentions: int, rounds: int) -> dict[str, object]:
    stack = Stack(kafka_servers=addresses.kafka_servers, opensearch_url=addresses.opensearch_url)
    async with entity_indices(stack) as prefix:
        config = agent_config(stack, prefix, [vault_root(folder, tenant=own_tenant())])
        async with opened_link_rig(config) as rig:
            await fill(rig, HUB, mentions)
            await fill(rig, SMALL, 10)
            writes = {HUB: [], SMALL: []}  # type: dict[str, list[float]]
            expansions = {HUB: [], SMALL: []}  # type: dict[str, list[float]]
            for n in range(rounds + 3):
                for name in (HUB, SMALL) if n % 2 else (SMALL, HUB):
                    records = await rig.said(f"more/{name}-{n}.md", {LABEL: name})
                    took = await timed(lambda r=records: rig.feed(r))  # type: ignore[misc]
                    expanded = await timed(lambda k=name: expand(rig, k))  # type: ignore[misc]
                    if n >= 3:
                        writes[name].append(took)
                        expansions[name].append(expanded)
            counts = {name: count for name, (count, _) in (await rig.entities()).items()}
            merged = await merge_and_back(rig, rounds)
    return figures(writes, expansions, counts, mentions=mentions, rounds=rounds) | merged


async def merge_and_back(rig: LinkRig, rounds: int) -> dict[str, object]:
    """The hub with the small entity: no mention is touched, and documents of both names count once."""
    before = await rig.rows(Index.ENTITIES)
    merge = rig.command("merge", LABEL, HUB, SMALL)
    merging = await timed(lambda: rig.feed(merge))
    writes = []
    for n in range(rounds):
        records = await rig.said(f"more/{HUB}-{n}.md", {LABEL: [HUB, SMALL]})
        writes.append(await timed(lambda r=records: rig.feed(r)))  # type: ignore[misc]
        await rig.feed(await rig.said(f"more/{HUB}-{n}.md", {LABEL: HUB}))
    event_id = msgspec.json.decode(merge.value or b"")["event_id"]
    undo = rig.command("unmerge", LABEL, HUB, SMALL, undoes=event_id)
    undoing = await timed(lambda: rig.feed(undo))
    return {
        "merge_ms": round(merging * 1e3, 1),
        "write_merged_ms": round(statistics.median(writes) * 1e3, 1),
        "unmerge_ms": round(undoing * 1e3, 1),
        "same_rows_after": await rig.rows(Index.ENTITIES) == before,
    }


async def fill(rig: LinkRig, name: str, mentions: int) -> None:
    """All edges but the last straight into the index, the last one through link, which counts them all."""
    key, ns = name.replace("-", " "), rig.home
    name_id = rig.owner.name_id(LABEL, key)
    for start in range(0, mentions - 1, 2_000):
        writes: list[RowWrite] = []
        for n in range(start, min(start + 2_000, mentions - 1)):
            document = ns.document(f"notes/{name}-{n}.md")
            sentence = f"The {name} was restarted, says note {n}."
            place = {"start": 4, "end": 4 + len(name), "surface": name, "weight": n % 1_000 / 1_000}
            row = MentionRow(
                **owner_fields(ns),
                doc_id=document.doc_id,
                path=document.path,
                name_id=name_id,
                namespace=rig.owner.owner,
                label=LABEL,
                key=key,
                sentence=sentence,
                occurrences=[place | {"sentence": sentence}],
                count=1,
                source="model",
                version=1,
                **place,  # type: ignore[arg-type]
            )
            writes.append(
                RowWrite(
                    principal=Principal.pipeline(ns.tenant_id),
                    index=Index.MENTIONS,
                    row_id=mention_id(document.doc_id, name_id),
                    action="index",
                    row=row,
                    version=1,
                )
            )
        await rig.gate.write(writes)
    await rig.feed(await rig.said(f"notes/{name}-last.md", {LABEL: name}))


async def expand(rig: LinkRig, name: str) -> None:
    """The strongest mentions, whoever asks: capped in the engine."""
    name_id = rig.owner.name_id(LABEL, name.replace("-", " "))
    body = {
        "query": {"bool": {"filter": [{"term": {"name_id": name_id}}]}},
        "sort": [{"weight": "desc"}, {"doc_id": "asc"}],
        "size": STRONGEST,
        "track_total_hits": False,
    }
    [page] = await rig.gate.search_many(
        [GatedSearch(principal=rig.home.principal, index=Index.MENTIONS, body=body)]
    )
    assert 10 <= len(page.hits) <= STRONGEST


async def timed(call: Callable[[], Awaitable[None]]) -> float:
    started = time.perf_counter()
    await call()
    return time.perf_counter() - started


def figures(
    writes: dict[str, list[float]],
    expansions: dict[str, list[float]],
    counts: dict[str, int],
    *,
    mentions: int,
    rounds: int,
) -> dict[str, object]:
    write = {name: statistics.median(found) for name, found in writes.items()}
    expansion = {name: statistics.median(found) for name, found in expansions.items()}
    right = counts == {HUB: mentions + rounds + 3, SMALL: 10 + rounds + 3}
    write_factor, expand_factor = write[HUB] / write[SMALL], expansion[HUB] / expansion[SMALL]
    return {
        "mentions": mentions,
        "rounds": rounds,
        "write_ms": {"hub": round(write[HUB] * 1e3, 1), "small": round(write[SMALL] * 1e3, 1)},
        "write_factor": round(write_factor, 2),
        "expand_ms": {"hub": round(expansion[HUB] * 1e3, 1), "small": round(expansion[SMALL] * 1e3, 1)},
        "expand_factor": round(expand_factor, 2),
        "counts_right": right,
        "target": f"write ≤ {WRITE_FACTOR}, expand ≤ {EXPAND_FACTOR} times the small entity's; counts right",
        "holds": right and write_factor <= WRITE_FACTOR and expand_factor <= EXPAND_FACTOR,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mentions", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=30)
    add_arguments(parser)
    arguments = parser.parse_args()
    with engines(arguments) as addresses, tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(
            measure(addresses, Path(folder), mentions=arguments.mentions, rounds=arguments.rounds)
        )
    Report(name="hub", figures=found).finish()


if __name__ == "__main__":
    main()
