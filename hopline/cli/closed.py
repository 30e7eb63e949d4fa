"""Options whose values are a closed set. Checked here, so that a wrong one is wrong usage (exit 2)."""

from __future__ import annotations

import typer


def known_types(values: list[str] | None) -> list[str] | None:
    from indexers.domain.frontmatter import DOC_TYPES

    return _known(values, DOC_TYPES)


def known_type(value: str) -> str:
    known_types([value])
    return value


def known_scopes(values: list[str] | None) -> list[str] | None:
    from indexers.domain.identity import Scope

    return _known(values, tuple(scope.value for scope in Scope))


def known_scope(value: str | None) -> str | None:
    known_scopes(None if value is None else [value])
    return value


def known_state(value: str | None) -> str | None:
    """Of an event, what can be waited for."""
    from typing import get_args

    from hopline.memory_answers import Milestone

    _known(None if value is None else [value], get_args(Milestone))
    return value


def _known(values: list[str] | None, known: tuple[str, ...]) -> list[str] | None:
    for value in values or ():
        if value not in known:
            msg = f"{value!r} is none of {', '.join(known)}"
            raise typer.BadParameter(msg)
    return values
