"""Rows by id, as last written: of documents, and of what says an edge. Each is read once a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, RowAsked, RowRef
from indexers.opensearch.rows import Index
from search_api.graph.contexts import CONTEXT_FIELDS, context_of
from search_api.graph.model import Edge, EdgeContext
from search_api.retrieval.candidates import VIEW_FIELDS, DocumentView
from search_api.retrieval.steps import Steps


class LookUp:
    """Of one search."""

    def __init__(self, gate: Gate, principal: Principal, steps: Steps) -> None:
        self._gate = gate
        self._principal = principal
        self._steps = steps
        #: None: gone, deleted, or not to be seen by the asker.
        self.documents: dict[str, DocumentView | None] = {}
        self.contexts: dict[str, EdgeContext | None] = {}

    async def read(self, doc_ids: Iterable[str], edges: Iterable[Edge] = ()) -> None:
        """What of these wasn't read yet, in one request; none where all was."""
        documents = [d for d in dict.fromkeys(doc_ids) if d not in self.documents]
        said = {edge.row_id: edge for edge in edges if edge.index is not None}
        wanted = [edge for row_id, edge in said.items() if row_id not in self.contexts]
        asked = [self._document(doc_id) for doc_id in documents]
        asked += [one for edge in wanted if (one := self._context(edge)) is not None]
        if not asked:
            return
        self._steps.round_trips += 1
        rows = await self._gate.get_rows(asked)
        for doc_id, row in zip(documents, rows, strict=False):
            view = None if row is None else DocumentView.from_source(row.source)
            self.documents[doc_id] = None if view is None or view.deleted else view
        for edge, row in zip(wanted, rows[len(documents) :], strict=True):
            assert edge.index is not None  # noqa: S101 - see `said`
            found = None if row is None else context_of(edge.index, row.row_id, row.source)
            self.contexts[edge.row_id] = found

    def versions(self, doc_ids: Iterable[str]) -> dict[str, int | None]:
        """Of those that were looked up; None: it is gone."""
        found = {doc_id: self.documents[doc_id] for doc_id in doc_ids if doc_id in self.documents}
        return {doc_id: None if view is None else view.version for doc_id, view in found.items()}

    def _document(self, doc_id: str) -> RowAsked:
        ref = RowRef(principal=self._principal, row_id=doc_id)
        return RowAsked(index=Index.DOCUMENTS, ref=ref, fields=VIEW_FIELDS)

    def _context(self, edge: Edge) -> RowAsked | None:
        if edge.index is None:
            return None
        fields: Sequence[str] = CONTEXT_FIELDS[edge.index]
        ref = RowRef(principal=self._principal, row_id=edge.row_id)
        return RowAsked(index=edge.index, ref=ref, fields=fields)
