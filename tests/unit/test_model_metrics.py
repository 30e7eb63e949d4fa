"""Calls of models are counted at the edge, whatever model it is."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from indexers.embedders.factory import load_embedder
from indexers.model_metrics import ModelMetrics
from indexers.settings import EmbedderSettings
from indexers.watched import ModelCalled, WatchedEmbedder


def test_each_answered_call_of_an_embedder_is_told_of() -> None:
    told: list[ModelCalled] = []
    plain = load_embedder(EmbedderSettings())
    watched = WatchedEmbedder(embedder=plain, observe=told.append)
    passages = watched.embed_passages(["payouts run at six", "retries are safe"])
    watched.embed_query("when do payouts run")
    with pytest.raises(ValueError, match="blank"):
        watched.embed_passages([" "])
    assert passages.shape == (2, plain.dimension)
    assert [(fact.model, fact.texts) for fact in told] == [("embedder", 2), ("embedder", 1)]
    assert all(fact.seconds > 0 for fact in told)


def test_calls_and_texts_are_counted_by_model() -> None:
    registry = CollectorRegistry()
    metrics = ModelMetrics(registry)
    metrics.observe(ModelCalled(model="extractor", texts=16, seconds=0.2))
    metrics.observe(ModelCalled(model="extractor", texts=4, seconds=0.1))
    value = registry.get_sample_value
    assert value("hopline_model_texts_total", {"model": "extractor"}) == 20
    assert value("hopline_model_seconds_count", {"model": "extractor"}) == 2
    assert value("hopline_model_texts_total", {"model": "embedder"}) == 0


def test_gpu_memory_is_shown_only_where_torch_uses_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for torch, whose extra of 5 GB isn't installed here: only what the collector asks it."""
    registry = CollectorRegistry()
    ModelMetrics(registry)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert b"gpu_memory" not in generate_latest(registry)
    held = {0: 1_000, 1: 24}
    cuda = SimpleNamespace(
        is_initialized=lambda: False, device_count=lambda: 2, memory_reserved=held.__getitem__
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert b"gpu_memory" not in generate_latest(registry)
    cuda.is_initialized = lambda: True
    assert registry.get_sample_value("hopline_model_gpu_memory_bytes") == 1_024
