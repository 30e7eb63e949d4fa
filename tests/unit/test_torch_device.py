"""Where a torch model runs, with and without CUDA."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from indexers.errors import ConfigurationError
from indexers.torch_device import Device, choose_device


def torch_with(*, cuda: bool) -> SimpleNamespace:
    return SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: cuda))


@pytest.mark.parametrize(
    ("wanted", "cuda", "chosen"),
    [
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
        ("cpu", True, "cpu"),
        ("cpu", False, "cpu"),
        ("cuda", True, "cuda"),
    ],
)
def test_cuda_is_taken_where_it_is_wanted_and_there(wanted: Device, chosen: str, *, cuda: bool) -> None:
    assert choose_device(torch_with(cuda=cuda), wanted, setting="X") == chosen


def test_cuda_that_is_not_there_is_refused_by_the_setting_that_asks_for_it() -> None:
    with pytest.raises(ConfigurationError, match=r"^HOPLINE_X=cuda, but torch finds no CUDA device"):
        choose_device(torch_with(cuda=False), "cuda", setting="HOPLINE_X")
