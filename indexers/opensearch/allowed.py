"""What may stand in a search that passes the gate.

An allow-list: a query type, parameter or aggregation that isn't named here is refused, because the engine has
ways to read past a filter (scripts, terms lookups, more_like_this, suggesters, global and significant
aggregations, min_doc_count 0, inner hits) and gains new ones with every release.
"""

from __future__ import annotations

NAMING = {"boost", "_name"}
_MATCH = NAMING | {
    "query", "operator", "minimum_should_match", "analyzer", "fuzziness", "prefix_length", "max_expansions",
    "slop", "zero_terms_query", "lenient", "auto_generate_synonyms_phrase_query", "fuzzy_transpositions",
}  # fmt: skip
#: Query types of the form {type: {field: value or parameters}} and their parameters.
FIELD_QUERIES: dict[str, set[str]] = {
    "match": _MATCH,
    "match_phrase": _MATCH,
    "match_phrase_prefix": _MATCH,
    "match_bool_prefix": _MATCH,
    "term": NAMING | {"value", "case_insensitive"},
    "prefix": NAMING | {"value", "case_insensitive"},
    "range": NAMING | {"gt", "gte", "lt", "lte", "format", "time_zone", "relation"},
}
#: Query types with parameters alone.
FLAT_QUERIES: dict[str, set[str]] = {
    "match_all": NAMING,
    "match_none": NAMING,
    "exists": NAMING | {"field"},
    "multi_match": _MATCH | {"fields", "type", "tie_breaker"},
}
#: Query types that hold others, and which of their keys do.
COMPOUND: dict[str, tuple[set[str], set[str]]] = {
    "bool": ({"must", "should", "filter", "must_not"}, NAMING | {"minimum_should_match"}),
    "constant_score": ({"filter"}, NAMING),
    "dis_max": ({"queries"}, NAMING | {"tie_breaker"}),
    "boosting": ({"positive", "negative"}, NAMING | {"negative_boost"}),
}
KNN = NAMING | {"vector", "k", "filter", "method_parameters", "expand_nested_docs"}
METADATA_FIELDS = {"_id", "_index", "_routing", "_source", "_type", "_seq_no"}
BODY = {
    "query", "post_filter", "size", "from", "sort", "_source", "track_total_hits", "track_scores",
    "min_score", "search_after", "aggs", "collapse", "explain", "timeout", "terminate_after",
    "docvalue_fields", "stored_fields",
}  # fmt: skip
_FIELD_AGGREGATION = {"field", "missing"}
AGGREGATIONS: dict[str, set[str]] = {
    "terms": _FIELD_AGGREGATION
    | {"size", "shard_size", "order", "min_doc_count", "include", "exclude", "execution_hint"},
    "cardinality": _FIELD_AGGREGATION | {"precision_threshold"},
    "value_count": _FIELD_AGGREGATION,
    "missing": {"field"},
    "min": _FIELD_AGGREGATION,
    "max": _FIELD_AGGREGATION,
    "sum": _FIELD_AGGREGATION,
    "avg": _FIELD_AGGREGATION,
    "stats": _FIELD_AGGREGATION,
    "histogram": _FIELD_AGGREGATION | {"interval", "offset"},
    "date_histogram": _FIELD_AGGREGATION | {"calendar_interval", "fixed_interval", "time_zone", "format"},
    "range": _FIELD_AGGREGATION | {"ranges", "keyed"},
    "top_hits": {"size", "from", "sort", "_source"},
}
SORT = {"order", "missing", "mode", "unmapped_type"}
