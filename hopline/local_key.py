"""What `hopline up` leaves beside the data: the local user's key, an operator's, and the installation's secret."""

from __future__ import annotations

from pathlib import Path

from hopline.settings import Settings
from indexers.domain.identity import TenantId
from indexers.errors import ConfigurationError
from search_api.identity.secret import SECRET_FILE, InstallationSecret
from search_api.keys import write_private

LOCAL_TENANT = TenantId("local")


def local_key_file(data_dir: Path) -> Path:
    return data_dir / "api-key"


def operator_key_file(data_dir: Path) -> Path:
    return data_dir / "operator-key"


def write_local_key(data_dir: Path, key: str) -> None:
    """Readable by its owner only."""
    write_private(local_key_file(data_dir), key.encode() + b"\n")


def write_operator_key(data_dir: Path, key: str) -> None:
    write_private(operator_key_file(data_dir), key.encode() + b"\n")


def read_local_key(data_dir: Path) -> str | None:
    """None where `hopline up` has not made one."""
    return _read(local_key_file(data_dir))


def read_operator_key(data_dir: Path) -> str | None:
    """None where `hopline up` has not made one."""
    return _read(operator_key_file(data_dir))


def installation_secret(settings: Settings) -> InstallationSecret:
    """Raises ConfigurationError. A file that was named is never made: replicas must share it."""
    if settings.api.secret_file is not None:
        return InstallationSecret.read(settings.api.secret_file)
    return InstallationSecret.ensure(settings.local.data_dir / SECRET_FILE)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        msg = f"{path} can't be read: {exc}"
        raise ConfigurationError(msg) from exc
