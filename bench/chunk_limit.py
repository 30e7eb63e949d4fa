"""Which chunk limit finds best by vectors alone: recall@5 on retrieval sets given by path.

A set is a folder with corpus.jsonl.gz {id,title,text}, queries*.jsonl.gz {id,text} and qrels*.tsv (query,
document, score). A document's score is that of its best chunk. Nothing of the sets is kept: only figures.

    nice -n 15 python -m bench.chunk_limit SET… [--limits 128,256,384] [--documents 1000] [--queries 150]
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import Report
from indexers.domain.chunking import chunk, embedding_text
from indexers.domain.markdown import parse
from indexers.embedders.factory import load_embedder
from indexers.ports import Embedder, Vectors
from indexers.settings import EmbedderSettings, IndexingSettings

DEPTH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalSet:
    name: str
    notes: dict[str, str]
    questions: dict[str, list[Question]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    set: str
    questions: str
    limit: int
    recall_at_5: float
    asked: int
    notes: int
    chunks: int
    embedding_seconds: float


def read_set(folder: Path, *, max_documents: int, max_queries: int) -> RetrievalSet:
    """Every relevant document of the questions asked stays in; others fill up to `max_documents`."""
    corpus = {row["id"]: f"# {row['title']}\n\n{row['text']}" for row in _rows(folder / "corpus.jsonl.gz")}
    questions = {
        file.name.removesuffix(".jsonl.gz"): _questions(folder, file, corpus.keys())[:max_queries]
        for file in sorted(folder.glob("queries*.jsonl.gz"))
    }
    wanted = {doc for asked in questions.values() for question in asked for doc in question.relevant}
    others = [doc for doc in corpus if doc not in wanted][: max(max_documents - len(wanted), 0)]
    kept = wanted.union(others)
    notes = {doc: text for doc, text in corpus.items() if doc in kept}
    return RetrievalSet(name=folder.name, notes=notes, questions=questions)


def _questions(folder: Path, file: Path, known: AbstractSet[str]) -> list[Question]:
    judged: defaultdict[str, set[str]] = defaultdict(set)
    qrels = folder / file.name.replace("queries", "qrels").replace(".jsonl.gz", ".tsv")
    for line in qrels.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, score = line.split("\t")
        if int(score) > 0 and document in known:
            judged[query].add(document)
    rows = [(row["id"], row["text"]) for row in _rows(file)]
    return [Question(text=text, relevant=frozenset(judged[key])) for key, text in rows if judged[key]]


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def measure(sample: RetrievalSet, embedder: Embedder, limit: int) -> list[Figure]:
    owners: list[int] = []
    texts: list[str] = []
    frontmatter_max_bytes = IndexingSettings().frontmatter_max_bytes
    for position, (name, text) in enumerate(sample.notes.items()):
        note = parse(text, path=f"{name}.md", frontmatter_max_bytes=frontmatter_max_bytes)
        for part in chunk(note, counter=embedder, max_tokens=limit):
            owners.append(position)
            texts.append(embedding_text(part.heading_path, note.text[part.start : part.end]))
    start = time.perf_counter()
    vectors = embedder.embed_passages(texts)
    seconds = time.perf_counter() - start
    return [
        Figure(
            set=sample.name,
            questions=name,
            limit=limit,
            recall_at_5=round(recall(asked, sample, embedder, vectors, np.array(owners)), 4),
            asked=len(asked),
            notes=len(sample.notes),
            chunks=len(texts),
            embedding_seconds=round(seconds, 1),
        )
        for name, asked in sample.questions.items()
    ]


def recall(
    asked: list[Question], sample: RetrievalSet, embedder: Embedder, vectors: Vectors, owners: Any
) -> float:
    names = list(sample.notes)
    found = 0.0
    for question in asked:
        best = np.full(len(names), -1.0, np.float32)
        np.maximum.at(best, owners, vectors @ embedder.embed_query(question.text))
        top = {names[i] for i in np.argsort(-best, kind="stable")[:DEPTH]}
        found += len(top & question.relevant) / min(len(question.relevant), DEPTH)
    return found / len(asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--limits", default="128,256,384")
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--queries", type=int, default=150)
    arguments = parser.parse_args()
    embedder = load_embedder(EmbedderSettings())
    figures: list[Figure] = []
    for folder in arguments.sets:
        sample = read_set(folder, max_documents=arguments.documents, max_queries=arguments.queries)
        for limit in map(int, arguments.limits.split(",")):
            figures.extend(measure(sample, embedder, limit))
            print(json.dumps(asdict(figures[-1])), flush=True)
    report = Report(
        name="chunk_limit", figures={"model": embedder.model_id, "rows": [asdict(f) for f in figures]}
    )
    report.save()
    report.print_rows("rows")


if __name__ == "__main__":
    main()
