"""Unlinked mentions: equal to a plain matcher's in two orders of arrival, and what they cost as names grow.

    python -m bench.unlinked --vault FOLDER_OR_TAR | --corpus JSONL_GZ | --names 1000,10000,50000 … [--engines …]

`--vault` and `--corpus` (lines of id, title, text) go through the ingest agent twice, in order and shuffled; the edges
must be those of tests/mentions.py, which tries every length at every position. `--names` fills an index with so many
titled documents and measures the agent's batches on top of them, with the mentions' part by itself. Writes
bench/out/unlinked.json; ends with 1 where edges differ, or where 50 times the names cost over 1.5 times as much.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import random
import statistics
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.engines import Addresses, add_arguments, engines
from bench.notes import note as bench_note
from bench.report import Report
from indexers.domain.hashing import content_hash
from indexers.domain.identity import Principal
from indexers.domain.title_names import name_keys, names_of
from indexers.embedders.factory import identify_model, load_token_counter
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import DocumentRow, Index
from indexers.planning import FileContent, IndexVersions, Seen, plan_document
from indexers.settings import EmbedderSettings, IndexingSettings
from streams.agents.ingest import write as ingest_write
from streams.batch import Record
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.conftest import Stack
from tests.mentions import Doc, Mention, mentions

BATCH = 64
#: What 50 times the names may cost.
FLAT = 1.5
MEASURED_BATCHES = 8
FILLED_AT_ONCE = 2_000
MARKDOWN = "*.md"


@contextlib.asynccontextmanager
async def rig_on(addresses: Addresses, folder: Path) -> AsyncIterator[Rig]:
    stack = Stack(kafka_servers=addresses.kafka_servers, opensearch_url=addresses.opensearch_url)
    config = agent_config(stack, f"b{os.urandom(5).hex()}", [vault_root(folder)])
    async with opened_rig(config) as rig:
        yield rig


def corpus_notes(source: Path, limit: int) -> Iterator[tuple[str, str]]:
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number == limit:
                return
            row = json.loads(line)
            title = json.dumps(row["title"], ensure_ascii=False)
            yield f"{row['id']}.md", f"---\ntitle: {title}\n---\n\n{row['text']}\n"


def vault_notes(source: Path, folder: Path, limit: int) -> Iterator[tuple[str, str]]:
    if source.is_file():
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        source = folder
    for file in sorted(source.rglob(MARKDOWN))[:limit]:
        path = file.relative_to(source)
        if not any(part.startswith(".") for part in path.parts):
            yield path.as_posix(), file.read_text(encoding="utf-8", errors="replace")


async def feed(rig: Rig, records: Sequence[Record]) -> list[float]:
    """Seconds a document, batch by batch."""
    seconds: list[float] = []
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        began = time.perf_counter()
        await rig.feed(*batch)
        seconds.append((time.perf_counter() - began) / len(batch))
    return seconds


async def stored(rig: Rig) -> set[Mention]:
    paths = {row["doc_id"]: row["path"] for row in (await rig.rows(Index.DOCUMENTS)).values()}
    return {
        (
            row["from_path"],
            row["target_key"],
            paths[row["to_doc_id"]],
            row["ambiguous"],
            tuple((place["start"], place["end"]) for place in row["occurrences"]),
        )
        for row in (await rig.rows(Index.LINKS)).values()
        if row["link_type"] == "unlinked_mention" and row["to_doc_id"] is not None
    }


async def compare(addresses: Addresses, notes: Sequence[tuple[str, str]]) -> dict[str, Any]:
    figures: dict[str, Any] = {"documents": len(notes)}
    with tempfile.TemporaryDirectory() as folder:
        root = vault_root(Path(folder))
        docs = [Doc.of(root.namespace, path, text) for path, text in notes]
        began = time.perf_counter()
        due = mentions(docs, cap=IndexingSettings().name_in_degree_max)
        figures["edges"] = len(due)
        figures["plain_matcher_seconds"] = round(time.perf_counter() - began, 1)
        for order in ("as_listed", "shuffled"):
            shuffled = list(notes)
            if order == "shuffled":
                random.Random(1).shuffle(shuffled)  # noqa: S311 - reproducible order, no secret
            async with rig_on(addresses, Path(folder)) as rig:
                began = time.perf_counter()
                await feed(rig, [rig.saved(path, text) for path, text in shuffled])
                seconds = time.perf_counter() - began
                found = await stored(rig)
            figures[order] = {
                "equal": found == due,
                "missing": len(due - found),
                "extra": len(found - due),
                "milliseconds_a_document": round(1_000 * seconds / len(notes), 2),
            }
    return figures


async def fill(rig: Rig, first: int, last: int) -> None:
    """Titled documents as the agent would write them: one is planned, the others differ in their names alone."""
    settings = IndexingSettings()
    counter = load_token_counter(EmbedderSettings())
    versions = IndexVersions.of(counter, identify_model(EmbedderSettings()).model_id, settings)
    raw = b"# One\n\nOwner of the dock.\n"
    model = plan_document(
        Seen(document=rig.home.document("names/0.md"), vault_path="names/0.md", version=1, event_id="bench"),
        FileContent(head=raw, size=len(raw), content_hash=content_hash(raw)),
        counter=counter,
        settings=settings,
        versions=versions,
        indexed_at="2026-11-30T00:00:00.000+00:00",
    ).row
    for start in range(first, last, FILLED_AT_ONCE):
        writes = [named(rig, model, number) for number in range(start, min(start + FILLED_AT_ONCE, last))]
        await rig.gate.write(writes)
    await rig.gate.refresh()


def named(rig: Rig, model: DocumentRow, number: int) -> RowWrite:
    key = rig.home.document(f"names/{number}.md")
    names = names_of(title(number), [])
    return RowWrite(
        principal=Principal.pipeline(rig.home.tenant_id),
        index=Index.DOCUMENTS,
        row_id=key.doc_id,
        action="index",
        row=msgspec.structs.replace(
            model,
            doc_id=key.doc_id,
            path=key.path,
            path_key=key.path,
            name_key=str(number),
            title=title(number),
            name_keys=list(name_keys(names)),
            name_text=f"{names[0]} / owner of the dock",
        ),
        version=1,
    )


def title(number: int) -> str:
    """Every fourth of more than three tokens, all with a beginning that many share."""
    return f"The ledger of berth {number:05d}" if number % 4 == 0 else f"Berth {number:05d} ledger"


async def cost(addresses: Addresses, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Of the same texts on top of more and more names; each says three names and is called by one of its own."""
    rows: list[dict[str, Any]] = []
    spent = [0.0]
    plain = vars(ingest_write)["settle_mentions"]

    async def timed(*args: Any, **options: Any) -> None:
        began = time.perf_counter()
        await plain(*args, **options)
        spent[0] += time.perf_counter() - began

    vars(ingest_write)["settle_mentions"] = timed
    try:
        with tempfile.TemporaryDirectory() as folder:
            async with rig_on(addresses, Path(folder)) as rig:
                filled = 0
                for size in sizes:
                    await fill(rig, filled, size)
                    filled = size
                    rnd = random.Random(7)  # noqa: S311 - reproducible text, no secret
                    records = [
                        rig.saved(f"texts/{size}/{n}.md", text(n, size, rnd))
                        for n in range(BATCH * MEASURED_BATCHES)
                    ]
                    await feed(rig, records[:BATCH])
                    spent[0] = 0.0
                    seconds = await feed(rig, records[BATCH:])
                    rows.append(
                        {
                            "names": size,
                            "milliseconds_a_document": round(1_000 * statistics.median(seconds), 2),
                            "of_them_mentions": round(1_000 * spent[0] / len(records[BATCH:]), 2),
                        }
                    )
                    print(json.dumps(rows[-1]), flush=True)
    finally:
        vars(ingest_write)["settle_mentions"] = plain
    return rows


