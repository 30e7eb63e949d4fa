"""The file of API keys: who holds which key. Only the keys' SHA-256 is stored."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

import msgspec

from indexers.domain.identity import AgentId, Principal, Role, TeamId, TenantId
from indexers.errors import ConfigurationError

#: Lets people and secret scanners recognise a key.
KEY_PREFIX = "hop_"
#: What a file may grant. `pipeline` sees every scope of a tenant and is never made from a request.
_GRANTABLE: frozenset[Role] = frozenset({"agent", "reader", "curator", "admin"})


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One key. Its SHA-256 needs no salt or stretching: a key is 256 random bits, not a password."""

    sha256: str
    tenant: str
    agent: str
    teams: list[str] = []
    roles: list[Role] = msgspec.field(default_factory=lambda: ["agent"])

    @property
    def principal(self) -> Principal:
        return Principal(
            tenant_id=TenantId(self.tenant),
            agent_id=AgentId(self.agent),
            teams=tuple(TeamId(team) for team in self.teams),
            roles=tuple(self.roles),
        )


class KeyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keys: list[KeyEntry] = []


def generate_key() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(32)


def key_digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def parse_keys(raw: bytes, *, source: str) -> tuple[KeyEntry, ...]:
    """Raises ConfigurationError naming the entry that is wrong."""
    try:
        entries = msgspec.json.decode(raw, type=KeyFile).keys
    except msgspec.MsgspecError as exc:
        msg = f"{source} is no key file: {exc}"
        raise ConfigurationError(msg) from exc
    for number, entry in enumerate(entries):
        _check(entry, f"{source}, key {number}")
    return tuple(entries)


def read_keys(path: Path) -> tuple[KeyEntry, ...]:
    """A missing file holds no keys."""
    try:
        return parse_keys(path.read_bytes(), source=str(path))
    except FileNotFoundError:
        return ()


def store_key(path: Path, key: str, principal: Principal) -> None:
    """Add a key, or replace its entry. The file is replaced at once and readable by its owner only."""
    entry = KeyEntry(
        sha256=key_digest(key),
        tenant=principal.tenant_id,
        agent=principal.agent_id,
        teams=list(principal.teams),
        roles=list(principal.roles),
    )
    _check(entry, "the new key")
    others = [known for known in read_keys(path) if known.sha256 != entry.sha256]
    content = msgspec.json.format(msgspec.json.encode(KeyFile(keys=[*others, entry])), indent=2)
    write_private(path, content + b"\n")


def write_private(path: Path, content: bytes) -> None:
    """Mode 0600 from the first byte on; a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _check(entry: KeyEntry, where: str) -> None:
    if len(entry.sha256) != 64 or set(entry.sha256) - set("0123456789abcdef"):
        msg = f"{where}: sha256 must be 64 small hexadecimal digits"
        raise ConfigurationError(msg)
    if not set(entry.roles) <= _GRANTABLE:
        msg = f"{where}: roles may be {', '.join(sorted(_GRANTABLE))}"
        raise ConfigurationError(msg)
    try:
        _ = entry.principal
    except ValueError as exc:
        msg = f"{where}: {exc}"
        raise ConfigurationError(msg) from exc
