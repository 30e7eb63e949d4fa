"""Many names compared with many at once: what `names.compare` would say, without asking it of every pair. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from indexers.domain.entities.names import PROPOSES_FROM, Verdict, block_of, compare, parted, unspaced

#: Cells of one matrix, four bytes each.
_CELLS_MAX: Final = 1_000_000


def alike(keys: Collection[str], others: Collection[str], label: str) -> dict[str, set[str]]:
    """By key: those of `others` that it joins or is proposed to, and itself where it is among them.

    Within a block a matrix of similarities leaves few pairs, and these are compared. A cell takes some 50 ns.
    """
    found: dict[str, set[str]] = {key: set() for key in keys}
    for key, other in _pairs(list(found), others, label):
        if key == other or compare(key, other, label).verdict is not Verdict.DIFFERENT:
            found[key].add(other)
    return found


def _pairs(keys: Sequence[str], others: Collection[str], label: str) -> Iterator[tuple[str, str]]:
    """More than those that are alike, some of them twice."""
    same: defaultdict[str, list[str]] = defaultdict(list)
    for key in keys:
        same[unspaced(key)].append(key)
    for other in others:
        for key in same.get(unspaced(other), ()):
            yield key, other
    mine, theirs = _by_block(keys, label), _by_block(others, label)
    for block in mine.keys() & theirs.keys():
        yield from _close(mine[block], theirs[block])


def _by_block(keys: Iterable[str], label: str) -> dict[str, list[str]]:
    blocks: defaultdict[str, list[str]] = defaultdict(list)
    for key in keys:
        block = block_of(key, label)
        if block is not None:
            blocks[block].append(key)
    return blocks


def _close(keys: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, str]]:
    texts = [parted(other)[0] for other in others]
    step = max(1, _CELLS_MAX // len(texts))
    for start in range(0, len(keys), step):
        some = keys[start : start + step]
        matrix = cdist(
            [parted(key)[0] for key in some],
            texts,
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=PROPOSES_FROM,
        )
        for row, column in zip(*matrix.nonzero(), strict=True):
            yield some[row], others[column]
