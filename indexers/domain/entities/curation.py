"""What curators decided about the names of one label, as one value. Pure.

A fold of their commands in the order (version, event id): which way and how often a command arrived changes nothing.
A merge that was taken back counts as never given, so what it had overruled holds again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from indexers.domain.entities.clusters import Pair, pair_of

CurationKind = Literal["merge", "unmerge", "rename", "block", "unblock", "accept", "reject"]
KINDS: Final[tuple[CurationKind, ...]] = get_args(CurationKind)
#: Kinds that speak of two names; the others speak of one.
PAIRED: Final = frozenset({"merge", "unmerge", "accept", "reject"})
_JOINING: Final = frozenset({"merge", "accept"})

#: (version, event id): the later one wins.
Order = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationOp:
    """One command. ValueError where its fields contradict its kind."""

    event_id: str
    version: int
    kind: CurationKind
    keys: tuple[str, ...]
    #: rename: the display name.
    name: str | None = None
    #: unmerge: event id of the merge (or accept) that is taken back; None: `keys[0]` leaves the entity of `keys[1]`.
    undoes: str | None = None

    def __post_init__(self) -> None:
        due = 2 if self.kind in PAIRED else 1
        if len(self.keys) != due or len(set(self.keys)) != due or not all(self.keys):
            msg = f"{self.kind} speaks of {due} different names, not of {list(self.keys)}"
            raise ValueError(msg)
        if (self.kind == "rename") != (self.name is not None) or (
            self.name is not None and not self.name.strip()
        ):
            msg = "a rename, and nothing else, has a name"
            raise ValueError(msg)
        if self.undoes is not None and (self.kind != "unmerge" or not self.undoes):
            msg = f"{self.kind} can't undo {self.undoes!r}: only an unmerge undoes, and only a merge"
            raise ValueError(msg)

    @property
    def order(self) -> Order:
        return (self.version, self.event_id)

    @property
    def pair(self) -> Pair:
        return pair_of(*self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curation:
    """`merges`: pairs that are one entity. `apart`: pairs that are never joined or proposed."""

    merges: frozenset[Pair] = frozenset()
    apart: frozenset[Pair] = frozenset()
    #: Key → when it was renamed last, and to what.
    renamed: Mapping[str, tuple[Order, str]] = field(default_factory=dict)
    #: Key → when it was blocked or unblocked last, and which.
    blocks: Mapping[str, tuple[Order, bool]] = field(default_factory=dict)

    def name_of(self, keys: Iterable[str]) -> str | None:
        """The last word on what an entity of these names is called; None: nobody said."""
        said = [self.renamed[key] for key in keys if key in self.renamed]
        return max(said)[1] if said else None

    def is_blocked(self, keys: Iterable[str]) -> bool:
        """The last word on any of an entity's names is about the whole entity."""
        said = [self.blocks[key] for key in keys if key in self.blocks]
        return bool(said) and max(said)[1]


def curation_of(ops: Iterable[CurationOp]) -> Curation:
    unique = {op.event_id: op for op in sorted(ops, key=_repeatable, reverse=True)}
    undone = {op.undoes for op in unique.values() if op.undoes is not None}
    merges: set[Pair] = set()
    apart: set[Pair] = set()
    renamed: dict[str, tuple[Order, str]] = {}
    blocks: dict[str, tuple[Order, bool]] = {}
    for op in sorted(unique.values(), key=_repeatable):
        if op.kind in _JOINING:
            if op.event_id not in undone:
                merges.add(op.pair)
                apart.discard(op.pair)
        elif op.kind in ("unmerge", "reject") and op.undoes is None:
            merges = _parted(merges, op) if op.kind == "unmerge" else merges - {op.pair}
            apart.add(op.pair)
        elif op.kind == "rename":
            renamed[op.keys[0]] = (op.order, op.name or "")
        elif op.kind in ("block", "unblock"):
            blocks[op.keys[0]] = (op.order, op.kind == "block")
    return Curation(merges=frozenset(merges), apart=frozenset(apart), renamed=renamed, blocks=blocks)


def keys_concerned(op: CurationOp, ops: Iterable[CurationOp]) -> set[str]:
    """Names whose entity this command may change: its own and those of the merge that it takes back."""
    undone = {key for other in ops if other.event_id == op.undoes for key in other.keys}
    return set(op.keys) | undone


def _parted(merges: set[Pair], op: CurationOp) -> set[Pair]:
    """Without the merge of the very pair; where that doesn't part them, without any merge of the first name.

    Likeness isn't known here: a name that was merged with an alias of the entity has no merge with its canonical
    name, so the first name's other merges go whenever there is none of the pair.
    """
    left = merges - {op.pair}
    if left != merges and not _connected(left, *op.keys):
        return left
    return {pair for pair in left if op.keys[0] not in pair}


def _connected(merges: set[Pair], key: str, other: str) -> bool:
    reached, todo = {key}, [key]
    while todo:
        at = todo.pop()
        near = {b if a == at else a for a, b in merges if at in (a, b)} - reached
        reached |= near
        todo += near
    return other in reached


def _repeatable(op: CurationOp) -> tuple[Order, str]:
    """Two commands of one id are a mistake; which of them counts is decided all the same, not by arrival."""
    return (op.order, repr(op))
