"""How much a name tells. Pure."""

from __future__ import annotations

import math


def idf(documents: int, of: int) -> float:
    """0..1: ln(1 + N/n) ÷ ln(1 + N) for a name that n of N documents say; 1 for one document, 0 for an unknown n.

    The smoothed inverse document frequency (Spärck Jones, 1972) as a share of its largest value.
    """
    if documents <= 0:
        return 0.0
    total = max(documents, of)
    return math.log1p(total / documents) / math.log1p(total)
