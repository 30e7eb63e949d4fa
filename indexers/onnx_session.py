"""How a model file is opened on CPU: bounded memory, no spinning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from indexers.errors import ConfigurationError
from indexers.telemetry import report_nothing

if TYPE_CHECKING:
    import onnxruntime


def open_session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """Raises ConfigurationError for a file that isn't a model."""
    report_nothing()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A waiting thread that spins would take the core from Kafka and parsing.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena keeps the memory of the largest batch ever seen; a worker's memory has to stay bounded.
    options.enable_cpu_mem_arena = False
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime's errors share no public base
        raise ConfigurationError(f"{path} can't be loaded ({exc}): fetch the model again") from exc
