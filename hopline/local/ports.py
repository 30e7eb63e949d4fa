"""TCP ports on the loopback address: free or taken, and by whom."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable, Collection
from typing import Final

import psutil

from indexers.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
#: No system gives these to outgoing connections (Linux begins at 32,768, others at 49,152: RFC 6335). One that gives
#: them takes a server's port while it restarts: even for a client of its own, which then is connected with itself.
LASTING: Final = range(20_000, 32_768)


def is_free(port: int, host: str = LOOPBACK) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As the engines do: connections in TIME_WAIT are no hindrance, a listener is.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                return False
            raise ConfigurationError(f"can't listen on {host}:{port}: {exc.strerror}") from exc
    return True


def owner(port: int) -> str | None:
    """`name (pid 123)` of the listener, where the system tells; None otherwise."""
    try:
        connections = psutil.net_connections(kind="tcp")
        pids = [
            c.pid
            for c in connections
            if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port and c.pid
        ]
        return f"{psutil.Process(pids[0]).name()} (pid {pids[0]})" if pids else None
    except psutil.Error:
        return None


def require_free(
    port: int,
    *,
    use: str,
    setting: str,
    host: str = LOOPBACK,
    stop_with: Callable[[int], str | None] = lambda _: None,
) -> None:
    """Raises ConfigurationError naming the port, who holds it, how to stop that and the setting that moves it."""
    if port == 0 or is_free(port, host):
        return
    who = owner(port)
    held = f" by {who}" if who else " by another process"
    stop = stop_with(port) or "stop it"
    raise ConfigurationError(
        f"port {port} ({use}) is taken{held}: {stop}, or choose another port with {setting}"
    )


def free_ports(count: int = 1, *, without: Collection[int] = ()) -> int:
    """First of `count` consecutive free ports (an engine's second port is the next one)."""
    for _ in range(200):
        first = LASTING.start + secrets.randbelow(len(LASTING) - count + 1)
        ports = range(first, first + count)
        if not set(ports) & set(without) and all(is_free(port) for port in ports):
            return first
    raise ConfigurationError(f"no {count} consecutive free ports on {LOOPBACK}")
