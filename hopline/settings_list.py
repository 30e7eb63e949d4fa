"""All settings as a flat list, for `hopline settings` and for the test that keeps the documentation whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic_core import to_jsonable_python

from hopline.settings import ENV_PREFIX, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEntry:
    """`value` and `default` as they would stand in the environment; secrets are masked."""

    env: str
    value: str
    default: str
    description: str

    @property
    def changed(self) -> bool:
        return self.value != self.default


def list_settings(settings: Settings) -> list[SettingEntry]:
    """In the order of declaration, sections last."""
    return list(_entries(settings, Settings.model_construct(), ENV_PREFIX))


def _entries(now: BaseModel, default: BaseModel, prefix: str) -> Iterator[SettingEntry]:
    for name, field in type(now).model_fields.items():
        value, initial = getattr(now, name), getattr(default, name)
        env = f"{prefix}{name.upper()}"
        if isinstance(value, BaseModel):
            yield from _entries(value, initial, f"{env}__")
        else:
            yield SettingEntry(
                env=env, value=_shown(value), default=_shown(initial), description=field.description or ""
            )


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        return "********"
    plain = to_jsonable_python(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
