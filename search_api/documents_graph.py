"""The graph around one document. Round trips: 3 for what is related, depth + 2 for the graph."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, RowAsked, RowRef
from indexers.opensearch.rows import Index
from search_api.graph.around import Near, Reason, near, reasons_around, score_of
from search_api.graph.fetch import GraphReader
from search_api.graph.kinds import is_name, label_and_key
from search_api.graph.model import GraphRules, Seeds, Step, Subgraph
from search_api.graph.standing import standing
from search_api.graph_answers import (
    DocumentLine,
    GraphAnswer,
    GraphEdge,
    GraphNode,
    RelatedAnswer,
    RelatedDocument,
    RelatedReason,
)
from search_api.metrics import ApiMetrics
from search_api.problems import no_such
from search_api.retrieval.candidates import DocumentView
from search_api.retrieval.look_up import LookUp
from search_api.retrieval.paths import documents_of, edges_of
from search_api.retrieval.steps import Steps
from search_api.stored import is_id

DEPTH_MAX: Final = 3
NODES_MAX: Final = 200
EDGES_MAX: Final = 600
#: Beyond a page: relatives that turn out to be gone, or to say it no more.
_AHEAD: Final = 10
#: Ways between two documents that are told.
_REASONS_MAX: Final = 6
_SHARED_SHOWN: Final = 8
#: A document that everybody links to has relatives, too: the first ones.
_RULES: Final = GraphRules(off=frozenset(("named", "pagerank", "hop")), hub_links=0)
_DOCUMENT_FIELDS: Final = ("doc_id", "title", "path", "doc_type", "version", "deleted")


class DocumentGraph:
    """Raises ProblemError: 404 alike for what isn't there and what the principal may not see."""

    def __init__(self, gate: Gate, metrics: ApiMetrics) -> None:
        self._gate = gate
        self._reader = GraphReader(gate)
        self._metrics = metrics

    async def related(self, principal: Principal, doc_id: str, *, size: int) -> RelatedAnswer:
        """One step away: links both ways, turns, shared names, tags, category and terms."""
        look_up = LookUp(self._gate, principal, Steps(self._metrics))
        # The second hop reads who says the names, and of no document anything.
        rules = replace(_RULES, depth=2, frontier_max=0)
        subgraph, _ = await asyncio.gather(
            self._reader.expand(principal, _start(_checked(doc_id)), rules), look_up.read([doc_id])
        )
        asked = look_up.documents[doc_id]
        if asked is None:
            raise no_such("document")
        ranked = _ranked(reasons_around(subgraph, doc_id, rules))[: size + _AHEAD]
        paths = [reason.path for _, reasons in ranked for reason in reasons]
        await look_up.read(documents_of(paths), edges_of(paths))
        shown = [_related(asked, other, reasons, look_up) for other, reasons in ranked]
        found = sorted((one for one in shown if one is not None), key=lambda r: (-r.score, r.document.doc_id))
        return RelatedAnswer(related=found[:size])

    async def graph(self, principal: Principal, doc_id: str, *, depth: int) -> GraphAnswer:
        """Documents and entities within so many edges, at most `NODES_MAX`."""
        rules = replace(_RULES, depth=depth)
        subgraph, [row] = await asyncio.gather(
            self._reader.around(principal, _start(_checked(doc_id)), rules),
            self._gate.get_rows([_document(principal, doc_id)]),
        )
        if row is None or row.source["deleted"]:
            raise no_such("document")
        found = near(subgraph, doc_id, depth=depth, nodes_max=NODES_MAX, edges_max=EDGES_MAX)
        rows = await self._rows(principal, subgraph, found)
        # Once more among these, without the edges that nobody says any longer.
        again = near(
            _present(subgraph, found, rows), doc_id, depth=depth, nodes_max=NODES_MAX, edges_max=EDGES_MAX
        )
        capped = bool(found.left_out or subgraph.truncated)
        return _graph_answer(again, subgraph, rows, capped=capped)

    async def _rows(self, principal: Principal, subgraph: Subgraph, found: Near) -> dict[str, dict[str, Any]]:
        """Node → its row as it stands; what is gone or hidden is left out."""
        asked = {
            node: _entity(principal, subgraph.names[node].entity_id)
            if is_name(node)
            else _document(principal, node)
            for node in found.hops
        }
        stored = await self._gate.get_rows(list(asked.values()))
        return {node: row.source for node, row in zip(asked, stored, strict=True) if row is not None}


def _checked(doc_id: str) -> str:
    if not is_id(doc_id):
        raise no_such("document")
    return doc_id


def _start(doc_id: str) -> Seeds:
    return Seeds(documents={doc_id: 1.0})


