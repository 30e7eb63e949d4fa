"""Rows as edges. Pure."""

from __future__ import annotations

from indexers.domain.entities.names import name_key
from indexers.domain.identity import SEPARATOR
from search_api.graph.columns import DocumentColumns, LinkColumns, MentionColumns, RelationColumns
from search_api.graph.kinds import LINK_KINDS, name_node
from search_api.graph.model import Edge, GraphRules, SeedRow


def link_edge(row: LinkColumns, rules: GraphRules) -> Edge | None:
    """None for a kind that isn't walked, and for a link to the document itself."""
    [source], [target], [kind] = row.from_doc_id, row.to_doc_id, row.link_type
    if kind not in LINK_KINDS or source == target:
        return None
    return Edge(
        source=source,
        target=target,
        kind=kind,
        weight=rules.link_weight(kind),  # type: ignore[arg-type]
        said_by=source,
        version=row.version[0],
        key=row.target_key[0] if row.target_key else "",
    )


def mention_edge(row: MentionColumns) -> Edge:
    [source], [weight] = row.doc_id, row.weight
    return Edge(
        source=source,
        target=name_node(row.label[0], row.key[0]),
        kind="mention",
        weight=weight if 0.0 <= weight <= 1.0 else min(1.0, max(0.0, weight)),
        said_by=source,
        version=row.version[0],
        key=row.name_id[0],
    )


def relation_edge(row: RelationColumns, rules: GraphRules) -> Edge:
    return Edge(
        source=_spoken(row.subject_label[0], row.subject[0]),
        target=_spoken(row.object_label[0], row.object[0]),
        kind="relation",
        weight=rules.relation,
        said_by=row.doc_id[0],
        version=row.version[0],
        key=SEPARATOR.join((row.subject_id[0], row.relation_type[0], row.object_id[0])),
    )


def seed_row(row: DocumentColumns) -> SeedRow:
    return SeedRow(
        version=row.version[0],
        tags=row.tags,
        category=row.category[0] if row.category else None,
        terms=row.terms,
        session=row.session[0] if row.session else None,
        position=row.position[0] if row.position else None,
        agent_id=row.agent_id[0],
        team_id=row.team_id[0] if row.team_id else None,
        scope=row.scope[0],
    )


def _spoken(label: str, name: str) -> str:
    """Relations keep names as they were written."""
    return name_node(label, name_key(name, label))
