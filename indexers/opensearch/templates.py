"""Mappings and settings of every index. Pure: the same settings give the same template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indexers.opensearch.analysis import ANALYSIS
from indexers.opensearch.names import MAPPING_VERSION
from indexers.opensearch.rows import Index
from indexers.settings import OpenSearchSettings

#: Lucene refuses a term over 32,766 bytes together with its document. A UTF-16 unit takes at most 3 bytes, so
#: this is always safe; a longer value is stored and returned, but no exact query finds it.
KEYWORD_MAX_CHARS = 8_191
#: The row's owner; every index has these four.
OWNER_FIELDS = ("tenant_id", "agent_id", "team_id", "scope")
VECTOR_FIELD = "vector"
OWN_VECTOR_FIELD = "own_vector"
#: Kilobytes a row: fetched only where they are named.
VECTOR_FIELDS = (VECTOR_FIELD, OWN_VECTOR_FIELD)
#: Above the templates of earlier versions, one per index.
_TEMPLATE_PRIORITY = 201
#: Searched by `text` and `code` analysis.
BODY_FIELD = "body"
#: Searched for phrases of whole tokens: which texts say a name.
NAME_TEXT_FIELD = "name_text"

_KEYWORD: dict[str, Any] = {"type": "keyword", "ignore_above": KEYWORD_MAX_CHARS}
#: A `term` clause on it is scored by how rare the term is, so that rows of the least connected node can come first.
_RARITY: dict[str, Any] = _KEYWORD | {"use_similarity": True}
_LONG = {"type": "long"}
_BOOLEAN = {"type": "boolean"}
#: Comes back in the row and can't be searched.
_STORED: dict[str, Any] = {"type": "keyword", "index": False, "doc_values": False}
#: Written by people in frontmatter: a date that is none must not cost the document.
_LENIENT_DATE: dict[str, Any] = {"type": "date", "ignore_malformed": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSpace:
    """What the vectors of one index have in common; recorded in its mapping."""

    pair_id: str
    dimension: int
    cosine_floor: float | None = None


def index_body(
    index: Index, settings: OpenSearchSettings, space: VectorSpace, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Settings and mappings of an index that is made. `more`: what its `_meta` says besides."""
    return {"settings": _settings(index, settings), "mappings": _mappings(index, space, more or {})}


def template_body(patterns: Sequence[str], settings: OpenSearchSettings) -> dict[str, Any]:
    """What all indices have in common. One that is not made by `index_body` takes no row but refuses it."""
    common = {
        "settings": _settings(None, settings),
        "mappings": {
            "dynamic": "strict",
            "_routing": {"required": True},
            "properties": dict.fromkeys(OWNER_FIELDS, _KEYWORD),
        },
    }
    return {"index_patterns": list(patterns), "priority": _TEMPLATE_PRIORITY, "template": common}


def meta(index: Index, space: VectorSpace) -> dict[str, Any]:
    recorded: dict[str, Any] = {"schema_version": MAPPING_VERSION}
    if index is Index.CHUNKS:
        recorded |= {
            "pair_id": space.pair_id,
            "dimension": space.dimension,
            "cosine_floor": space.cosine_floor,
        }
    return recorded


def _settings(index: Index | None, settings: OpenSearchSettings) -> dict[str, Any]:
    values: dict[str, Any] = {
        "number_of_shards": settings.shards,
        "number_of_replicas": settings.replicas,
        # Stated, so that an index without searches doesn't stop refreshing. Gate and events are read by id.
        "refresh_interval": "5s" if index in (Index.GATE, Index.EVENTS) else "1s",
        # How long a delete's version is remembered: a late older write within it is stale.
        "gc_deletes": "10m",
    }
    if index in (Index.DOCUMENTS, Index.ENTITIES):
        values["analysis"] = ANALYSIS
    if index is Index.CHUNKS:
        values["knn"] = True
    return {"index": values}


def _mappings(index: Index, space: VectorSpace, more: Mapping[str, Any]) -> dict[str, Any]:
    mappings: dict[str, Any] = {
        "dynamic": "strict",
        "_meta": meta(index, space) | dict(more),
        "_routing": {"required": True},
        "properties": dict.fromkeys(OWNER_FIELDS, _KEYWORD) | _properties(index, space),
    }
    if index is Index.DOCUMENTS:
        mappings["_source"] = {"excludes": [BODY_FIELD, NAME_TEXT_FIELD]}
    return mappings


