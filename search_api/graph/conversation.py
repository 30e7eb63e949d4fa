"""Which turns stand next to a document's, and the edges between them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from search_api.graph.columns import DocumentColumns
from search_api.graph.edges_of import seed_row
from search_api.graph.model import Edge, SeedRow


def turns_around(row: SeedRow, span: int) -> list[str]:
    """As the column `turn` has them: up to `span` before and after; none where the document is no turn."""
    if row.session is None or row.position is None:
        return []
    return [f"{row.session}#{row.position + step}" for step in range(-span, span + 1) if step]


def session_edges(rows: Mapping[str, SeedRow], found: Iterable[DocumentColumns], *, span: int) -> list[Edge]:
    """From the earlier turn to the later, weight 1 ÷ distance: between `rows` and `found`, and only of one owner.

    Two agents may each call a session `monday`.
    """
    turns = {
        doc_id: row for doc_id, row in rows.items() if row.session is not None and row.position is not None
    }
    others = turns | {row.doc_id[0]: seed_row(row) for row in found}
    by_place: dict[tuple[object, ...], list[str]] = {}
    for doc_id, row in others.items():
        by_place.setdefault(_place(row, 0), []).append(doc_id)
    edges: dict[tuple[str, str], Edge] = {}
    for doc_id, row in turns.items():
        for step in range(-span, span + 1):
            for other in by_place.get(_place(row, step), ()) if step else ():
                source, target = (doc_id, other) if step > 0 else (other, doc_id)
                edges[source, target] = Edge(
                    source=source, target=target, kind="session", weight=1.0 / abs(step)
                )
    return [edges[pair] for pair in sorted(edges)]


def _place(row: SeedRow, step: int) -> tuple[object, ...]:
    position = None if row.position is None else row.position + step
    return row.scope, row.agent_id, row.team_id, row.session, position
