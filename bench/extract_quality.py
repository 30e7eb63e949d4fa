"""Micro F1 of the extractor on labelled texts: the adapter called directly, and through `extract_texts`.

    python -m bench.extract_quality [FILE ...] [--model FOLDER] [--backend torch] [--threshold 0.5]
                                    [--no-agent | --kafka HOST:PORT --opensearch URL]

FILE: see tests/labelled.py; without one the project's own hand-labelled sentences. A name counts with its exact place
and label. `joined`: all texts as the lines of one document. `with_rules`: the recognisers in front, which know other
labels than the file may ask for. The target: nothing is lost against the direct calls, text by text and joined.

Then each text as a note through the agents `ingest`, `extract` and `link` (broker, node, processes; `--no-agent`: not):
what they store of the names that the model gives, against direct calls. The agent always has its rules in front, so
what a rule names is left out on both sides. The target: the same F1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.agent_names import named_by_agents
from bench.engines import Addresses, add_arguments, engines
from bench.report import Report
from indexers.domain.entities.labels import EntityLabel, NamespaceLabels
from indexers.domain.entities.spans import LabelledSpan, select_flat
from indexers.extraction import Extracted, extract_texts
from indexers.extractors.factory import load_extractor
from indexers.model_calls import TextToExtract
from indexers.ports import EntityExtractor
from indexers.settings import ExtractorSettings
from tests.labelled import (
    AGENT_MEMORY,
    Labelled,
    Place,
    apart_from,
    joined,
    labels_of,
    micro_f1,
    read_labelled,
)

#: F1 points. Text by text the calls are the same; joined, short texts share a window. 94 names say no more than ± 9.
ALLOWED_LOSS = {"through": 0.5, "joined": 2.0}


def direct(extractor: EntityExtractor, text: str, labels: Sequence[str], threshold: float) -> set[Place]:
    [spans] = extractor.extract([text], labels, threshold=threshold)
    found = [LabelledSpan(start=s.start, end=s.end, label=s.label, score=s.score) for s in spans]
    return {(span.start, span.end, span.label) for span in select_flat([], found)[1]}


def places(extracted: Extracted, names: dict[str, str]) -> set[Place]:
    return {(m.start, m.end, names.get(m.label, m.label)) for m in extracted.mentions}


def labels_asked(texts: Sequence[Labelled], threshold: float) -> tuple[NamespaceLabels, dict[str, str]]:
    """A label's own name knows no blank; and what the file calls it."""
    names = {f"label_{number}": label for number, label in enumerate(labels_of(texts))}
    labels = tuple(EntityLabel(name=n, prompt=p, threshold=threshold) for n, p in names.items())
    return NamespaceLabels(labels=labels), names


def measure(extractor: EntityExtractor, texts: Sequence[Labelled], threshold: float) -> dict[str, Any]:
    asked = labels_of(texts)
    labels, names = labels_asked(texts, threshold)
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


def through_agent(
    addresses: Addresses,
    extractor: EntityExtractor,
    texts: Sequence[Labelled],
    threshold: float,
    settings: dict[str, str],
) -> dict[str, Any]:
    asked = labels_of(texts)
    labels, names = labels_asked(texts, threshold)
    stored = named_by_agents(addresses, texts, labels, settings)
    expected, called, told = [], [], []
    for text, named in zip(texts, stored, strict=True):
        expected.append(apart_from(text.names, named.by_rule))
        called.append(apart_from(direct(extractor, text.text, asked, threshold), named.by_rule))
        told.append({(start, end, names[label]) for start, end, label in named.by_model})
    alone, through = (micro_f1(zip(expected, found, strict=True)) for found in (called, told))
    return {
        "agent_names": sum(map(len, expected)),
        "agent_direct": round(alone, 1),
        "agent_through": round(through, 1),
        "agent_holds": through >= alone - ALLOWED_LOSS["through"],
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
    parser.add_argument("--agent", action=argparse.BooleanOptionalAction, default=True)
    add_arguments(parser)
    arguments = parser.parse_args()
    extractor = load_extractor(ExtractorSettings(backend=arguments.backend, model=arguments.model))
    sets = {path.name: read_labelled(path)[: arguments.limit] for path in arguments.files}
    rows = {name: measure(extractor, texts, arguments.threshold) for name, texts in sets.items()}
    if arguments.agent:
        settings = {"HOPLINE_EXTRACTOR__BACKEND": arguments.backend}
        if arguments.model:
            settings["HOPLINE_EXTRACTOR__MODEL"] = arguments.model
        with engines(arguments) as addresses:
            for name, texts in sets.items():
                row = through_agent(addresses, extractor, texts, arguments.threshold, settings)
                rows[name] |= row | {"holds": rows[name]["holds"] and row["agent_holds"]}
    figures = {"model": extractor.model_id, "threshold": arguments.threshold, **rows}
    Report(
        name="extract_quality", figures=figures | {"holds": all(row["holds"] for row in rows.values())}
    ).finish()


if __name__ == "__main__":
    main()
