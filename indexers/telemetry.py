"""Libraries of models that report to their makers what runs: told not to, before they are loaded.

onnxruntime does since 1.29 on Linux and macOS: names and hashes of models, the machine, an id that it keeps in the home
folder.
"""

from __future__ import annotations

import os
from typing import Final

_SILENCED: Final = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def report_nothing() -> None:
    """Call before such a library is imported: it looks at the environment once. Whoever has set it has decided."""
    for name, value in _SILENCED.items():
        os.environ.setdefault(name, value)
