"""Keys of the register: `hop_<16 hex: key id>_<43: 256 random bits>`. The id is no secret; the rest is shown once."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

from search_api.identity.secret import InstallationSecret
from search_api.keys import KEY_PREFIX

_TEXT: Final = re.compile(KEY_PREFIX + r"(?P<key_id>[0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_KEY_ID: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """`text` is told to its holder and never stored."""

    key_id: str
    text: str

    def __repr__(self) -> str:
        return f"NewKey({self.key_id})"


def new_key(key_id: str | None = None) -> NewKey:
    """`key_id`: of a key that gets another secret."""
    key_id = key_id or secrets.token_hex(8)
    return NewKey(key_id=key_id, text=f"{KEY_PREFIX}{key_id}_{secrets.token_urlsafe(32)}")


def key_id_of(text: str) -> str | None:
    """None: not written like a key of the register."""
    found = _TEXT.fullmatch(text)
    return None if found is None else found["key_id"]


def is_key_id(text: str) -> bool:
    return _KEY_ID.fullmatch(text) is not None


class KeyDigester:
    """Keyed digests: whoever reads the index can neither use nor check a key without the installation's secret.

    No stretching: a key is 256 random bits, not a password.
    """

    def __init__(self, secret: InstallationSecret) -> None:
        self._key = secret.derive("api-keys")

    def digest(self, text: str) -> str:
        """64 hexadecimal digits."""
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()
