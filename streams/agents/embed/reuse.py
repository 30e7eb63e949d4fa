"""Vectors that exist already: the same text under the same model is not computed twice within a tenant."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from indexers.domain.identity import Principal, TenantId
from indexers.domain.lead import Vector
from indexers.opensearch.gate import Gate, GatedSearch
from indexers.opensearch.rows import Index

VectorKey = tuple[TenantId, str]
#: Hashes of one search. Its answer may hold as many vectors, 4 to 8 kB each as JSON.
HASHES_MAX = 500
SEARCHES_MAX = 4


async def stored_vectors(gate: Gate, keys: Sequence[VectorKey], model_id: str) -> dict[VectorKey, Vector]:
    """What a search shows: rows of the last second may be missing."""
    by_tenant: defaultdict[TenantId, list[str]] = defaultdict(list)
    for tenant_id, chunk_hash in dict.fromkeys(keys):
        by_tenant[tenant_id].append(chunk_hash)
    searches = [
        (tenant_id, _search(tenant_id, hashes[start : start + HASHES_MAX], model_id))
        for tenant_id, hashes in by_tenant.items()
        for start in range(0, len(hashes), HASHES_MAX)
    ]
    found: dict[VectorKey, Vector] = {}
    for start in range(0, len(searches), SEARCHES_MAX):
        part = searches[start : start + SEARCHES_MAX]
        for (tenant_id, _), page in zip(part, await gate.search_many([s for _, s in part]), strict=True):
            for hit in page.hits:
                found[tenant_id, hit.source["chunk_hash"]] = own_vector(hit.source)
    return found


def own_vector(row: Mapping[str, Any]) -> Vector:
    """(dimension,), of length 1: that of the chunk's text alone, of a row's `vector` and `own_vector`."""
    own = row.get("own_vector")
    if own is None:
        return np.asarray(row["vector"], np.float32)
    return np.frombuffer(base64.b64decode(own), "<f4").astype(np.float32)


def packed(vector: Vector) -> str:
    """What `own_vector` reads: float32, little endian, base64."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def _search(tenant_id: TenantId, hashes: Sequence[str], model_id: str) -> GatedSearch:
    """One hit of each hash. Tenant-wide: a vector tells no more than the text that the asker has."""
    body: Mapping[str, Any] = {
        "query": {
            "bool": {"filter": [{"terms": {"chunk_hash": list(hashes)}}, {"term": {"model_id": model_id}}]}
        },
        "collapse": {"field": "chunk_hash"},
        "size": len(hashes),
        "_source": ["chunk_hash", "vector", "own_vector"],
    }
    return GatedSearch(principal=Principal.pipeline(tenant_id), index=Index.CHUNKS, body=body)
