"""Settings of the indexing side: nested models of `hopline.settings.Settings`; unknown keys are refused."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from indexers.domain.frontmatter import DOC_TYPES, DocType
from indexers.domain.health import BUILT_IN, RULE_NAMES, HealthRules, Rule, check_patterns
from indexers.domain.identity import INSTALLATION, LABEL_PATTERN, AgentId, Namespace, Scope, TeamId, TenantId

Label = Annotated[str, Field(pattern=f"^{LABEL_PATTERN}$")]
Patterns = Annotated[tuple[str, ...], AfterValidator(check_patterns)]


class Section(BaseModel):
    """One group of settings: frozen, closed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OpenSearchSettings(Section):
    url: str | None = Field(None, description="Existing OpenSearch to use; empty: `hopline up` starts one.")
    username: str | None = Field(None, description="Basic authentication user.")
    password: SecretStr | None = Field(None, description="Basic authentication password.")
    ca_file: Path | None = Field(None, description="CA bundle for https.")
    cert_file: Path | None = Field(None, description="Client certificate for https (PEM).")
    key_file: Path | None = Field(None, description="Its private key; empty: in the same file.")
    timeout_seconds: float = Field(10.0, gt=0, description="Limit of one request.")
    pool_size: int = Field(16, ge=1, description="Connections held open by one process.")
    shards: int = Field(1, ge=1, description="Primary shards of a newly created index.")
    replicas: int = Field(0, ge=0, description="Replicas of a newly created index.")
    bulk_max_bytes: int = Field(8_000_000, ge=100_000, description="Largest bulk request body, bytes.")
    bulk_max_rows: int = Field(1_000, ge=1, description="Most rows of one bulk request.")
    dedicated_tenants: dict[str, str] = Field(
        default_factory=dict, description="Tenant → suffix of indices of its own (a large tenant)."
    )


class EmbedderSettings(Section):
    backend: Literal["onnx", "torch"] = Field("onnx", description="onnx: CPU, light. torch: extra `gpu`.")
    model: str | None = Field(
        None,
        description="Folder (for torch also a hub id); empty: the shipped model, or its GPU pair for torch.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="auto: CUDA where there is one, else CPU."
    )
    threads: int = Field(1, ge=1, description="Threads of one model call on CPU.")
    precision: Literal["fp32", "fp16", "bf16"] = Field(
        "fp32", description="torch only: part of the model id."
    )
    batch_texts: int | None = Field(
        None, ge=1, description="Texts of one model call; empty: 1 for onnx, 64 for torch."
    )
    cpu_affinity: tuple[int, ...] = Field((), description="Cores the model is pinned to; empty: not pinned.")


class ExtractorSettings(Section):
    backend: Literal["onnx", "torch"] = Field("onnx", description="onnx: CPU, light. torch: extra `gpu`.")
    model: str | None = Field(
        None, description="GLiNER model: folder (for torch also a hub id); empty: the shipped one."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="torch only. auto: CUDA where there is one, else CPU."
    )
    threads: int = Field(1, ge=1, description="Threads of one model call on CPU.")
    batch_windows: int | None = Field(
        None, ge=1, description="Most windows of one model call; empty: 1 for int8, 16 for float models."
    )
    cpu_affinity: tuple[int, ...] = Field((), description="Cores the model is pinned to; empty: not pinned.")


class HealthRule(Section):
    """One rule and the types of documents that it judges."""

    penalty: float = Field(ge=0, le=1, description="What it takes off the health; 0: never.")
    doc_types: tuple[DocType, ...] = Field(("memory",), description="Types of documents that it judges.")


class LengthRule(HealthRule):
    characters: int = Field(ge=0, description="The length in question; wide (East Asian) ones count as two.")


class PatternsRule(HealthRule):
    patterns: Patterns | None = Field(None, description="Regular expressions; empty: the built-in ones.")


class PenaltyOverride(Section):
    """Another rule's value for one type of document, which the rule then judges; what is left out stays."""

    penalty: float | None = Field(None, ge=0, le=1)


class LengthOverride(PenaltyOverride):
    characters: int | None = Field(None, ge=0)


class PatternsOverride(PenaltyOverride):
    patterns: Patterns | None = None


class HealthOverride(Section):
    short: LengthOverride | None = None
    long: LengthOverride | None = None
    transient: PatternsOverride | None = None
    reference: PatternsOverride | None = None
    untagged: PenaltyOverride | None = None


