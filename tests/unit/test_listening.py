"""Addresses of the processes that serve HTTP."""

from __future__ import annotations

import socket

import pytest
from prometheus_client import CollectorRegistry

from indexers.errors import ConfigurationError
from indexers.listening import bound_socket
from streams.health import Verdict, serve_health


def test_port_0_is_any_free_port_and_answers_are_sent_at_once() -> None:
    with bound_socket("127.0.0.1", 0, settings="X") as listener:
        assert listener.getsockname()[1] > 0
        assert listener.proto == socket.IPPROTO_TCP
        assert not listener.getblocking()


def test_an_address_with_colons_is_ipv6() -> None:
    with bound_socket("::1", 0, settings="X") as listener:
        assert listener.family == socket.AF_INET6


def test_a_taken_port_names_the_settings() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigurationError, match=rf"127\.0\.0\.1:{port}: Address already in use; .* A, B"
        ):
            bound_socket("127.0.0.1", port, settings="A, B")


async def test_a_worker_whose_port_is_taken_says_so() -> None:
    def fine() -> Verdict:
        return Verdict(ok=True, reason="fine")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match="HTTP_PORT"):
            async with serve_health("127.0.0.1", port, CollectorRegistry(), live=fine, ready=fine):
                raise AssertionError
