"""What calls of the models cost, as metrics: the same in every process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from indexers.watched import MODELS, ModelCalled

_SECONDS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class ModelMetrics:
    """`observe` is the models' observer. Built once in a process, on the registry that /metrics shows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "hopline_model_seconds",
            "Time of one call of a model.",
            ("model",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._texts = Counter(
            "hopline_model_texts_total",
            "Texts (embedder) or windows of text (extractor) that a model was given.",
            ("model",),
            registry=registry,
        )
        for model in MODELS:
            self._seconds.labels(model=model)
            self._texts.labels(model=model)
        registry.register(GpuMemory())

    def observe(self, fact: ModelCalled) -> None:
        """From any thread."""
        self._seconds.labels(model=fact.model).observe(fact.seconds)
        self._texts.labels(model=fact.model).inc(fact.texts)


class GpuMemory(Collector):
    """Shown only where this process' torch is at a GPU; nothing is imported for it."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return
        family = _gpu_family()
        held = sum(torch.cuda.memory_reserved(device) for device in range(torch.cuda.device_count()))
        family.add_metric((), float(held))
        yield family

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield _gpu_family()


def _gpu_family() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "hopline_model_gpu_memory_bytes",
        "GPU memory that the process' torch holds, used or kept for later; only where it uses CUDA.",
        labels=(),
    )
