"""One tenant's freshness while another writes many files: seconds from an edit to the answer of the search.

    python -m bench.neighbours [--files 50000] [--samples 60] [--warm-up 2000] [--kafka HOST:PORT --opensearch URL]

All agents run as processes. `--warm-up` files of the big tenant come before the clock starts, and are waited for: what
has just started compiles itself. Then the small tenant edits one note after another and nobody else writes; then the
big tenant gets its files, all at once, and the small one goes on editing as long as they are in flight, at most for
`--samples` edits. An edit counts when the new word is found and the old one is gone. Then all is stopped: nobody waits
for the big tenant's vectors. By vector is information: the edits that were found within the phase.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

from bench.cleaning import clean_up
from bench.engines import Addresses, add_arguments, engines
from bench.freshness import summary
from bench.report import Report
from streams.topics import Topics
from tests import corpus
from tests.pipeline import Pipeline, running, wait_for, write_keys

TARGET = 2.0
#: Fewer say nothing of the 95th part of a hundred.
LEAST_SAMPLES = 40
SMALL_NOTES = 100
EVERYONE = ("ingest", "embed", "extract", "link", "watch", "api")
#: Between two edits: about as long as an edit takes, and never in step with the agents.
PAUSE_SECONDS = (0.1, 0.6)
VECTOR_SECONDS = 5.0


@dataclass(kw_only=True)
class Phase:
    """Edits of the small tenant, each of a file that was there before."""

    pipeline: Pipeline
    vault: Path
    name: str
    count: int
    keyword: list[float] = field(default_factory=list)
    vector: list[float] = field(default_factory=list)
    load: float = 0.0
    _unseen: dict[int, float] = field(default_factory=dict)

    def prepare(self) -> None:
        for number in range(self.count):
            self._file(number).write_text(f"# Fresh\n\nold {self._word('vorrin', number)}\n")

    def run(self) -> Iterator[int]:
        """Edit after edit; the number of those that were found by keyword so far."""
        for number in range(self.count):
            time.sleep(random.uniform(*PAUSE_SECONDS))  # noqa: S311 - no secret
            start = time.monotonic()
            self._file(number).write_text(f"# Fresh\n\nnew {self._word('tarvel', number)}\n")
            wait_for(lambda n=number: self._found(n), 300, "edit found")  # type: ignore[misc]
            self.keyword.append(time.monotonic() - start)
            self._unseen[number] = start
            self._look_for_vectors()
            yield len(self.keyword)

    def finish(self) -> dict[str, Any]:
        end = time.monotonic() + VECTOR_SECONDS
        while self._unseen and time.monotonic() < end:
            self._look_for_vectors()
            time.sleep(0.1)
        vectors = summary(self.vector) if len(self.vector) > 1 else {"n": len(self.vector)}
        return {
            "keyword": summary(self.keyword),
            "vector_of_those_found": vectors,
            "vector_not_found_yet": len(self._unseen),
            "load_average": os.getloadavg()[0],
        }

    def _look_for_vectors(self) -> None:
        """Of the oldest one: what is found later counts from its edit too, at the grain of the looks."""
        for number in list(self._unseen)[:1]:
            asked = f"new {self._word('tarvel', number)}"
            if self._file(number).name in self.pipeline.paths_for(asked, parts=["vector"])[:3]:
                self.vector.append(time.monotonic() - self._unseen.pop(number))

    def _found(self, number: int) -> bool:
        if self.pipeline.paths_for(self._word("vorrin", number), parts=["keyword"]):
            return False
        return self.pipeline.finds(self._word("tarvel", number), [self._file(number).name])()

    def _file(self, number: int) -> Path:
        return self.vault / f"fresh-{self.name}-{number}.md"

    def _word(self, stem: str, number: int) -> str:
        return f"{stem}{self.name}{number:03d}q"


def write_small_notes(vault: Path, numbers: range) -> None:
    """Short, no two alike, as an import leaves them."""
    words = ("harbour", "ledger", "printer", "courier", "depot", "label", "tariff", "roster")
    for number in numbers:
        folder = vault / f"part-{number % 100:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        said = " ".join(random.Random(number).choices(words, k=12))  # noqa: S311 - reproducible text
        (folder / f"import-{number:05d}.md").write_text(
            f"# Import {number:05d}\n\n{said} IMP-{number:05d}.\n"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """The big tenant's files, on their way."""

    pipeline: Pipeline
    before: float

    @property
    def ingested(self) -> float:
        topic = Topics(self.pipeline.prefix).file_changes
        return (
            self.pipeline.metric("ingest", f'hopline_stream_records_total{{topic="{topic}"}}') - self.before
        )


