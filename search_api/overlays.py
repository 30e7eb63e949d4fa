"""A model whose every field may be left out, made of one whose fields have values: defaults on top of defaults."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model

Base = TypeVar("Base", bound=BaseModel)


def partial_of(model: type[BaseModel], name: str, *, strict: bool) -> type[BaseModel]:
    """The same fields with the same bounds, None where left out; sections are partial too. Unknown ones are refused."""
    fields: dict[str, Any] = {}
    for field_name, field in model.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = partial_of(kind, f"{name}{field_name.capitalize()}", strict=strict)
        elif get_origin(kind) is tuple:
            # JSON has lists where the settings have tuples.
            kind = Annotated[kind, Field(strict=False)]
        for bound in field.metadata:
            kind = Annotated[kind, bound]
        fields[field_name] = (kind | None, Field(None, description=field.description))
    config = ConfigDict(extra="forbid", frozen=True, strict=strict)
    made = create_model(name, __config__=config, **fields)
    made.__doc__ = f"What of {model.__name__} is to be otherwise."
    return made


def overlaid(base: Base, *changes: BaseModel | None) -> Base:
    """`base` with what these say, the last one first. The same object where they say nothing."""
    for change in changes:
        if change is None:
            continue
        said = {name: getattr(change, name) for name in change.model_fields_set}
        update = {
            name: overlaid(getattr(base, name), value) if isinstance(value, BaseModel) else value
            for name, value in said.items()
            if value is not None
        }
        if update:
            base = base.model_copy(update=update)
    return base
