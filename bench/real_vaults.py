"""Real vaults through the whole pipeline: indexed by the product's own processes, then `hopline verify`.

    python -m bench.real_vaults --kafka HOST:PORT --opensearch URL FOLDER_OR_TAR [FOLDER_OR_TAR …]

Prints for each vault: notes, seconds, notes/s, the findings of verify, and the backlinks of the five most linked
pages beside those that a plain search for `[[name` and `](name` in the files gives, for reading by eye. Writes
bench/out/real_vaults.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tarfile
import tempfile
import time
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from streams.rebuild import AGENTS
from tests.pipeline import Pipeline, running, write_keys

LINK = re.compile(r"\[\[([^\]|#\\]+)|\]\(<?([^)\s>#]+)")


def unpacked(source: Path, folder: Path) -> Path:
    if source.is_dir():
        return source
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    return folder


def plain_mentions(vault: Path) -> dict[str, set[str]]:
    """Name (case-folded file stem) → paths whose text links to it, by a crude pattern: an independent witness."""
    found: dict[str, set[str]] = {}
    for file in vault.rglob("*.md"):
        if any(part.startswith(".") for part in file.relative_to(vault).parts):
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        for wiki, markdown in LINK.findall(text):
            name = unquote(wiki or markdown).strip().rsplit("/", 1)[-1].removesuffix(".md")
            found.setdefault(key(name), set()).add(unicodedata.normalize("NFC", str(file.relative_to(vault))))
    return found


def key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def report(pipeline: Pipeline, vault: Path, seconds: float) -> dict[str, Any]:
    verify = pipeline.cli("verify", "--json", seconds=600)
    witness = plain_mentions(vault)
    notes = sorted(
        p for p in vault.rglob("*.md") if not any(x.startswith(".") for x in p.relative_to(vault).parts)
    )
    names = Counter({name: len(paths) for name, paths in witness.items()})
    by_stem = {key(p.stem): p for p in notes}
    pages: list[dict[str, Any]] = []
    for name, _ in names.most_common(60):
        if name in by_stem and len(pages) < 5:
            pages.append(backlinks_beside_witness(pipeline, vault, by_stem[name], witness[name]))
    return {
        "notes": len(notes),
        "seconds": round(seconds, 1),
        "notes_per_second": round(len(notes) / seconds, 1),
        "verify_exit": verify.returncode,
        "verify": json.loads(verify.stdout or "{}"),
        "pages": pages,
    }


def backlinks_beside_witness(
    pipeline: Pipeline, vault: Path, page: Path, witness: set[str]
) -> dict[str, Any]:
    path = unicodedata.normalize("NFC", str(page.relative_to(vault)))
    answer = json.loads(pipeline.cli("backlinks", path, "--json").stdout)
    ours = {link["from"]["path"] for link in answer["links"]}
    return {
        "page": path,
        "backlinks": len(ours),
        "only_ours": sorted(ours - witness)[:10],
        "only_witness": sorted(witness - ours - {path})[:10],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--opensearch", required=True)
    parser.add_argument("vaults", nargs="+", type=Path)
    options = parser.parse_args()
    results = {}
    for source in options.vaults:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "vault"
            root.mkdir()
            vault = unpacked(source, root)
            write_keys(Path(folder))
            pipeline = Pipeline(
                prefix=f"b{os.urandom(5).hex()}",
                kafka_servers=options.kafka,
                opensearch_url=options.opensearch,
                data_dir=Path(folder),
                vaults=[{"name": "bench", "path": str(vault)}],
            )
            start = time.monotonic()
            with running(pipeline, *AGENTS, "watch", "api"):
                pipeline.wait_idle(1_200)
                results[source.name] = report(pipeline, vault, time.monotonic() - start)
                pipeline.stop()
        print(source.name, json.dumps(results[source.name], indent=2, ensure_ascii=False), flush=True)
    out = Path("bench/out")
    out.mkdir(parents=True, exist_ok=True)
    (out / "real_vaults.json").write_text(json.dumps(results, indent=2, ensure_ascii=False))
    if any(result["verify_exit"] for result in results.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
