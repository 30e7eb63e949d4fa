"""Settings of the streaming side."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from indexers.settings import Section


class KafkaSettings(Section):
    bootstrap_servers: str | None = Field(
        None, description="Existing brokers, host:port[,host:port]; empty: `hopline up` starts one."
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="How to talk to the brokers."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "PLAIN", description="How user and password are shown."
    )
    sasl_username: str | None = Field(None, description="SASL user.")
    sasl_password: SecretStr | None = Field(None, description="SASL password.")
    ca_file: Path | None = Field(None, description="CA bundle for SSL; empty: the system's.")
    cert_file: Path | None = Field(None, description="Client certificate for SSL (PEM).")
    key_file: Path | None = Field(None, description="Its private key; empty: in the same file.")
    partitions: int = Field(4, ge=1, description="Partitions of a newly created topic.")
    replication_factor: int = Field(1, ge=1, description="Replicas of a newly created topic.")
    max_message_bytes: int = Field(2_097_152, ge=65_536, description="Largest record, bytes.")
    session_timeout_seconds: float = Field(
        10.0,
        gt=1,
        description="After this silence a worker's partitions move. With `instance_id`: longer than a restart takes.",
    )
    commit_interval_seconds: float = Field(
        0.2, gt=0, description="How often confirmed offsets are committed."
    )
    request_timeout_seconds: float = Field(10.0, ge=1, description="Limit of one request to a broker.")


class AgentSettings(Section):
    """One agent process; set per agent: HOPLINE_INGEST__…, HOPLINE_EMBED__…, HOPLINE_EXTRACT__…, HOPLINE_LINK__…."""

    batch_records: int = Field(200, ge=1, description="Most records of one batch.")
    batch_seconds: float = Field(0.1, gt=0, description="Longest wait for a batch to fill.")
    batch_bytes: int = Field(
        8_000_000, ge=65_536, description="Largest batch by the size of its records, bytes."
    )
    instance_id: str | None = Field(
        None,
        min_length=1,
        description="This worker's own name, the same after a restart, which then disturbs no other.",
    )
    http_host: str = Field("127.0.0.1", description="Where /metrics, /livez, /readyz listen.")
    http_port: int = Field(0, ge=0, le=65_535, description="0: any free port.")
    stop_grace_seconds: float = Field(20.0, ge=0, description="On SIGTERM: time for the batch in flight.")
    niceness: int = Field(
        0,
        ge=0,
        le=19,
        description="How far the process gives way to others on the CPU (nice); 0: not at all.",
    )
    liveness_seconds: float = Field(
        120.0, gt=0, description="No progress with work waiting for this long: /livez fails."
    )
    retry_max_seconds: float = Field(
        5.0, gt=0, description="Longest pause between two tries of a held batch."
    )
    vault_patience_seconds: float = Field(
        600.0,
        ge=0,
        description="Longest wait for a vault root that is away; then its records are dead letters until it is back.",
    )
    poison_run: int = Field(
        1_000,
        ge=0,
        description="Dead letters in a row, no good record between, from which on the agent slows down; 0: never.",
    )
    poison_pause_seconds: float = Field(30.0, gt=0, description="Pause before each batch of such a run.")


class WatcherSettings(Section):
    debounce_ms: int = Field(200, ge=10, description="Quiet time after which a burst of changes is read, ms.")
    rescan_seconds: float = Field(
        900.0, gt=0, description="Full comparison of vault and index, every so often."
    )
    force_polling: bool = Field(
        default=False, description="For file systems without change events (NFS, SMB)."
    )
    removal_guard_ratio: float = Field(
        0.3, gt=0, le=1, description="A scan that would delete a larger share is held until confirmed."
    )
    removal_guard_minimum: int = Field(20, ge=1, description="Fewer deletions than this are never held.")
    bulk_lag_seconds: float = Field(
        0.1,
        ge=0,
        description="How far a bulk of changes is sent ahead of ingest, in seconds of its work; 0: all at once.",
    )
    bulk_patience_seconds: float = Field(
        10.0, gt=0, description="Where ingest commits nothing for so long, a bulk waits no longer."
    )
    http_host: str = Field("127.0.0.1", description="Where /metrics, /livez, /readyz listen.")
    http_port: int = Field(0, ge=0, le=65_535, description="0: any free port.")


class VerifierSettings(Section):
    """`hopline verify --every`."""

    settle_seconds: float = Field(
        30.0,
        ge=0,
        description="What a run finds is looked at again after so long, and counts if it is still there: until then it "
        "may be work under way.",
    )
    liveness_seconds: float = Field(
        600.0, gt=0, description="A run that gets no further for this long: /livez fails."
    )
    http_host: str = Field("127.0.0.1", description="Where /metrics, /livez, /readyz listen.")
    http_port: int = Field(0, ge=0, le=65_535, description="0: any free port.")


class TracingSettings(Section):
    """Traces from a write to where it can be found; off unless there is an endpoint."""

    endpoint: str | None = Field(
        None,
        description="Collector of OpenTelemetry (OTLP over HTTP), such as http://collector:4318; empty: no traces. "
        "Needs the extra `tracing`.",
    )
    sample_ratio: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Share of the traces begun here that are kept; those that a caller began are kept if it says so.",
    )
