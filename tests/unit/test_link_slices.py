"""Parts of the link agent's batch, and the one query that finds what no longer stands of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.identity import EntityNamespace
from streams.agents.link.decode import Word, decode_mentions, newest_of_each
from streams.agents.link.edges import any_of, mention_rows
from streams.agents.link.outdated import CLAUSES_MAX, Verdict, groups_of, outdated_query, slices
from streams.batch import Record
from streams.event_fields import new_event_fields
from streams.events import ExtractedMention, MentionsExtracted, encode
from tests.store import namespace

HOME = namespace()
LABELS = [f"label{n}" for n in range(30)]
WORDS = st.lists(
    st.tuples(
        st.sampled_from([f"notes/{n}.md" for n in range(25)]),
        st.sampled_from(LABELS),
        st.integers(1, 4),
        st.booleans(),
    ),
    max_size=400,
)


def word(path: str, label: str, version: int, *, says_something: bool) -> Word:
    mention = ExtractedMention(surface="Mina", start=0, end=4, weight=0.9, sentence="Mina.")
    values: dict[str, Any] = {
        **new_event_fields(HOME),
        "version": version,
        "path": path,
        "kind": "upserted",
        "doc_id": HOME.document(path).doc_id,
        "label": label,
        "mentions": [mention] if says_something else [],
    }
    record = Record(
        topic="mentions",
        partition=0,
        offset=0,
        key=EntityNamespace.of(HOME).record_key(label),
        value=encode(MentionsExtracted(**values)),
        timestamp=0.0,
    )
    [decoded] = decode_mentions([record]).words
    return decoded


def leaves(query: Any) -> Iterator[Any]:
    """Clauses as the engine counts them: those that hold no other."""
    if isinstance(query, list):
        for one in query:
            yield from leaves(one)
    elif "bool" in query:
        for part in ("filter", "should", "must_not"):
            yield from leaves(query["bool"].get(part, []))
    else:
        yield query


@given(WORDS, st.sampled_from(["as told", "deleted", "newer"]))
def test_each_word_is_in_one_slice_whose_query_stays_below_the_engines_limit(
    told: list[tuple[str, str, int, bool]], state: str
) -> None:
    words = newest_of_each([word(*one[:3], says_something=one[3]) for one in told])
    parts = list(slices(words))
    assert sorted(id(one) for part in parts for one in part) == sorted(map(id, words))
    for part in parts:
        verdicts = [verdict_of(one, state) for one in part]
        assert sum(1 for _ in leaves(any_of(map(outdated_query, groups_of(verdicts))))) <= CLAUSES_MAX


def verdict_of(one: Word, state: str) -> Verdict:
    version = one.event.version
    match state:
        case "deleted":
            return Verdict(word=one, rows=None, upto=10)
        case "newer":
            return Verdict(word=one, rows=None, upto=version, since=version)
        case _:
            return Verdict(word=one, rows=mention_rows(one), upto=version)


def test_words_that_say_nothing_of_a_document_are_one_clause_together() -> None:
    words = [word("a.md", label, 3, says_something=False) for label in LABELS]
    [group] = groups_of([verdict_of(one, "as told") for one in words])
    assert outdated_query(group)["bool"]["filter"] == [
        {"term": {"doc_id": words[0].doc_id}},
        {"terms": {"label": sorted(LABELS)}},
        {"range": {"version": {"gte": 0, "lte": 3}}},
    ]


def test_a_thousand_words_of_new_documents_are_few_slices() -> None:
    words = [
        word(f"{n}.md", label, 1, says_something=label == "label0") for n in range(60) for label in LABELS
    ]
    assert len(list(slices(words))) == 1
