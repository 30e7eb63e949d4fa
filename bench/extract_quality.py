"""Micro F1 of the extractor on labelled texts: the adapter called directly, and through `extract_texts`.

    python -m bench.extract_quality [FILE ...] [--model FOLDER] [--backend torch] [--threshold 0.5]

FILE: see tests/labelled.py; without one the project's own hand-labelled sentences. A name counts with its exact place
and label. `joined`: all texts as the lines of one document. `with_rules`: the recognisers in front, which know other
labels than the file may ask for. The target: nothing is lost against the direct calls, text by text and joined.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report import Report
from indexers.domain.entities.labels import EntityLabel, NamespaceLabels
from indexers.domain.entities.spans import LabelledSpan, select_flat
from indexers.extraction import Extracted, extract_texts
from indexers.extractors.factory import load_extractor
from indexers.model_calls import TextToExtract
from indexers.ports import EntityExtractor
from indexers.settings import ExtractorSettings
from tests.labelled import AGENT_MEMORY, Labelled, Place, joined, labels_of, micro_f1, read_labelled

#: F1 points. Text by text the calls are the same; joined, short texts share a window. 94 names say no more than ± 9.
ALLOWED_LOSS = {"through": 0.5, "joined": 2.0}


def direct(extractor: EntityExtractor, text: str, labels: Sequence[str], threshold: float) -> set[Place]:
    [spans] = extractor.extract([text], labels, threshold=threshold)
    found = [LabelledSpan(start=s.start, end=s.end, label=s.label, score=s.score) for s in spans]
    return {(span.start, span.end, span.label) for span in select_flat([], found)[1]}


def places(extracted: Extracted, names: dict[str, str]) -> set[Place]:
    return {(m.start, m.end, names.get(m.label, m.label)) for m in extracted.mentions}


def measure(extractor: EntityExtractor, texts: Sequence[Labelled], threshold: float) -> dict[str, Any]:
    asked = labels_of(texts)
    names = {f"label_{number}": label for number, label in enumerate(asked)}
    labels = NamespaceLabels(
        labels=tuple(EntityLabel(name=n, prompt=p, threshold=threshold) for n, p in names.items())
    )
    whole = joined(texts, "\n")

    def through(*each: Labelled, rules: bool = False) -> float:
        jobs = [TextToExtract(text=text.text, labels=labels) for text in each]
        found = extract_texts(jobs, extractor=extractor, rules=rules)
        return micro_f1(
            (text.names, places(extracted, names)) for text, extracted in zip(each, found, strict=True)
        )

    started = time.perf_counter()
    alone = micro_f1((text.names, direct(extractor, text.text, asked, threshold)) for text in texts)
    seconds = time.perf_counter() - started
    figures = {"direct": alone, "through": through(*texts), "joined": through(whole)}
    return {
        "texts": len(texts),
        "names": sum(len(text.names) for text in texts),
        "labels": len(asked),
        **{name: round(value, 1) for name, value in figures.items()},
        "with_rules": round(through(*texts, rules=True), 1),
        "texts_per_second": round(len(texts) / seconds, 1),
        "holds": all(figures[name] >= alone - loss for name, loss in ALLOWED_LOSS.items()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, default=[AGENT_MEMORY])
    parser.add_argument("--model")
    parser.add_argument("--backend", choices=["onnx", "torch"], default="onnx")
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--limit", type=int, help="Only the first texts of each file.")
    arguments = parser.parse_args()
    extractor = load_extractor(ExtractorSettings(backend=arguments.backend, model=arguments.model))
    rows = {
        path.name: measure(extractor, read_labelled(path)[: arguments.limit], arguments.threshold)
        for path in arguments.files
    }
    figures = {"model": extractor.model_id, "threshold": arguments.threshold, **rows}
    Report(
        name="extract_quality", figures=figures | {"holds": all(row["holds"] for row in rows.values())}
    ).finish()


if __name__ == "__main__":
    main()