def _properties(index: Index, space: VectorSpace) -> dict[str, Any]:
    if index is Index.CHUNKS:
        return _CHUNKS | {VECTOR_FIELD: _vector(space.dimension)}
    return _PROPERTIES[index]


def _vector(dimension: int) -> dict[str, Any]:
    """The engine is always named: the default one lacks its native library and ends the node at a write."""
    return {
        "type": "knn_vector",
        "dimension": dimension,
        "method": {
            "name": "hnsw",
            "engine": "lucene",
            # Vectors of chunks are up to 1 long: indexers.domain.lead.
            "space_type": "innerproduct",
            "parameters": {"m": 16, "ef_construction": 100},
        },
    }


_CODE: dict[str, Any] = {
    "type": "text",
    "analyzer": "hopline_code",
    "search_analyzer": "hopline_code_search",
}
_WORDS: dict[str, Any] = {
    "type": "text",
    "analyzer": "hopline_text",
    "search_analyzer": "hopline_text_search",
}
_TEXT: dict[str, Any] = _WORDS | {"fields": {"code": _CODE}}

_FLOAT = {"type": "float"}
_INTEGER = {"type": "integer"}
#: What chunk rows repeat of their document: see DocumentFacts.
_FACTS: dict[str, Any] = {
    "doc_type": _KEYWORD,
    "source": _KEYWORD,
    "health": _FLOAT,
    "session": _KEYWORD,
    "position": _INTEGER,
    "turn": _KEYWORD,
    "superseded_by": _KEYWORD,
    "created_at": _LENIENT_DATE,
    "updated_at": _LENIENT_DATE,
    "valid_from": _LENIENT_DATE,
    "expires_at": _LENIENT_DATE,
}

_DOCUMENTS: dict[str, Any] = _FACTS | {
    "doc_id": _KEYWORD,
    "path": _KEYWORD | {"fields": {"text": _WORDS, "code": _CODE}},
    "vault_path": _STORED,
    "path_key": _KEYWORD,
    "name_key": _KEYWORD,
    "alias_keys": _KEYWORD,
    "name_keys": _KEYWORD,
    "title": _TEXT,
    "abstract": _STORED,
    "tags": _KEYWORD | {"fields": {"text": _WORDS}},
    "category": _KEYWORD,
    "aliases": _TEXT,
    "terms": _KEYWORD,
    "language": _KEYWORD,
    "health_reasons": _KEYWORD,
    "speaker": _KEYWORD,
    "content_hash": _KEYWORD,
    "size": _LONG,
    "left_out_bytes": _LONG,
    "no_vector_reason": _KEYWORD,
    "warnings": _STORED,
    "indexed_at": {"type": "date"},
    "moved_from": _KEYWORD,
    "version": _LONG,
    "event_id": _KEYWORD,
    "parser_version": _KEYWORD,
    "chunker_version": _KEYWORD,
    "deleted": _BOOLEAN,
    "tombstone_until": {"type": "date"},
    BODY_FIELD: _TEXT,
    NAME_TEXT_FIELD: {
        "type": "text",
        "analyzer": "hopline_names",
        "search_analyzer": "hopline_names_search",
        "norms": False,
    },
}

_CHUNKS: dict[str, Any] = _FACTS | {
    "doc_id": _KEYWORD,
    "ordinal": _INTEGER,
    "start": _INTEGER,
    "end": _INTEGER,
    "heading_path": _STORED,
    "chunk_hash": _KEYWORD,
    "model_id": _KEYWORD,
    "chunker_version": _KEYWORD,
    "version": _LONG,
    OWN_VECTOR_FIELD: {"type": "binary"},
}

_LINKS: dict[str, Any] = {
    "from_doc_id": _RARITY,
    "from_path": _KEYWORD,
    "to_doc_id": _RARITY,
    "target": _STORED,
    "target_key": _KEYWORD,
    "target_name_key": _KEYWORD,
    "link_type": _KEYWORD,
    "occurrences": {"type": "object", "enabled": False},
    "resolved": _BOOLEAN,
    "ambiguous": _BOOLEAN,
    "version": _LONG,
}

