"""What is searched of a chunk: its own vector and a share of the one of its document's lead. Pure.

The lead (the first chunk) says what a document is about, later chunks assume it. So a chunk is found by
(own + s · lead) / (1 + s), and since that is not brought to length 1, its inner product with a query's vector is
(cosine of the chunk + s · cosine of the lead) / (1 + s), and never more than the better of the two.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Measured in docs/explanation/chunking.md. Another share needs another MAPPING_VERSION: stored vectors depend on it.
LEAD_SHARE: Final = 0.3

Vector = NDArray[np.float32]


def searched_vector(own: Vector, lead: Vector) -> Vector:
    """Both (dimension,) and of length 1; the result is of length 1 at most. The lead's own is itself, bit for bit."""
    if own is lead:
        return own
    mixed: Vector = ((own + np.float32(LEAD_SHARE) * lead) / np.float32(1 + LEAD_SHARE)).astype(np.float32)
    return mixed
