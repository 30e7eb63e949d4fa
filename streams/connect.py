"""How every client of this package reaches the brokers: one place for addresses, security and timeouts."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import structlog
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    SaslAuthenticationFailed,
)

from indexers.errors import Away, ConfigurationError, HoplineError, Transient
from indexers.tls import engine_tls
from streams.settings import KafkaSettings

#: A dead letter holds key and value in base64 (4/3) beside its own fields: it needs more room than the record had.
DEAD_LETTER_FACTOR: Final = 2
DEAD_LETTERS_SUFFIX: Final = ".dead-letters"
#: Headers of a record batch, which a topic's max.message.bytes counts in.
RECORD_OVERHEAD: Final = 512
#: Fields of a request around the records of it.
REQUEST_OVERHEAD: Final = 65_536

_log = structlog.get_logger("hopline.streams.connect")

_REFUSED = (AuthenticationFailedError, AuthenticationMethodNotSupported, SaslAuthenticationFailed)
_UNANSWERED = (KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConnection:
    """Brokers and the settings to reach them; the same for producer, admin, Faust and the readers."""

    servers: str
    settings: KafkaSettings

    @property
    def max_request_bytes(self) -> int:
        return self.settings.max_message_bytes * DEAD_LETTER_FACTOR + REQUEST_OVERHEAD

    def max_record_bytes(self, topic: str) -> int:
        """Topics of dead letters take larger records, so that every record that was accepted can be parked."""
        if topic.endswith(DEAD_LETTERS_SUFFIX):
            return self.settings.max_message_bytes * DEAD_LETTER_FACTOR
        return self.settings.max_message_bytes - RECORD_OVERHEAD

    def ssl_context(self) -> ssl.SSLContext | None:
        """None where the connection is plain. Raises ConfigurationError for files that can't be used."""
        if self.settings.security_protocol not in ("SSL", "SASL_SSL"):
            return None
        return engine_tls(
            section="kafka",
            ca_file=self.settings.ca_file,
            cert_file=self.settings.cert_file,
            key_file=self.settings.key_file,
        )

    def password(self) -> str | None:
        secret = self.settings.sasl_password
        return None if secret is None else secret.get_secret_value()

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments that aiokafka's producer, consumer and admin client have in common."""
        options: dict[str, Any] = {
            "bootstrap_servers": self.servers.split(","),
            "request_timeout_ms": int(self.settings.request_timeout_seconds * 1000),
            "security_protocol": self.settings.security_protocol,
            "ssl_context": self.ssl_context(),
        }
        if self.settings.security_protocol.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.settings.sasl_mechanism,
                "sasl_plain_username": self.settings.sasl_username,
                "sasl_plain_password": self.password(),
            }
        return options


@contextmanager
def kafka_faults(doing: str) -> Iterator[None]:
    """Broker errors as ours: refused credentials are a setting to mend, everything else may pass by itself."""
    try:
        yield
    except HoplineError:
        raise
    except _REFUSED as exc:
        msg = f"the brokers refuse the credentials (kafka.security_protocol, kafka.sasl_*): {exc!r}"
        raise ConfigurationError(msg) from exc
    except _UNANSWERED as exc:
        raise Away("Kafka", f"{doing}: Kafka doesn't answer: {_said(exc)}") from exc
    except KafkaError as exc:
        msg = f"{doing}: {_said(exc)}"
        raise Transient(msg) from exc


def _said(exc: BaseException) -> str:
    """Some errors name their class themselves, some say nothing at all."""
    name, text = type(exc).__name__, str(exc)
    return text if name in text else f"{name}: {text}" if text else name


async def start_client(
    start: Callable[[], Awaitable[object]], close: Callable[[], Awaitable[object]], *, seconds: float
) -> None:
    """Raises what `start` raises, or TimeoutError. A client whose start fails keeps sockets until it is closed."""
    try:
        async with asyncio.timeout(seconds):
            await start()
    except BaseException:
        await close_client(close, seconds=seconds)
        raise


async def close_client(close: Callable[[], Awaitable[object]], *, seconds: float) -> None:
    """For clients that have nothing left to send: one that can't be closed in time is given up, and that is logged."""
    try:
        async with asyncio.timeout(seconds):
            await close()
    except (KafkaError, OSError, TimeoutError) as exc:
        _log.warning("client.not_closed", reason=repr(exc))
