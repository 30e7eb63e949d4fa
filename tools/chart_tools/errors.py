from __future__ import annotations


class ChartToolError(RuntimeError):
    """A tool could not be made: the message says which, and the last words of what failed."""
