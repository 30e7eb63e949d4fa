"""Where an evaluation keeps its things: one folder each, named as its prefix."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hopline.evaluation.corpus import write_vault
from hopline.evaluation.sets import EvalSet, paths_of
from hopline.local.state import write_whole
from hopline.local_key import read_local_key, write_local_key
from hopline.settings import Settings
from indexers.domain.identity import AgentId, Principal, TenantId
from indexers.errors import HoplineError, WrongUsage
from indexers.settings import VaultRoot
from indexers.vault.local import LocalVaultFiles
from search_api.keys import generate_key, store_key

TENANT = "eval"
AGENT = "me"
_PIECE_BYTES = 1_048_576


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a later run with `--reuse` must know. Empty addresses: the engines are this evaluation's own."""

    prefix: str
    set_name: str
    #: Of the corpus: another one under the same name is refused.
    fingerprint: str
    vault: str
    tenant: str = TENANT
    kafka_servers: str = ""
    opensearch_url: str = ""
    #: Path of each file → id of its passage; empty: paths are ids.
    ids: dict[str, str] = {}
    #: False until everything was indexed.
    complete: bool = False


@dataclass(frozen=True, slots=True)
class EvalHome:
    folder: Path

    @classmethod
    def of(cls, settings: Settings, prefix: str) -> EvalHome:
        return cls(homes_folder(settings) / prefix)

    @property
    def keys_file(self) -> Path:
        return self.folder / "keys.json"

    @property
    def _manifest(self) -> Path:
        return self.folder / "evaluation.json"

    def read(self) -> Manifest:
        """Raises WrongUsage where nothing was kept."""
        try:
            return msgspec.json.decode(self._manifest.read_bytes(), type=Manifest)
        except FileNotFoundError as exc:
            kept = ", ".join(
                sorted(path.parent.name for path in self.folder.parent.glob("*/evaluation.json"))
            )
            msg = f"nothing is kept under {self.folder.name!r}; kept (by --keep): {kept or 'none'}"
            raise WrongUsage(msg) from exc
        except (OSError, msgspec.MsgspecError) as exc:
            msg = f"{self._manifest} can't be read: {exc}"
            raise HoplineError(msg) from exc

    def write(self, manifest: Manifest) -> None:
        write_whole(self._manifest, manifest)

    def key(self) -> str:
        """The reader's key, made at the first call."""
        key = read_local_key(self.folder)
        if key is None:
            key = generate_key()
            store_key(self.keys_file, key, principal())
            write_local_key(self.folder, key)
        return key

    def remove(self) -> None:
        """Only what evaluations write: the folder itself, which nobody else is told of."""
        shutil.rmtree(self.folder, ignore_errors=True)


def homes_folder(settings: Settings) -> Path:
    return settings.local.data_dir / "evaluations"


def new_prefix() -> str:
    """Of topics, groups and indices: no other evaluation's, no stack's."""
    return f"eval-{secrets.token_hex(4)}"


def principal() -> Principal:
    return Principal(tenant_id=TenantId(TENANT), agent_id=AgentId(AGENT))


def root_of(manifest: Manifest) -> VaultRoot:
    return VaultRoot(name="eval", path=Path(manifest.vault), tenant=manifest.tenant, agent=AGENT)


def prepare(home: EvalHome, labelled: EvalSet, *, kafka_servers: str, opensearch_url: str) -> Manifest:
    """Write the vault (or name the set's own) and what `--reuse` needs. Raises HoplineError for a full disk."""
    try:
        home.folder.mkdir(parents=True)
        vault = labelled.vault or home.folder / "vault"
        ids = {} if labelled.vault else write_vault(labelled.passages, vault)
        manifest = Manifest(
            prefix=home.folder.name,
            set_name=labelled.name,
            fingerprint=fingerprint(labelled),
            vault=str(vault.resolve()),
            kafka_servers=kafka_servers,
            opensearch_url=opensearch_url,
            ids=ids,
        )
        home.write(manifest)
    except OSError as exc:
        msg = f"the corpus can't be written to {home.folder}: {exc.strerror}; make room or set HOPLINE_LOCAL__DATA_DIR"
        raise HoplineError(msg) from exc
    return manifest


def require_same(manifest: Manifest, labelled: EvalSet) -> None:
    """Raises WrongUsage where the kept index is of another corpus, or was not finished."""
    if manifest.fingerprint != fingerprint(labelled):
        msg = f"{manifest.prefix} holds {manifest.set_name!r} as it was; {labelled.name!r} is another or has changed"
        raise WrongUsage(msg)
    if not manifest.complete:
        msg = f"{manifest.prefix} was not indexed to its end: `hopline eval --drop {manifest.prefix}`, then anew"
        raise WrongUsage(msg)


def fingerprint(labelled: EvalSet) -> str:
    """SHA-256 of what is searched, read piece by piece. When a file was written counts for nothing."""
    digest = hashlib.sha256()
    if labelled.vault:
        for path in sorted(paths_of(labelled.vault)):
            digest.update(f"{path}\0{_hash_of(labelled.vault, path)}\0".encode())
    for passage in labelled.passages:
        digest.update(msgspec.json.encode(passage))
    return digest.hexdigest()


def _hash_of(vault: Path, path: str) -> str:
    try:
        with LocalVaultFiles(vault).open(path) as file:
            digest = hashlib.sha256()
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
            return digest.hexdigest()
    except OSError as exc:
        msg = f"{vault / path} can't be read: {exc.strerror}"
        raise WrongUsage(msg) from exc
