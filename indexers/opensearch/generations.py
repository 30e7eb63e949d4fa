"""Generations of the chunks index: one, or two while chunks are embedded anew. See docs/explanation/reindex.md.

What they say of themselves (`_meta`) and where the alias stands is the whole state of a reindex.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from indexers.errors import ConfigurationError
from indexers.opensearch.names import IndexNames
from indexers.opensearch.rows import Index
from indexers.opensearch.templates import VectorSpace

#: A tokenizer with its limit (`chunker_version`) and a model id: what made a document's chunk rows.
Cut = tuple[str, str]


class MadeBy(msgspec.Struct, frozen=True, kw_only=True):
    """What makes the rows of a generation; the last three as in `EmbedderSettings`."""

    model_id: str
    chunker: str
    backend: str
    model: str | None
    precision: str

    @property
    def cut(self) -> Cut:
        return (self.chunker, self.model_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    number: int
    space: VectorSpace
    #: The plain alias stands on it.
    live: bool
    #: A second group of embed workers feeds it: a reindex is open.
    fed: bool = False
    #: None: no reindex has touched it.
    made_by: MadeBy | None = None
    #: What was carried over into it and needs no second indexing.
    counts: frozenset[Cut] = frozenset()
    #: Suffix → name of its index; suffixes whose index has the generation's own alias.
    indices: Mapping[str | None, str] = field(default_factory=dict)
    aliased: frozenset[str | None] = frozenset()
    schema_version: int | None = None


@dataclass(frozen=True, slots=True)
class Generations:
    """In the order of their numbers."""

    all: tuple[Generation, ...] = ()

    @property
    def live(self) -> Generation | None:
        return next((one for one in self.all if one.live), None)

    @property
    def fed(self) -> Generation | None:
        return next((one for one in self.all if one.fed), None)

    @property
    def old(self) -> Generation | None:
        """The one that embed's own group writes: of two that which isn't fed by the second group."""
        return next((one for one in self.all if not one.fed), self.fed)

    @property
    def are_two(self) -> bool:
        return len(self.all) > 1

    def numbered(self, number: int) -> Generation | None:
        return next((one for one in self.all if one.number == number), None)

    def alike(self, own: Cut) -> frozenset[Cut]:
        """Which (tokenizer, model) pairs need no indexing anew where `own` is in use; itself always."""
        every = {own}
        for one in self.all:
            known = {*one.counts, *(() if one.made_by is None else (one.made_by.cut,))}
            every |= known if own in known or every & known else set()
        return frozenset(every)


def generations_of(answer: Mapping[str, Any], names: IndexNames) -> Generations:
    """From `GET index` of all that may be one: index → aliases, mappings."""
    found: dict[int, dict[str | None, str]] = {}
    for suffix in names.suffixes:
        for name in answer:
            if (number := names.generation_of(name, suffix)) is not None:
                found.setdefault(number, {})[suffix] = name
    return Generations(tuple(_generation(n, found[n], answer, names) for n in sorted(found)))


def _generation(
    number: int, indices: Mapping[str | None, str], answer: Mapping[str, Any], names: IndexNames
) -> Generation:
    first = next(iter(indices))
    meta = answer[indices[first]].get("mappings", {}).get("_meta", {})
    made_by = meta.get("made_by")
    return Generation(
        number=number,
        space=VectorSpace(
            pair_id=meta.get("pair_id", ""),
            dimension=meta.get("dimension", 0),
            cosine_floor=meta.get("cosine_floor"),
        ),
        live=names.alias_of(Index.CHUNKS, first) in answer[indices[first]].get("aliases", {}),
        fed=bool(meta.get("fed")),
        made_by=None if made_by is None else msgspec.convert(made_by, MadeBy),
        counts=frozenset((chunker, model) for chunker, model in meta.get("counts", ())),
        indices=indices,
        aliased=frozenset(
            suffix
            for suffix, name in indices.items()
            if names.generation_alias(number, suffix) in answer[name].get("aliases", {})
        ),
        schema_version=meta.get("schema_version"),
    )


def require_space(known: Generations, name: str, space: VectorSpace, *, rebuild: str) -> None:
    """ConfigurationError unless one of the generations holds vectors of this space."""
    if any((one.space.pair_id, one.space.dimension) == (space.pair_id, space.dimension) for one in known.all):
        return
    of = known.live or known.all[0]
    back = "back" if of.made_by is None or of.made_by.model is None else f"to {of.made_by.model}"
    msg = (
        f"index {name} holds vectors of {of.space.pair_id} ({of.space.dimension} dimensions), but the configured"
        f" embedder makes those of {space.pair_id} ({space.dimension}), and the two can't be"
        f" compared: set HOPLINE_EMBEDDER__MODEL {back}, or embed all anew with `hopline reindex --to`, or {rebuild}"
    )
    raise ConfigurationError(msg)
