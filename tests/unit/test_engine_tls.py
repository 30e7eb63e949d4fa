"""Certificates towards the engines: a real handshake with a server that wants one, and files that can't be used."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from indexers.errors import Away, ConfigurationError
from indexers.opensearch.connect import connect, request
from indexers.settings import OpenSearchSettings
from streams.connect import KafkaConnection
from streams.faust_app import _credentials
from streams.settings import KafkaSettings

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    cert = signed("ca", key, "ca", key, authority=True)
    return stored(tmp_path_factory.mktemp("ca"), cert, key), cert, key


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, ca: tuple[Pair, x509.Certificate, ec.EllipticCurvePrivateKey]
) -> Pair:
    return issued(tmp_path_factory.mktemp("server"), ca[2], "engine")


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory, ca: tuple[Pair, x509.Certificate, ec.EllipticCurvePrivateKey]
) -> Pair:
    return issued(tmp_path_factory.mktemp("client"), ca[2], "hopline")


def issued(folder: Path, ca_key: ec.EllipticCurvePrivateKey, name: str) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    return stored(folder, signed(name, key, "ca", ca_key, authority=False), key)


def signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(issuer_key, hashes.SHA256())
    )


def stored(folder: Path, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pair = Pair(folder / "tls.crt", folder / "tls.key")
    pair.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return pair


@asynccontextmanager
async def engine(server: Pair, authority: Path) -> AsyncIterator[int]:
    """The port of a server that talks only to who shows a certificate of the authority."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(server.cert, server.key)
    tls.load_verify_locations(authority)
    tls.verify_mode = ssl.CERT_REQUIRED

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as listening:
        yield listening.sockets[0].getsockname()[1]


async def asked(settings: OpenSearchSettings, port: int) -> object:
    opensearch = connect(settings, f"https://127.0.0.1:{port}")
    try:
        return await request(opensearch, "GET", "/")
    finally:
        await opensearch.close()


async def test_opensearch_is_shown_the_client_certificate(
    ca: tuple[Pair, object, object], server: Pair, client: Pair
) -> None:
    settings = OpenSearchSettings(ca_file=ca[0].cert, cert_file=client.cert, key_file=client.key)
    async with engine(server, ca[0].cert) as port:
        assert await asked(settings, port) == {"ok": True}
        with pytest.raises(Away):
            await asked(OpenSearchSettings(ca_file=ca[0].cert), port)
        with pytest.raises(Away):
            await asked(settings.model_copy(update={"ca_file": client.cert}), port)


async def test_kafka_is_shown_it_too(ca: tuple[Pair, object, object], server: Pair, client: Pair) -> None:
    settings = KafkaSettings(
        security_protocol="SSL", ca_file=ca[0].cert, cert_file=client.cert, key_file=client.key
    )
    tls = KafkaConnection(servers="", settings=settings).client_options()["ssl_context"]
    async with engine(server, ca[0].cert) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.read()).endswith(b'{"ok":true}')
        writer.close()
        await writer.wait_closed()


def test_faust_gets_the_same_credentials_as_the_other_clients() -> None:
    settings = KafkaSettings(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="hopline",
        sasl_password="s",  # noqa: S106 - of no broker
    )
    connection = KafkaConnection(servers="broker:9093", settings=settings)
    named = ("security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
    faust, others = credentials_to_aiokafka_auth(_credentials(connection)), connection.client_options()
    assert [faust[name] for name in named] == [others[name] for name in named]
    assert others["sasl_mechanism"] == "SCRAM-SHA-512"


@pytest.mark.parametrize("name", ["ca_file", "cert_file"])
def test_a_file_that_is_no_certificate_is_named_with_its_setting(name: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate", encoding="utf-8")
    for file in (wrong, tmp_path / "missing.pem"):
        with pytest.raises(ConfigurationError, match=rf"opensearch\.{name}.*{file.name}"):
            connect(OpenSearchSettings(**{name: file}), "https://127.0.0.1:9200")
        settings = KafkaSettings(security_protocol="SSL", **{name: file})
        with pytest.raises(ConfigurationError, match=rf"kafka\.{name}.*{file.name}"):
            KafkaConnection(servers="", settings=settings).ssl_context()


def test_a_key_without_its_certificate_is_refused(client: Pair) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.key_file is set without kafka\.cert_file"):
        KafkaConnection(
            servers="", settings=KafkaSettings(security_protocol="SSL", key_file=client.key)
        ).ssl_context()
