"""Logs: one JSON object a line on stderr. Libraries speak through the standard logging, from WARNING on."""

from __future__ import annotations

import logging
import sys
from typing import Final

import structlog

#: Chatty below WARNING, and not about our work.
_LIBRARIES: Final = ("faust", "mode", "aiokafka", "asyncio", "uvicorn", "opensearch", "opensearchpy")


def quiet_logging() -> None:
    """For a command that ends: it tells once, in words, what failed. Call once, in the command."""
    configure_logging("CRITICAL")


def configure_logging(level: str) -> None:
    """Route structlog and the standard logging to stderr as JSON. Call once, in `main()`."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            *shared,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level]))
        library.handlers.clear()
        library.propagate = True