_GATE: dict[str, Any] = {
    "doc_id": _KEYWORD,
    "content_hash": _KEYWORD,
    "versions": _KEYWORD,
    "version": _LONG,
    "event_id": _KEYWORD,
    "deleted": _BOOLEAN,
    "alias_keys": _STORED,
    "names": _STORED,
}

_ENTITIES: dict[str, Any] = {
    "name_id": _KEYWORD,
    "likeness_id": _KEYWORD,
    "entity_id": _KEYWORD,
    "namespace": _KEYWORD,
    "label": _KEYWORD,
    "key": _KEYWORD,
    "name": _TEXT,
    "canonical": _BOOLEAN,
    "mentions": _LONG,
    "mention_count": _LONG,
    "blocked": _BOOLEAN,
    "grams": _KEYWORD,
    "block": _KEYWORD,
    "length": _INTEGER,
}

_MENTIONS: dict[str, Any] = {
    "doc_id": _RARITY,
    "path": _KEYWORD,
    "name_id": _KEYWORD,
    "namespace": _KEYWORD,
    "label": _KEYWORD,
    "key": _RARITY,
    "surface": _KEYWORD,
    "weight": _FLOAT,
    "start": _INTEGER,
    "end": _INTEGER,
    "sentence": _STORED,
    "occurrences": {"type": "object", "enabled": False},
    "count": _INTEGER,
    "source": _KEYWORD,
    "version": _LONG,
}

_RELATIONS: dict[str, Any] = {
    "doc_id": _RARITY,
    "path": _KEYWORD,
    "namespace": _KEYWORD,
    "subject": _KEYWORD,
    "subject_label": _KEYWORD,
    "subject_id": _RARITY,
    "relation_type": _KEYWORD,
    "object": _KEYWORD,
    "object_label": _KEYWORD,
    "object_id": _RARITY,
    "quote": _STORED,
    "start": _INTEGER,
    "end": _INTEGER,
    "version": _LONG,
}

_PROPOSALS: dict[str, Any] = {
    "namespace": _KEYWORD,
    "label": _KEYWORD,
    "entity_id": _KEYWORD,
    "other_id": _KEYWORD,
    "key": _KEYWORD,
    "other_key": _KEYWORD,
    "similarity": _FLOAT,
    "reason": _KEYWORD,
}

_CURATION: dict[str, Any] = {
    "namespace": _KEYWORD,
    "label": _KEYWORD,
    "kind": _KEYWORD,
    "keys": _KEYWORD,
    "name": _KEYWORD,
    "undoes": _KEYWORD,
    "by": _KEYWORD,
    "at": {"type": "date"},
    "reason": _STORED,
    "version": _LONG,
    "event_id": _KEYWORD,
}

_EXTRACTIONS: dict[str, Any] = {
    "doc_id": _KEYWORD,
    "namespace": _KEYWORD,
    "version": _LONG,
    "fingerprint": _KEYWORD,
    "mentions": _INTEGER,
    "rejected": _INTEGER,
}

_CONTROL: dict[str, Any] = {
    "kind": _KEYWORD,
    "name": _KEYWORD,
    "value": {"type": "object", "enabled": False},
    "version": _LONG,
    "updated_by": _KEYWORD,
    "updated_at": {"type": "date"},
}

_EVENTS: dict[str, Any] = {
    "event_id": _KEYWORD,
    "stage": _KEYWORD,
    "at": {"type": "date"},
    "doc_id": _KEYWORD,
    "path": _KEYWORD,
    "version": _LONG,
    "kind": _KEYWORD,
    "part": _KEYWORD,
    "parts": _STORED,
    "reason": _KEYWORD,
    "body_hash": _STORED,
    "occurred_at": _STORED,
}

_PROPERTIES: dict[Index, dict[str, Any]] = {
    Index.DOCUMENTS: _DOCUMENTS,
    Index.LINKS: _LINKS,
    Index.GATE: _GATE,
    Index.ENTITIES: _ENTITIES,
    Index.MENTIONS: _MENTIONS,
    Index.RELATIONS: _RELATIONS,
    Index.PROPOSALS: _PROPOSALS,
    Index.CURATION: _CURATION,
    Index.EXTRACTIONS: _EXTRACTIONS,
    Index.CONTROL: _CONTROL,
    Index.EVENTS: _EVENTS,
}
