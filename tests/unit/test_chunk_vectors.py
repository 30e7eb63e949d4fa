"""What is stored of a chunk's vector: its own, its document's lead in it, and the scores that come of both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.lead import LEAD_SHARE, Vector, searched_vector
from search_api.retrieval.legs import inner_product
from streams.agents.embed.reuse import own_vector, packed


def unit(seed: int) -> Vector:
    vector = np.random.default_rng(seed).normal(size=384).astype(np.float32)
    unit_vector: Vector = vector / np.linalg.norm(vector)
    return unit_vector


@given(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(0, 2**32))
def test_the_inner_product_is_the_mixture_of_both_cosines(own: int, lead: int, query: int) -> None:
    a, b, q = unit(own), unit(lead), unit(query)
    cosines = float(a @ q), float(b @ q)
    score = float(searched_vector(a, b) @ q)
    assert score == pytest.approx((cosines[0] + LEAD_SHARE * cosines[1]) / (1 + LEAD_SHARE), abs=1e-6)
    assert min(cosines) - 1e-6 <= score <= max(cosines) + 1e-6


def test_a_lead_is_searched_as_it_is() -> None:
    lead = unit(1)
    assert searched_vector(lead, lead) is lead


def test_an_own_vector_comes_back_bit_for_bit() -> None:
    own, lead = unit(1), unit(2)
    row = {"vector": searched_vector(own, lead).tolist(), "own_vector": packed(own)}
    assert own_vector(row).tobytes() == own.tobytes()
    assert own_vector({"vector": own.tolist()}).tobytes() == own.tobytes()


@given(st.floats(-1, 1))
def test_the_engines_score_gives_the_inner_product_back(product: float) -> None:
    score = 1 + product if product >= 0 else 1 / (1 - product)
    assert inner_product(score) == pytest.approx(product, abs=1e-9)
