"""The id of the local broker's cluster is an argument of a command."""

from __future__ import annotations

import base64

import pytest

from hopline.local.engines import cluster_id


@pytest.mark.parametrize("first", range(256))
def test_a_cluster_id_never_reads_as_an_option(first: int) -> None:
    random = bytes([first]) + bytes(range(1, 16))
    text = cluster_id(random)
    assert len(text) == 22
    assert not text.startswith("-")
    assert base64.urlsafe_b64decode(text + "==")[1:] == random[1:]
