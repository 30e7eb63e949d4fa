"""Whether a reindex is open: the supervisor starts a second group of embed workers for it."""

from __future__ import annotations

import asyncio
from typing import Final

from hopline.settings import Settings
from indexers.errors import HoplineError
from indexers.opensearch.gate import Gate
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy

#: The supervisor has others to look after.
_LOOK_SECONDS: Final = 2.0


class ReindexLook:
    """One client for all looks, made with the first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._gate: Gate | None = None

    async def is_open(self) -> bool | None:
        """None: the store doesn't say."""
        settings = self._settings
        if self._gate is None:
            self._gate = gate_at(
                settings.opensearch_url,
                settings.opensearch,
                prefix=settings.prefix,
                retry=RetryPolicy.once(),
            )
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return (await self._gate.generations()).fed is not None
        except (HoplineError, TimeoutError):
            return None

    async def close(self) -> None:
        if self._gate is not None:
            await self._gate.close()
