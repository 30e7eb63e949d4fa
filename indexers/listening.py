"""The socket of a process that serves HTTP."""

from __future__ import annotations

import socket

from indexers.errors import ConfigurationError


def bound_socket(host: str, port: int, *, settings: str) -> socket.socket:
    """Bound and not listening yet, so that a taken port is said before anything slow is loaded.

    Raises ConfigurationError naming the `settings` that choose the address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves Nagle's algorithm on and each answer waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        msg = f"can't listen on {host}:{port}: {exc.strerror}; choose another with {settings} (port 0: any free one)"
        raise ConfigurationError(msg) from exc
    listener.setblocking(False)
    return listener
