"""Where the query service is, and the key to ask it with."""

from __future__ import annotations

import os

import httpx2

from hopline.local_key import local_key_file, read_local_key, read_operator_key
from hopline.settings import Settings
from indexers.errors import ConfigurationError


def api_url(settings: Settings) -> str:
    """`HOPLINE_API_URL`, else where the settings let the service listen."""
    given = os.environ.get("HOPLINE_API_URL")
    if given:
        return given.rstrip("/")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.api.host, settings.api.host)  # noqa: S104 - any address means this machine
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.api.port}"


def api_key(settings: Settings) -> str:
    """`HOPLINE_API_KEY`, else the local user's key."""
    return _checked(settings, os.environ.get("HOPLINE_API_KEY") or read_local_key(settings.local.data_dir))


def admin_key(settings: Settings) -> str:
    """`HOPLINE_API_KEY`, else the local operator's key, else the local user's."""
    folder = settings.local.data_dir
    given = os.environ.get("HOPLINE_API_KEY")
    return _checked(settings, given or read_operator_key(folder) or read_local_key(folder))


def _checked(settings: Settings, key: str | None) -> str:
    if key is None:
        place = local_key_file(settings.local.data_dir)
        msg = f"no API key: set HOPLINE_API_KEY, or run `hopline up`, which writes {place}"
        raise ConfigurationError(msg)
    if not (key.isascii() and key.isprintable()) or " " in key:
        msg = "the API key holds characters that no key has: check HOPLINE_API_KEY"
        raise ConfigurationError(msg)
    return key


def checked_url(url: str) -> str:
    """Raises ConfigurationError where it is no address."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError) as exc:
        msg = f"{url!r} is no address: set HOPLINE_API_URL to something like http://127.0.0.1:8470"
        raise ConfigurationError(msg) from exc
    if parsed.scheme not in ("http", "https") or not parsed.host:
        msg = f"{url!r} is no address: set HOPLINE_API_URL to something like http://127.0.0.1:8470"
        raise ConfigurationError(msg)
    return url
