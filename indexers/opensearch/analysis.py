"""Analysis settings: English lightly stemmed, CJK in bigrams, codes kept whole.

Text is indexed in two ways. `text` breaks words at `_` and `-`, stems English and cuts CJK runs into bigrams,
so a Korean noun is found with its particle attached. `code` keeps `ORA-01555`, `v1.2.3` and `payment_retry`
whole; only ASCII belongs to a code, so a particle glued to one ends it.
"""

from __future__ import annotations

from typing import Any

#: KStem stops at any form that its dictionary knows as a word of its own. Of the words of operations notes
#: these were measured to stay apart from their verb.
_VERB_FORMS = {
    "run": "running, ran, runs",
    "fail": "failing",
    "crash": "crashing",
    "stop": "stopping",
    "commit": "committed, committing",
    "restart": "restarted",
    "retry": "retrying, retried",
    "plan": "planning",
    "write": "writing, written",
    "read": "reading",
    "map": "mapping",
    "set": "setting",
    "index": "indices",
}
#: Longer runs are encoded blobs: nobody types them, and Lucene refuses a document for a term over 32 kB.
_CODE_MAX_CHARS = 200

ANALYSIS: dict[str, Any] = {
    "char_filter": {"underscores": {"type": "mapping", "mappings": ["_=>\\u0020"]}},
    "tokenizer": {
        # An automaton: the backtracking `pattern` tokenizer recurses on long input, and a stack overflow ends
        # the node.
        "codes": {"type": "simple_pattern", "pattern": "[A-Za-z0-9_]+([\\-._/:@#+][A-Za-z0-9_]+)*"}
    },
    "filter": {
        "bigrams_and_unigrams": {"type": "cjk_bigram", "output_unigrams": True},
        "bigrams": {"type": "cjk_bigram", "output_unigrams": False},
        "possessive": {"type": "stemmer", "language": "possessive_english"},
        "verb_forms": {
            "type": "stemmer_override",
            "rules": [f"{forms} => {verb}" for verb, forms in _VERB_FORMS.items()],
        },
        "code_length": {"type": "length", "max": _CODE_MAX_CHARS},
        # `src/payment_retry.py` is found by `payment_retry`, and `INC-1/INC-2` by either code.
        "code_parts": {"type": "pattern_capture", "preserve_original": True, "patterns": ["([a-z0-9_-]+)"]},
        "code_once": {"type": "remove_duplicates"},
        # A token and its stem, `결제팀은|결제팀~`, at one position: see indexers.domain.title_names.
        "name_forms": {"type": "pattern_capture", "preserve_original": False, "patterns": ["([^|]+)"]},
    },
    "analyzer": {
        "hopline_text": {
            "type": "custom",
            "char_filter": ["underscores"],
            "tokenizer": "standard",
            "filter": ["lowercase", "cjk_width", "bigrams_and_unigrams", "possessive", "verb_forms", "kstem"],
        },
        # Unigrams at search time would match every document that shares a syllable; a lone one stays one.
        "hopline_text_search": {
            "type": "custom",
            "char_filter": ["underscores"],
            "tokenizer": "standard",
            "filter": ["lowercase", "cjk_width", "bigrams", "possessive", "verb_forms", "kstem"],
        },
        "hopline_code": {
            "type": "custom",
            "tokenizer": "codes",
            "filter": ["lowercase", "code_length", "code_parts", "code_once"],
        },
        "hopline_names": {"type": "custom", "tokenizer": "whitespace", "filter": ["name_forms"]},
        "hopline_names_search": {"type": "custom", "tokenizer": "whitespace"},
        "hopline_code_search": {
            "type": "custom",
            "tokenizer": "codes",
            "filter": ["lowercase", "code_length"],
        },
    },
}
