"""The query service's event loop."""

from __future__ import annotations

import sys

import pytest

from search_api.serve import _loop_factory


def test_uvloop_is_taken_where_it_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop", reason="there is none for this platform")
    factory = _loop_factory()
    assert factory is uvloop.new_event_loop


def test_without_uvloop_asyncio_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert _loop_factory() is None
