"""How the graph came to a document: which paths a hit shows, and what they need of the store. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from search_api.graph.kinds import is_name, label_and_key
from search_api.graph.model import Edge, EdgeContext, Step
from search_api.graph.paths import paths_to
from search_api.graph.standing import path_stands
from search_api.models import NodeAnswer, StepAnswer
from search_api.retrieval.candidates import Candidate, DocumentView
from search_api.retrieval.graphing import GraphRun

Path = tuple[Step, ...]
#: By document and part.
Paths = dict[tuple[str, str], Path]


def is_related(candidate: Candidate) -> bool:
    """The graph alone brought it."""
    return all(evidence.leg == "graph" for evidence in candidate.evidence)


def paths_of(run: GraphRun, candidates: Sequence[Candidate]) -> Paths:
    """Of every evidence of the graph. The random walk's are looked for here: it has none by itself."""
    walked = [c.doc_id for c in candidates if any(e.part == "pagerank" for e in c.evidence)]
    chains = paths_to(run.subgraph, run.seeds, run.rules, walked) if walked else {}
    found: Paths = {}
    for candidate in candidates:
        for evidence in candidate.evidence:
            if evidence.leg == "graph":
                path = evidence.path or (
                    chains.get(candidate.doc_id, ()) if evidence.part == "pagerank" else ()
                )
                if path:
                    found[candidate.doc_id, evidence.part] = path
    return found


def edges_of(paths: Iterable[Path]) -> list[Edge]:
    return [step.edge for path in paths for step in path]


def documents_of(paths: Iterable[Path]) -> list[str]:
    """Documents on the way, and those whose texts say an edge."""
    nodes = [
        node
        for edge in edges_of(paths)
        for node in (edge.source, edge.target, edge.said_by)
        if node and not is_name(node)
    ]
    return list(dict.fromkeys(nodes))


def shown_path(
    path: Path, documents: Mapping[str, DocumentView | None], contexts: Mapping[str, EdgeContext | None]
) -> list[StepAnswer]:
    """Empty where a document on the way is gone, or no longer says an edge: such a path is shown to nobody."""
    on_the_way = documents_of([path])
    versions = {doc_id: None if (d := documents.get(doc_id)) is None else d.version for doc_id in on_the_way}
    if not path_stands(path, versions):
        return []
    steps: list[StepAnswer] = []
    for step in path:
        context = contexts.get(step.row_id) if step.edge.index is not None else None
        if step.edge.index is not None and (context is None or context.version != step.edge.version):
            return []
        steps.append(
            StepAnswer(
                kind=step.kind,
                from_=_node(step.source, documents, context),
                to=_node(step.target, documents, context),
                backward=step.backward,
                weight=step.edge.weight,
                context=None if context is None else context.text,
            )
        )
    return steps


def _node(node: str, documents: Mapping[str, DocumentView | None], context: EdgeContext | None) -> NodeAnswer:
    if is_name(node):
        label, key = label_and_key(node)
        surface = None if context is None else context.surface
        return NodeAnswer(label=label, title=surface or key)
    view = documents[node]
    assert view is not None  # noqa: S101 - `path_stands` saw it
    return NodeAnswer(doc_id=view.doc_id, path=view.path, title=view.title)
