"""Which embedder a process takes: the settings', or what the index says where a reindex has changed it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import structlog

from indexers.domain.chunking import chunker_version
from indexers.embedders.factory import identify_model, load_token_counter
from indexers.opensearch.gate import Gate
from indexers.opensearch.generations import Cut, Generation, Generations, MadeBy
from indexers.settings import EmbedderSettings, IndexingSettings

log = structlog.get_logger("hopline.indexers.taken_embedder")


def made_by(settings: EmbedderSettings, indexing: IndexingSettings) -> MadeBy:
    """What an index records of an embedder. Blocking: reads the tokenizer."""
    folder = settings.model is not None and Path(settings.model).is_dir()
    return MadeBy(
        model_id=identify_model(settings).model_id,
        chunker=chunker_version(load_token_counter(settings), indexing.chunk_max_tokens),
        backend=settings.backend,
        model=str(Path(settings.model or "").resolve()) if folder else settings.model,
        precision=settings.precision,
    )


def taken(settings: EmbedderSettings, known: Generations, wanted: Generation | None) -> EmbedderSettings:
    """For the rows of `wanted`: the settings, unless they name another model that the index knows.

    Of two generations never the other's: then one of `wanted`'s space is due. What is unknown otherwise is left to
    `Gate.ensure_indices`, which compares the spaces.
    """
    if wanted is None or wanted.made_by is None:
        return settings
    own = identify_model(settings)
    if own.model_id == wanted.made_by.model_id:
        return settings
    is_others = known.are_two and own.pair_id != wanted.space.pair_id
    return recorded(settings, wanted.made_by) if is_others or own.model_id in _models(known) else settings


def recorded(settings: EmbedderSettings, by: MadeBy) -> EmbedderSettings:
    """The model that an index names, with threads, device and the like of the settings."""
    changes = {"backend": by.backend, "model": by.model, "precision": by.precision}
    if by.backend == "onnx":
        changes["device"] = "cpu"
    return EmbedderSettings(**(settings.model_dump() | changes))


async def taken_for_live(settings: EmbedderSettings, gate: Gate) -> tuple[EmbedderSettings, Generations]:
    """For what is searched, and what is known of it."""
    known = await gate.generations()
    found = taken(settings, known, known.live)
    note_taken(settings, found)
    return found, known


def note_taken(settings: EmbedderSettings, found: EmbedderSettings) -> None:
    if found is not settings:
        advice = "set HOPLINE_EMBEDDER__MODEL to it"
        log.warning("embedder.taken_from_index", model=found.model, configured=settings.model, advice=advice)


def _models(known: Generations) -> set[str]:
    cuts: Iterable[Cut] = (cut for one in known.all for cut in one.counts)
    return {model for _, model in cuts} | {one.made_by.model_id for one in known.all if one.made_by}
