"""Before the first agent starts: the tenant's key, the topics and the indices.

A process of its own (`python -m hopline.local.bootstrap`): it loads the embedder once to learn its
vector space, and the supervisor stays small.
"""

from __future__ import annotations

import asyncio
import secrets
import sys

from hopline.local_key import read_local_key, write_local_key
from hopline.settings import Settings, load_settings
from indexers.domain.identity import AgentId, Principal, TenantId
from indexers.embedders.factory import load_embedder
from indexers.errors import HoplineError
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from search_api.keys import generate_key, key_digest, read_keys, store_key
from streams.admin import ensure_topics
from streams.topics import Topics

LOCAL_TENANT = TenantId("local")
LOCAL_AGENT = AgentId("me")
_ATTEMPTS = 5


def ensure_local_key(settings: Settings) -> bool:
    """The local user's key, in the key file and beside the data. True when one was made."""
    data_dir, keys_file = settings.local.data_dir, settings.keys_file
    key = read_local_key(data_dir)
    known = {entry.sha256 for entry in read_keys(keys_file)}
    if key is not None and any(secrets.compare_digest(key_digest(key), digest) for digest in known):
        return False
    key = key or generate_key()
    principal = Principal(tenant_id=LOCAL_TENANT, agent_id=LOCAL_AGENT, roles=("agent", "curator", "admin"))
    store_key(keys_file, key, principal)
    write_local_key(data_dir, key)
    return True


async def ensure_topics_and_indices(settings: Settings) -> None:
    """Both are left as they are where they exist. Raises ConfigurationError on a mismatch (another model)."""
    await ensure_topics(settings.kafka, settings.kafka_servers, Topics(settings.prefix))
    embedder = await asyncio.to_thread(load_embedder, settings.embedder)
    retry = RetryPolicy(attempts=_ATTEMPTS)
    gate = gate_at(settings.opensearch_url, settings.opensearch, prefix=settings.prefix, retry=retry)
    try:
        await gate.ensure_indices(
            dimension=embedder.dimension, pair_id=embedder.pair_id, cosine_floor=embedder.cosine_floor
        )
    finally:
        await gate.close()


def main() -> None:
    try:
        settings = load_settings()
        ensure_local_key(settings)
        asyncio.run(ensure_topics_and_indices(settings))
    except HoplineError as exc:
        sys.exit(str(exc))


if __name__ == "__main__":
    main()