def _document(principal: Principal, doc_id: str) -> RowAsked:
    ref = RowRef(principal=principal, row_id=doc_id)
    return RowAsked(index=Index.DOCUMENTS, ref=ref, fields=_DOCUMENT_FIELDS)


def _entity(principal: Principal, entity_id: str) -> RowAsked:
    ref = RowRef(principal=principal, row_id=entity_id)
    return RowAsked(index=Index.ENTITIES, ref=ref, fields=("name", "blocked"))


def _present(subgraph: Subgraph, found: Near, rows: Mapping[str, Mapping[str, Any]]) -> Subgraph:
    """The edges among the found nodes that stand: no document has moved on, no name is gone or blocked."""
    among = [e for e in subgraph.edges if e.source in found.hops and e.target in found.hops]
    return standing(replace(subgraph, edges=among), {node: _version(rows.get(node)) for node in found.hops})


def _version(row: Mapping[str, Any] | None) -> int | None:
    if row is None or row.get("deleted") or row.get("blocked"):
        return None
    return int(row.get("version", 0))


def _graph_answer(
    found: Near, subgraph: Subgraph, rows: Mapping[str, Mapping[str, Any]], *, capped: bool
) -> GraphAnswer:
    ids = {node: subgraph.names[node].entity_id if is_name(node) else node for node in found.hops}
    return GraphAnswer(
        nodes=[_node(node, hop, ids[node], rows[node]) for node, hop in found.hops.items()],
        edges=[
            GraphEdge(source=ids[e.source], target=ids[e.target], kind=e.kind, weight=round(e.weight, 4))
            for e in found.edges
        ],
        capped=capped,
    )


def _node(node: str, hop: int, node_id: str, row: Mapping[str, Any]) -> GraphNode:
    if is_name(node):
        label, _ = label_and_key(node)
        return GraphNode(id=node_id, kind="entity", title=row["name"], hop=hop, label=label)
    return GraphNode(
        id=node_id, kind="document", title=row["title"], hop=hop, path=row["path"], doc_type=row["doc_type"]
    )


def _ranked(reasons: Mapping[str, list[Reason]]) -> list[tuple[str, list[Reason]]]:
    kept = {doc_id: some[:_REASONS_MAX] for doc_id, some in reasons.items()}
    return sorted(kept.items(), key=lambda one: (-score_of(one[1]), one[0]))


def _related(
    asked: DocumentView, doc_id: str, reasons: Sequence[Reason], look_up: LookUp
) -> RelatedDocument | None:
    """None: it is gone, or nothing says it any longer."""
    other = look_up.documents[doc_id]
    if other is None:
        return None
    told = [(reason, text) for reason in reasons if (text := _text(reason, asked, other, look_up))]
    if not told:
        return None
    return RelatedDocument(
        document=DocumentLine(**{name: getattr(other, name) for name in DocumentLine.model_fields}),
        score=round(score_of(reason for reason, _ in told), 4),
        reasons=[
            RelatedReason(kind=reason.path[0].kind, text=text, score=round(reason.score, 4))
            for reason, text in told
        ],
    )


def _text(reason: Reason, asked: DocumentView, other: DocumentView, look_up: LookUp) -> str | None:
    """None where the present text of a document on the way doesn't say it."""
    step = reason.path[0]
    match step.kind:
        case "tags":
            return _both("both have the tags", asked.tags, other.tags)
        case "category":
            return _both("both are of the category", [asked.category], [other.category])
        case "terms":
            return _both("both speak of", asked.terms, other.terms)
        case "session":
            return f"the {'turn before' if step.backward else 'turn after'} in the same session"
        case "mention":
            return _names(reason.path, look_up)
        case _:
            said = _said(step, look_up)
            return None if said is None else f"{'linked from it' if step.backward else 'links to it'}: {said}"


def _both(what: str, some: Sequence[str | None], others: Sequence[str | None]) -> str | None:
    shared = [one for one in some if one is not None and one in set(others)]
    return f"{what} {', '.join(shared[:_SHARED_SHOWN])}" if shared else None


def _names(path: Sequence[Step], look_up: LookUp) -> str | None:
    """The name, and the sentences of both documents and of a relation on the way."""
    said = [_said(step, look_up) for step in path]
    if any(text is None for text in said):
        return None
    label, key = label_and_key(path[0].target)
    context = look_up.contexts[path[0].row_id]
    name = key if context is None or context.surface is None else context.surface
    return f"both name {name} ({label}): {' … '.join(text for text in said[1:] if text)}"


def _said(step: Step, look_up: LookUp) -> str | None:
    """The sentence that says an edge, if the document's present version does."""
    context, saying = look_up.contexts[step.row_id], look_up.documents.get(step.edge.said_by)
    if context is None or saying is None or not saying.version == context.version == step.edge.version:
        return None
    return " ".join(context.text.split())
