"""A memory write as an event. Its path follows from its id, so that two writes never meet in one file."""

from __future__ import annotations

from collections.abc import Sequence

from indexers.domain import memory_file
from indexers.domain.frontmatter import DOC_TYPES
from indexers.domain.identity import Namespace
from indexers.errors import WrongUsage
from streams.event_fields import new_event_fields
from streams.events import MemoryWrite


def memory_write(  # noqa: PLR0913 - one argument per field of the event
    namespace: Namespace,
    content: str,
    *,
    version: int,
    title: str | None = None,
    tags: Sequence[str] = (),
    category: str | None = None,
    doc_type: str = "memory",
    source: str = "memory_tool",
) -> MemoryWrite:
    """Raises WrongUsage for a text that says nothing or a type that doesn't exist."""
    if not content.strip():
        msg = "the memory is empty: give a text"
        raise WrongUsage(msg)
    if doc_type not in DOC_TYPES:
        msg = f"{doc_type!r} is no type of document: {', '.join(DOC_TYPES)}"
        raise WrongUsage(msg)
    fields = new_event_fields(namespace)
    return MemoryWrite(
        **fields,
        version=version,
        path=memory_file.path_for(fields["event_id"], title),
        title=title,
        content=content,
        doc_type=doc_type,
        tags=list(tags),
        category=category,
        source=source,
    )
