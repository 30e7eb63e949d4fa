"""The one place where a gate is made."""

from __future__ import annotations

from indexers.opensearch.calls import Observer
from indexers.opensearch.connect import connect
from indexers.opensearch.gate import Gate, ignore_fact
from indexers.opensearch.names import IndexNames
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import OpenSearchSettings


def gate_at(
    url: str,
    settings: OpenSearchSettings,
    *,
    prefix: str,
    retry: RetryPolicy,
    observe: Observer = ignore_fact,
) -> Gate:
    """Over a client of its own; nothing is connected yet. The caller closes it."""
    names = IndexNames(prefix=prefix, dedicated_tenants=settings.dedicated_tenants)
    return Gate(connect(settings, url), names, retry=retry, settings=settings, observe=observe)
