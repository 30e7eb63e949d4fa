"""Settings of the query service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from indexers.domain.sources import RANK_MAX, SOURCE_RANKS
from indexers.settings import Label, Section
from search_api.overlays import partial_of
from search_api.ranking_settings import Fusion, RankingRules

__all__ = ["QUERY_MAX_CHARS", "ApiSettings", "Fusion", "LimitsSettings", "SearchSettings", "TenantRanking"]

#: No setting lets a longer query in.
QUERY_MAX_CHARS: Final = 20_000

if TYPE_CHECKING:

    class TenantRanking(Section):
        """Any fields of `RankingRules`: what they are for one tenant."""

        def __init__(self, **fields: Any) -> None: ...
else:
    TenantRanking = partial_of(RankingRules, "TenantRanking", strict=False)


class ApiSettings(Section):
    host: str = Field("127.0.0.1", description="Address the query service listens on.")
    port: int = Field(8470, ge=0, le=65_535, description="Port of the query service.")
    keys_file: Path | None = Field(None, description="API keys (JSON); empty: keys.json in the data folder.")
    secret_file: Path | None = Field(
        None,
        description="The installation's secret, the same for all replicas; empty: installation-secret in the data "
        "folder, made where it is missing.",
    )
    key_cache_seconds: float = Field(
        5.0, gt=0, le=60, description="A revoked key or a suspended tenant may go on for so long."
    )
    request_timeout_seconds: float = Field(10.0, gt=0, description="Longest time one request may take.")
    body_max_bytes: int = Field(1_048_576, ge=1_024, description="Largest request body; more is 413.")
    memory_max_chars: int = Field(
        200_000, ge=100, le=200_000, description="Longest content of one memory, characters."
    )


class LimitsSettings(Section):
    """What one tenant may ask of one process of the query service; its own limits stand in the tenants' register."""

    requests_per_second: float = Field(
        1_000.0,
        ge=0,
        le=1e9,
        description="Requests of a tenant, lasting; 0: no limit. Per process, like all here.",
    )
    requests_burst: int = Field(5_000, ge=1, le=10**9, description="Requests of a tenant at once.")
    writes_per_second: float = Field(
        500.0, ge=0, le=1e9, description="Memory writes of a tenant, lasting; 0: no limit."
    )
    writes_burst: int = Field(5_000, ge=1, le=10**9, description="Memory writes of a tenant at once.")
    bytes_per_day: int = Field(
        10_737_418_240,
        ge=0,
        le=10**15,
        description="Text that a tenant may write in a day, bytes; 0: no limit.",
    )


class SearchSettings(RankingRules):
    """The retrieval; docs/reference/search.md gives the rules. A request may change what `RankingRules` holds."""

    page_size: int = Field(10, ge=1, description="Hits of a page unless the request says so.")
    page_size_max: int = Field(100, ge=1, description="Largest page.")
    query_max_chars: int = Field(2_000, ge=10, le=QUERY_MAX_CHARS, description="Longest query, characters.")
    content_page_chars: int = Field(
        65_536, ge=1_000, description="Largest page of a document's content, characters."
    )
    excerpt_max_chars: int = Field(320, ge=40, le=4_000, description="Longest excerpt of a hit, characters.")
    filter_ids_max: int = Field(
        5_000,
        ge=100,
        le=10_000,
        description="Up to so many passing documents filters are exact for vectors; beyond, they come last.",
    )
    query_cache_entries: int = Field(
        1_024, ge=0, description="Query vectors kept in memory (per tenant and text)."
    )
    source_ranks: dict[str, Annotated[int, Field(ge=0, le=RANK_MAX)]] = Field(
        dict(SOURCE_RANKS), description="Source of a document → rank 0..9; others count as `unknown`."
    )
    tenants: dict[Label, TenantRanking] = Field(
        default_factory=dict,
        description="Tenant → fields of this section that are otherwise for it (those that a request may change).",
    )
