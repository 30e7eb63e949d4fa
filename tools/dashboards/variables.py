"""Grafana's variables as a plain Prometheus would need them filled in."""

from __future__ import annotations

from typing import Final

#: What `All` stands for, and a window that holds four scrapes.
_VALUES: Final = {"$__rate_interval": "2m", "$namespace": ".*", "$component": ".*"}


def filled(expr: str, *, rate_interval: str = "2m") -> str:
    """The query that Grafana would send with every component of every namespace chosen."""
    for name, value in (_VALUES | {"$__rate_interval": rate_interval}).items():
        expr = expr.replace(name, value)
    return expr
