"""The query service is thin, its cache is per tenant, and its description is whole."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from indexers.domain.identity import AgentId, Principal, TenantId
from indexers.ports import Vectors
from indexers.settings import EmbedderSettings
from search_api.app import openapi_document
from search_api.retrieval.query_vectors import QueryVectors
from search_api.wiring import query_embedder


def test_importing_the_query_service_loads_no_torch_and_no_faust() -> None:
    code = (
        "import sys, search_api.serve, search_api.app, hopline.client, hopline.cli.api;"
        "print(sorted(m for m in ('torch', 'faust', 'mode', 'sentence_transformers', 'transformers')"
        " if m in sys.modules))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "[]"


class CountingEmbedder:
    """An embedder that counts its calls."""

    model_id = pair_id = tokenizer_id = "counting"
    dimension, max_tokens, cosine_floor, mixes_documents = 2, 512, 0.0, True

    def __init__(self) -> None:
        self.texts: list[str] = []

    def count_tokens(self, texts: object) -> list[int]:
        raise NotImplementedError

    def embed_passages(self, texts: object) -> Vectors:
        raise NotImplementedError

    def embed_query(self, text: str) -> Vectors:
        self.texts.append(text)
        return np.array([len(text), 0], np.float32)


def who(tenant: str) -> Principal:
    return Principal(tenant_id=TenantId(tenant), agent_id=AgentId("ada"))


async def was_known(vectors: QueryVectors, tenant: str, text: str) -> bool:
    making, known = vectors.begin(who(tenant), text)
    assert (await making).tolist() == [len(text), 0]
    return known


async def test_a_query_is_embedded_once_a_tenant_and_the_cache_stays_small() -> None:
    embedder = CountingEmbedder()
    with ThreadPoolExecutor(1) as executor:
        vectors = QueryVectors(embedder, executor, entries=2)
        asked = (("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"))
        known = [await was_known(vectors, tenant, text) for tenant, text in asked]
    assert known == [False, True, False, False, False]
    assert embedder.texts == ["x", "x", "y", "x"]


async def test_a_cache_of_no_entries_is_none() -> None:
    embedder = CountingEmbedder()
    with ThreadPoolExecutor(1) as executor:
        vectors = QueryVectors(embedder, executor, entries=0)
        assert [await was_known(vectors, "a", "x") for _ in range(2)] == [False, False]


def test_queries_use_the_light_half_of_a_pair() -> None:
    assert query_embedder(EmbedderSettings(backend="torch", device="cuda")).backend == "onnx"
    assert query_embedder(EmbedderSettings()) == EmbedderSettings()
    other = EmbedderSettings(backend="torch", model="/models/another")
    assert query_embedder(other) == other


def test_the_description_names_every_problem_and_the_key() -> None:
    document = openapi_document()
    assert document["openapi"].startswith("3.1")
    open_paths = {"/healthz", "/readyz", "/metrics"}
    for path, methods in document["paths"].items():
        for route in methods.values():
            assert route["summary"]
            assert route["description"]
            assert ("security" in route) is (path not in open_paths)
            assert all(answer["description"] for answer in route["responses"].values())
            assert {"405", "500"} <= set(route["responses"])
            if path not in open_paths:
                assert {"401", "422", "503"} <= set(route["responses"])
    assert "ProblemAnswer" in document["components"]["schemas"]
    assert "HTTPValidationError" not in document["components"]["schemas"]
