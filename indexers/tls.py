"""TLS towards an engine: its authority, and who we are, from files."""

from __future__ import annotations

import ssl
from pathlib import Path

from indexers.errors import ConfigurationError


def engine_tls(
    *, section: str, ca_file: Path | None, cert_file: Path | None, key_file: Path | None
) -> ssl.SSLContext:
    """The engine's name and certificate are checked, against the system's authorities where no file is named.

    `cert_file` may hold the key too. Raises ConfigurationError that names the setting (`section`: kafka, opensearch).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if ca_file is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError) as exc:
        msg = f"{section}.ca_file {ca_file} can't be used: {exc}"
        raise ConfigurationError(msg) from exc
    if cert_file is None:
        if key_file is not None:
            msg = f"{section}.key_file is set without {section}.cert_file"
            raise ConfigurationError(msg)
        return context
    try:
        # Never asks: a key with a pass phrase would stop the process at a prompt.
        context.load_cert_chain(cert_file, key_file, password="")
    except (OSError, ssl.SSLError) as exc:
        msg = f"{section}.cert_file {cert_file} and key_file {key_file} can't be used: {exc}"
        raise ConfigurationError(msg) from exc
    return context