def text(number: int, size: int, rnd: random.Random) -> str:
    said = ", ".join(title(rnd.randrange(min(size, 1_000))) for _ in range(3))
    return f"{bench_note(number, 10_000)}\nSee {said}.\n"


async def measure(addresses: Addresses, options: argparse.Namespace) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for source in options.vault:
            notes = list(vault_notes(source, Path(folder) / source.name, options.limit))
            figures[source.name] = await compare(addresses, notes)
    for source in options.corpus:
        figures[source.parent.name] = await compare(addresses, list(corpus_notes(source, options.limit)))
    rows = await cost(addresses, options.names) if options.names else []
    figures |= {f"names_{row['names']}": row for row in rows}
    equal = [f[order]["equal"] for f in figures.values() for order in ("as_listed", "shuffled") if order in f]
    flat = not rows or rows[-1]["of_them_mentions"] <= FLAT * rows[0]["of_them_mentions"]
    return figures | {"holds": all(equal) and flat}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vault", type=Path, action="append", default=[])
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    parser.add_argument("--names", type=lambda sizes: [int(n) for n in sizes.split(",")], default=[])
    parser.add_argument("--limit", type=int, default=1_000_000, help="documents of each source")
    add_arguments(parser)
    options = parser.parse_args()
    if not (options.vault or options.corpus or options.names):
        parser.error("name what to measure: --vault, --corpus or --names")
    with engines(options) as addresses:
        report = Report(name="unlinked", figures=asyncio.run(measure(addresses, options)))
    report.finish()


if __name__ == "__main__":
    main()