@contextmanager
def bulk_written(pipeline: Pipeline, vault: Path, numbers: range) -> Iterator[Bulk]:
    """Inside, the files are being written or have been; those of the small tenant count into `ingested` too."""
    bulk = Bulk(pipeline=pipeline, before=0.0)
    bulk = Bulk(pipeline=pipeline, before=bulk.ingested)
    writing = Thread(target=write_small_notes, args=(vault, numbers))
    writing.start()
    try:
        wait_for(lambda: bulk.ingested > 0, 120, "the first of the big tenant's files ingested")
        yield bulk
    finally:
        writing.join()


def batches(log: Path, since: datetime) -> dict[str, Any]:
    """Of ingest, by its log: how many, and medians of each."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    found = [
        line
        for line in lines
        if line["event"] == "batch.committed" and datetime.fromisoformat(line["timestamp"]) > since
    ]
    keys = ("records", "prepare_seconds", "commit_seconds")
    return {"n": len(found)} | {key: statistics.median(line[key] for line in found) for key in keys}


def phases(
    pipeline: Pipeline, small: Path, big: Path, *, files: int, samples: int, warm_up: int
) -> dict[str, Any]:
    alone = Phase(pipeline=pipeline, vault=small, name="a", count=samples)
    beside = Phase(pipeline=pipeline, vault=small, name="b", count=samples)
    for phase in (alone, beside):
        phase.prepare()
    pipeline.start(*EVERYONE)
    pipeline.wait_idle(300)
    with bulk_written(pipeline, big, range(files, files + warm_up)) as warming:
        wait_for(lambda: warming.ingested >= warm_up, 1_200, "the warm-up ingested")
    pipeline.wait_idle(1_200)
    for _ in alone.run():
        pass
    first = alone.finish()
    pipeline.wait_idle(300)
    with bulk_written(pipeline, big, range(files)) as bulk:
        began, wall = time.monotonic(), datetime.now(UTC)
        for done in beside.run():
            in_flight = done
            if bulk.ingested >= files:
                break
        ingested, seconds = bulk.ingested, time.monotonic() - began
    return {
        "ingest_batches": batches(pipeline.data_dir / "ingest.log", wall),
        "alone": first,
        "beside": beside.finish(),
        "samples_in_flight": in_flight,
        "big_files_ingested": round(ingested),
        "big_files_per_second": round(ingested / seconds, 1),
    }


def measure(addresses: Addresses, chosen: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        small, big = Path(folder) / "small", Path(folder) / "big"
        big.mkdir()
        for number in range(SMALL_NOTES):
            corpus.write(small, number, SMALL_NOTES)
        write_keys(Path(folder))
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=addresses.kafka_servers,
            opensearch_url=addresses.opensearch_url,
            data_dir=Path(folder),
            vaults=[
                {"name": "small", "path": str(small)},
                {"name": "big", "path": str(big), "tenant": "big"},
            ],
            settings=dict(pair.split("=", 1) for pair in chosen.set),
        )
        try:
            with running(pipeline):
                found = phases(
                    pipeline,
                    small,
                    big,
                    files=chosen.files,
                    samples=chosen.samples,
                    warm_up=chosen.warm_up,
                )
        finally:
            asyncio.run(clean_up(pipeline))
    ratio = found["beside"]["keyword"]["p95"] / found["alone"]["keyword"]["p95"]
    enough = found["samples_in_flight"] >= min(chosen.samples, LEAST_SAMPLES)
    head = {
        "p95_ratio": round(ratio, 2),
        "target": TARGET,
        "holds": ratio <= TARGET and enough,
        "files": chosen.files,
    }
    return head | found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument(
        "--warm-up", type=int, default=2_000, help="files before the clock starts, 1 at least"
    )
    parser.add_argument("--set", action="append", default=[], metavar="HOPLINE_…=VALUE", help="a setting")
    add_arguments(parser)
    chosen = parser.parse_args(arguments)
    with engines(chosen) as addresses:
        figures = measure(addresses, chosen)
        report = Report(name="neighbours", figures=figures)
    report.finish()


if __name__ == "__main__":
    main()
