"""Where a torch model runs."""

from __future__ import annotations

from typing import Any, Literal

from indexers.errors import ConfigurationError

Device = Literal["auto", "cpu", "cuda"]


def choose_device(torch: Any, wanted: Device, *, setting: str) -> Literal["cpu", "cuda"]:
    """`auto`: CUDA where there is one. ConfigurationError, which names `setting`, for `cuda` where there is none."""
    is_available = bool(torch.cuda.is_available())
    if wanted == "cuda" and not is_available:
        raise ConfigurationError(f"{setting}=cuda, but torch finds no CUDA device: set it to auto or cpu")
    return "cuda" if is_available and wanted != "cpu" else "cpu"
