"""What every embedder does. An adapter's test class names its settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexers.embedders.factory import ModelIdentity, identify_model, load_embedder, load_token_counter
from indexers.ports import Embedder, Vectors
from indexers.settings import EmbedderSettings

TEXTS = [
    "The payment service retries a charge three times before it gives up.",
    "pump",
    "Database failover runbook: promote the replica, then move the virtual address.",
    "def retry(times: int) -> None: ...",
    "Rotate the API key every ninety days and tell the on-call engineer. " * 4,
]
#: (text, related, unrelated): a claim about meaning that any sentence embedder must bear out.
ENGLISH = [
    (
        "The payment service is down.",
        "Customers can't pay: checkout is failing.",
        "The bakery sells rye bread on Fridays.",
    ),
    (
        "Who is on call for the database?",
        "The rota of database engineers on duty this week.",
        "A recipe for lemon cake with poppy seeds.",
    ),
    (
        "How do I restore a backup?",
        "Steps to recover data from last night's snapshot.",
        "The cat slept on the warm windowsill.",
    ),
]


class EmbedderConformance(ABC):
    """`exact`: a vector is a function of its text alone, bit for bit, whatever else is in the call."""

    exact: ClassVar[bool]

    @staticmethod
    @abstractmethod
    def embedder_settings() -> EmbedderSettings: ...

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Embedder:
        return load_embedder(cls.embedder_settings())

    def same(self, left: Vectors, right: Vectors) -> bool:
        return np.array_equal(left, right) if self.exact else np.allclose(left, right, atol=2e-5)

    def test_its_identity_is_known_without_loading_the_model(self, embedder: Embedder) -> None:
        known = identify_model(self.embedder_settings())
        assert known in (
            ModelIdentity(model_id=embedder.model_id, pair_id=embedder.pair_id),
            ModelIdentity(
                model_id=embedder.model_id,
                pair_id=embedder.pair_id,
                dimension=embedder.dimension,
                cosine_floor=embedder.cosine_floor,
            ),
        )
        counter = load_token_counter(self.embedder_settings())
        assert counter.tokenizer_id == embedder.tokenizer_id
        assert counter.count_tokens(TEXTS) == embedder.count_tokens(TEXTS)

    def test_passages_become_unit_vectors_in_the_order_given(self, embedder: Embedder) -> None:
        vectors = embedder.embed_passages(TEXTS)
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), embedder.dimension)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert self.same(embedder.embed_passages(TEXTS[::-1]), vectors[::-1])

    def test_no_passages_give_no_vectors(self, embedder: Embedder) -> None:
        assert embedder.embed_passages([]).shape == (0, embedder.dimension)

    def test_neighbours_do_not_change_a_vector_where_documents_may_be_mixed(self, embedder: Embedder) -> None:
        assert embedder.mixes_documents
        alone = np.concatenate([embedder.embed_passages([text]) for text in TEXTS])
        assert self.same(alone, embedder.embed_passages(TEXTS))

    def test_equal_texts_have_equal_vectors(self, embedder: Embedder) -> None:
        first, other, second = embedder.embed_passages([TEXTS[0], TEXTS[1], TEXTS[0]])
        assert self.same(first, second)
        assert not self.same(first, other)

    def test_a_query_becomes_one_unit_vector(self, embedder: Embedder) -> None:
        vector = embedder.embed_query("who is on call?")
        assert (str(vector.dtype), vector.shape) == ("float32", (embedder.dimension,))
        assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)
        assert self.same(vector, embedder.embed_query("who is on call?"))

    @pytest.mark.parametrize("blank", ["", " ", "\n\t \r\n", "\u2003"])
    def test_a_blank_text_has_no_vector(self, embedder: Embedder, blank: str) -> None:
        with pytest.raises(ValueError, match="text 1 is empty or blank"):
            embedder.embed_passages(["fine", blank])
        with pytest.raises(ValueError, match="blank query"):
            embedder.embed_query(blank)

    def test_lone_surrogates_are_refused(self, embedder: Embedder) -> None:
        with pytest.raises(ValueError, match="surrogates"):
            embedder.embed_passages(["a \ud800 b"])
        with pytest.raises(ValueError, match="surrogates"):
            embedder.embed_query("a \ud800 b")

    def test_the_longest_text_is_taken_whole_and_a_longer_one_refused(self, embedder: Embedder) -> None:
        longest, longer = (" ".join(["one"] * n) for n in (embedder.max_tokens, embedder.max_tokens + 1))
        assert embedder.count_tokens([longest, longer]) == [embedder.max_tokens, embedder.max_tokens + 1]
        changed = longest.removesuffix("one") + "zebra"
        assert embedder.count_tokens([changed])[0] >= embedder.max_tokens
        last_word_counts = longest.removesuffix("one") + "two"
        both = embedder.embed_passages([longest, last_word_counts])
        assert not self.same(both[0], both[1])
        with pytest.raises(ValueError, match=f"text 0 has {embedder.max_tokens + 1} tokens"):
            embedder.embed_passages([longer])

    def test_a_query_that_is_too_long_is_cut(self, embedder: Embedder) -> None:
        words = ["one"] * embedder.max_tokens
        vector = embedder.embed_query(" ".join([*words, *words]))
        assert np.allclose(
            vector, embedder.embed_query(" ".join([*words, "two", "three", "four"])), atol=0.02
        )

    def test_counting_cuts_nothing_and_adds_nothing(self, embedder: Embedder) -> None:
        assert embedder.count_tokens([]) == []
        assert embedder.count_tokens([""]) == [0]
        [one, many] = embedder.count_tokens(["one", " ".join(["one"] * 5000)])
        assert many == 5000 * one

    def test_threads_may_call_at_once(self, embedder: Embedder) -> None:
        expected = embedder.embed_passages(TEXTS)
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(embedder.embed_passages, [TEXTS] * 8))
        assert all(self.same(result, expected) for result in results)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(text=st.text(max_size=80))
    def test_any_text_has_a_vector_or_a_reason(self, embedder: Embedder, text: str) -> None:
        try:
            vector = embedder.embed_passages([text])[0]
        except ValueError:
            assert not text.strip() or _has_surrogates(text)
        else:
            assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)

    @pytest.mark.parametrize(("text", "related", "unrelated"), ENGLISH)
    def test_related_texts_lie_nearer_than_unrelated_ones(
        self, embedder: Embedder, text: str, related: str, unrelated: str
    ) -> None:
        near, far = margins(embedder, text, related, unrelated)
        assert near > far + 0.05

    def test_the_cosine_floor_is_below_related_texts(self, embedder: Embedder) -> None:
        text, related, _ = ENGLISH[0]
        assert -1 <= embedder.cosine_floor < margins(embedder, text, related, related)[0] < 1


def margins(embedder: Embedder, query: str, related: str, unrelated: str) -> tuple[float, float]:
    """Cosine of the query with the related and with the unrelated passage."""
    near, far = embedder.embed_passages([related, unrelated]) @ embedder.embed_query(query)
    return float(near), float(far)


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
