"""Before the first agent starts: the secret, the keys, the topics, the indices and the tenants.

A process of its own (`python -m hopline.local.bootstrap`): it loads the embedder once to learn its
vector space, and the supervisor stays small.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Iterable
from datetime import UTC, datetime

from hopline.local_key import (
    LOCAL_TENANT,
    installation_secret,
    read_local_key,
    read_operator_key,
    write_local_key,
    write_operator_key,
)
from hopline.settings import Settings, load_settings
from indexers.domain.identity import INSTALLATION, AgentId, Principal
from indexers.embedders.factory import load_embedder
from indexers.errors import HoplineError
from indexers.opensearch.gate import Gate
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from indexers.taken_embedder import taken_for_live
from search_api.identity.register import Entry, tenant_register
from search_api.identity.stored import StoredTenant
from search_api.keys import generate_key, key_digest, read_keys, store_key
from search_api.wiring import query_embedder
from streams.admin import ensure_topics
from streams.topics import Topics

LOCAL_AGENT = AgentId("me")
LOCAL_USER = Principal(tenant_id=LOCAL_TENANT, agent_id=LOCAL_AGENT, roles=("agent", "curator", "admin"))
#: Makes tenants and keys of any tenant, and sees no tenant's memory.
OPERATOR = Principal(tenant_id=INSTALLATION, agent_id=AgentId("operator"), roles=("admin",))
_ATTEMPTS = 5


def ensure_keys(settings: Settings) -> None:
    """The installation's secret, the local user's key and an operator's, where they are missing."""
    installation_secret(settings)
    ensure_local_key(settings)
    ensure_operator_key(settings)


def ensure_local_key(settings: Settings) -> bool:
    """The local user's key, in the key file and beside the data. True when one was made."""
    data_dir = settings.local.data_dir
    key = read_local_key(data_dir)
    if _is_known(settings, key):
        return False
    key = key or generate_key()
    store_key(settings.keys_file, key, LOCAL_USER)
    write_local_key(data_dir, key)
    return True


def ensure_operator_key(settings: Settings) -> bool:
    """An operator's key, likewise."""
    data_dir = settings.local.data_dir
    key = read_operator_key(data_dir)
    if _is_known(settings, key):
        return False
    key = key or generate_key()
    store_key(settings.keys_file, key, OPERATOR)
    write_operator_key(data_dir, key)
    return True


async def ensure_topics_and_indices(settings: Settings, tenants: Iterable[str]) -> None:
    """All are left as they are where they exist. Raises ConfigurationError on a mismatch (another model)."""
    await ensure_topics(settings.kafka, settings.kafka_servers, Topics(settings.prefix))
    retry = RetryPolicy(attempts=_ATTEMPTS)
    gate = gate_at(settings.opensearch_url, settings.opensearch, prefix=settings.prefix, retry=retry)
    try:
        found, _ = await taken_for_live(settings.embedder, gate)
        # The query service's: it needs no GPU, and lies in the same space.
        embedder = await asyncio.to_thread(load_embedder, query_embedder(found))
        await gate.ensure_indices(
            dimension=embedder.dimension, pair_id=embedder.pair_id, cosine_floor=embedder.cosine_floor
        )
        await ensure_tenants(gate, tenants)
    finally:
        await gate.close()


def vault_tenants(settings: Settings) -> tuple[str, ...]:
    return tuple(root.tenant for root in settings.vaults)


async def ensure_tenants(gate: Gate, names: Iterable[str]) -> None:
    """The tenants stand in the register; what stands there stays."""
    register = tenant_register(gate)
    for name in dict.fromkeys(names):
        if await register.read(name) is None:
            by, at = f"{INSTALLATION}/{OPERATOR.agent_id}", datetime.now(UTC)
            tenant = StoredTenant(tenant=name, created_at=at, created_by=by)
            await register.add(Entry(key=name, name=name, value=tenant, by=by, at=at))


def main() -> None:
    try:
        settings = load_settings()
        ensure_keys(settings)
        # The local user's, and those of the vaults.
        asyncio.run(ensure_topics_and_indices(settings, (LOCAL_TENANT, *vault_tenants(settings))))
    except HoplineError as exc:
        sys.exit(str(exc))


def _is_known(settings: Settings, key: str | None) -> bool:
    known = {entry.sha256 for entry in read_keys(settings.keys_file)}
    return key is not None and any(secrets.compare_digest(key_digest(key), digest) for digest in known)


if __name__ == "__main__":
    main()