class HealthSettings(Section):
    """Rules of DESIGN §7: what makes a text less fit to be found again. `rules` is what the domain works with."""

    start: float = Field(1.0, gt=0, le=1, description="Health of a document that breaks no rule.")
    floor: float = Field(0.1, ge=0, le=1, description="No document's health is below.")
    short: LengthRule = LengthRule(penalty=0.4, characters=30)
    long: LengthRule = LengthRule(penalty=0.2, characters=500)
    transient: PatternsRule = PatternsRule(penalty=0.35)
    reference: PatternsRule = PatternsRule(penalty=0.4)
    untagged: HealthRule = HealthRule(penalty=0.15)
    overrides: dict[DocType, HealthOverride] = Field(
        default_factory=dict,
        description="Type of document → rule → penalty, characters or patterns of its own.",
    )

    @model_validator(mode="after")
    def _floor_under_start(self) -> HealthSettings:
        if self.floor > self.start:
            msg = f"floor {self.floor} is above start {self.start}"
            raise ValueError(msg)
        return self

    @cached_property
    def rules(self) -> HealthRules:
        by_doc_type: dict[str, tuple[Rule, ...]] = {
            doc_type: self._rules_of(doc_type) for doc_type in DOC_TYPES
        }
        return HealthRules(start=self.start, floor=self.floor, by_doc_type=by_doc_type)

    def _rules_of(self, doc_type: DocType) -> tuple[Rule, ...]:
        overrides = self.overrides.get(doc_type, HealthOverride())
        found: list[Rule] = []
        for name in RULE_NAMES:
            base: HealthRule = getattr(self, name)
            override: PenaltyOverride | None = getattr(overrides, name)
            if override is None and doc_type not in base.doc_types:
                continue
            values = base.model_dump(exclude={"doc_types"}, exclude_none=True)
            values |= {} if override is None else override.model_dump(exclude_none=True)
            found.append(Rule(name=name, **({"patterns": BUILT_IN.get(name, ())} | values)))
        return tuple(found)


class IndexingSettings(Section):
    health: HealthSettings = HealthSettings()
    inline_max_bytes: int = Field(262_144, ge=1_024, description="Larger files travel as a reference, bytes.")
    document_max_bytes: int = Field(
        262_144, ge=4_096, description="Text indexed of one file, bytes; the rest is left out and counted."
    )
    chunk_max_tokens: int = Field(128, ge=16, le=500, description="Longest chunk, tokens of the embedder.")
    frontmatter_max_bytes: int = Field(65_536, ge=1_024, description="Larger frontmatter is body text.")
    name_in_degree_max: int = Field(
        60,
        ge=1,
        le=1_000,
        description="A title or alias that more texts of one scope say is common: no unlinked mentions of it.",
    )
    tombstone_days: int = Field(
        45,
        ge=38,
        description="Days for which a deletion is remembered: over 30 (replays) and 7 (the topics' retention).",
    )


class VaultRoot(Section):
    """One folder of Markdown files and the namespace that owns it."""

    name: Label = Field(description="Name of the root in commands and logs.")
    path: Path = Field(description="Folder of the vault.")
    tenant: Label = Field("local", description="Tenant that owns the vault.")
    agent: Label = Field("me", description="Agent that writes it.")
    scope: Scope = Field(Scope.SHARED, description="personal, team or shared.")
    team: Label | None = Field(None, description="Team, for scope `team` only.")

    @field_validator("tenant")
    @classmethod
    def _is_a_tenant(cls, name: str) -> str:
        if name == INSTALLATION:
            msg = f"{name!r} is the installation's own tenant and has no documents: give another one"
            raise ValueError(msg)
        return name

    @model_validator(mode="after")
    def _team_fits_scope(self) -> VaultRoot:
        _ = self.namespace
        return self

    @property
    def namespace(self) -> Namespace:
        return Namespace(
            tenant_id=TenantId(self.tenant),
            agent_id=AgentId(self.agent),
            scope=self.scope,
            team_id=None if self.team is None else TeamId(self.team),
        )


class MemoriesSettings(Section):
    enabled: bool = Field(
        default=True, description="Take memories of agents that have no vault root, into the memory tree."
    )
    folder: Path | None = Field(
        None,
        description="The memory tree: a folder for each tenant, scope and agent; empty: memories in the data folder.",
    )
