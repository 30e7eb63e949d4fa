"""What every process says of itself."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
