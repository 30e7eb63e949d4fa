"""From the links of one note to the edges that it shall have. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from indexers.domain import markdown, names
from indexers.domain.identity import DocumentKey, LinkId, link_id
from indexers.opensearch.rows import LinkRow, owner_fields

#: Places kept of one edge; more of them tell a reader nothing new.
OCCURRENCES_MAX = 100


def plan_links(
    document: DocumentKey, found: Sequence[markdown.FoundLink], *, version: int
) -> dict[LinkId, LinkRow]:
    """Edges of this version, unresolved: where they lead is decided against what the index holds."""
    doc_id = document.doc_id
    rows: dict[LinkId, LinkRow] = {}
    for link in found:
        rows[link_id(doc_id, version, link.target_key, link.link_type)] = LinkRow(
            **owner_fields(document.namespace),
            from_doc_id=doc_id,
            from_path=document.path,
            to_doc_id=None,
            target=link.target,
            target_key=link.target_key,
            target_name_key=names.target_name_key(link.target_key),
            link_type=link.link_type,
            occurrences=[_occurrence(place) for place in link.occurrences[:OCCURRENCES_MAX]],
            resolved=False,
            ambiguous=False,
            version=version,
        )
    return rows


def _occurrence(place: markdown.Occurrence) -> dict[str, object]:
    return {
        "start": place.start,
        "end": place.end,
        "display": place.display,
        "context": place.context,
        "heading": place.heading,
    }
