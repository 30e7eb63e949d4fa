"""Rows of the graph as the engine's columns hold them, decoded straight into types.

Reading rows as stored costs the engine twice as much as reading columns, and a hop reads a thousand. A column
gives a list, empty (left out) where the row has none; a text over 8,191 characters has none.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from indexers.opensearch.gate import SearchHit

_Texts = tuple[str, ...]
_Numbers = tuple[int, ...]
_Fractions = tuple[float, ...]


class LinkColumns(msgspec.Struct, frozen=True, gc=False):
    from_doc_id: _Texts
    to_doc_id: _Texts
    link_type: _Texts
    version: _Numbers
    target_key: _Texts = ()


class MentionColumns(msgspec.Struct, frozen=True, gc=False):
    doc_id: _Texts
    name_id: _Texts
    label: _Texts
    key: _Texts
    weight: _Fractions
    version: _Numbers


class RelationColumns(msgspec.Struct, frozen=True, gc=False):
    doc_id: _Texts
    subject: _Texts
    subject_label: _Texts
    subject_id: _Texts
    relation_type: _Texts
    object: _Texts
    object_label: _Texts
    object_id: _Texts
    version: _Numbers


class NameColumns(msgspec.Struct, frozen=True, gc=False):
    name_id: _Texts
    entity_id: _Texts
    label: _Texts
    key: _Texts
    mentions: _Numbers
    blocked: tuple[bool, ...]
    canonical: tuple[bool, ...]


class DocumentColumns(msgspec.Struct, frozen=True, gc=False):
    doc_id: _Texts
    version: _Numbers
    agent_id: _Texts
    scope: _Texts
    team_id: _Texts = ()
    tags: _Texts = ()
    category: _Texts = ()
    terms: _Texts = ()
    session: _Texts = ()
    position: _Numbers = ()
    turn: _Texts = ()


class ColumnsHit(SearchHit, frozen=True, kw_only=True, gc=False):
    """Without id: it stands with the stored row.

    Nor with its place in the order and in the engine's log: nothing asks for them, and a hop has a thousand rows. No
    answer has the names that these fields are given here.
    """

    stored_id: str = msgspec.field(name="_id", default="")
    seq_no: int = msgspec.field(name="-seq_no", default=0)
    primary_term: int = msgspec.field(name="-primary_term", default=0)
    sort: tuple[Any, ...] = msgspec.field(name="-sort", default=())


class LinkColumnsHit(ColumnsHit, frozen=True, kw_only=True, gc=False):
    fields: LinkColumns


class MentionColumnsHit(ColumnsHit, frozen=True, kw_only=True, gc=False):
    fields: MentionColumns


class RelationColumnsHit(ColumnsHit, frozen=True, kw_only=True, gc=False):
    fields: RelationColumns


class NameColumnsHit(ColumnsHit, frozen=True, kw_only=True, gc=False):
    fields: NameColumns


class DocumentColumnsHit(ColumnsHit, frozen=True, kw_only=True, gc=False):
    fields: DocumentColumns


def columns_of(columns: type[msgspec.Struct]) -> dict[str, Any]:
    """The part of a search body that asks for these columns and nothing else."""
    return {
        "_source": False,
        "stored_fields": "_none_",
        "docvalue_fields": list(columns.__struct_fields__),
        "track_total_hits": False,
    }


LINKS: Final = columns_of(LinkColumns)
MENTIONS: Final = columns_of(MentionColumns)
RELATIONS: Final = columns_of(RelationColumns)
NAMES: Final = columns_of(NameColumns)
DOCUMENTS: Final = columns_of(DocumentColumns)
