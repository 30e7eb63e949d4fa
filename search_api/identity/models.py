"""Bodies and answers of the admin routes; OpenAPI is made from them. No answer but a new key's holds a secret."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from indexers.domain.identity import check_label
from search_api.identity.stored import KeyState, TenantLimits
from search_api.models import Answer
from search_api.requests import Moment, Request, clean_text
from search_api.settings import LimitsSettings

TEAMS_MAX = 100


def known_label(value: str) -> str:
    """NFC; the rule of every name of a tenant, agent or team."""
    text = clean_text(value)
    check_label(text)
    return text


LabelText = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(known_label)]
NoteText = Annotated[str, Field(max_length=200), AfterValidator(clean_text)]
GrantedRole = Literal["reader", "agent", "curator", "admin"]


class KeyBody(Request):
    agent: LabelText = Field(description="Who holds the key.")
    tenant: LabelText | None = Field(
        None, description="An operator names the tenant; any other admin makes keys of the own one."
    )
    teams: list[LabelText] = Field([], max_length=TEAMS_MAX, description="Teams whose documents it opens.")
    roles: list[GrantedRole] = Field(
        ["agent"], min_length=1, max_length=4, description="reader < agent < curator < admin."
    )
    name: NoteText = Field("", description="What the key is for, for people.")
    expires_at: Moment | None = Field(None, description="From then on the key is unknown (ISO 8601).")


class TenantBody(Request):
    tenant: LabelText = Field(description="Name of the tenant.")
    note: NoteText = Field("", description="What the tenant is, for people.")
    limits: TenantLimits | None = Field(
        None, description="What is otherwise for it than the section `limits` says."
    )


class TenantChange(Request):
    """What is left out stays."""

    suspended: bool | None = Field(
        None, description="true: its keys are refused with 403; false: taken again."
    )
    note: NoteText | None = Field(None, description="What the tenant is, for people.")
    limits: TenantLimits | None = Field(
        None, description="All of its own limits, in place of those before; {}: it has none."
    )


class KeyAnswer(Answer):
    key_id: str = Field(description="Names the key; no secret.")
    tenant: str
    agent: str
    teams: list[str]
    roles: list[str]
    name: str
    state: KeyState
    created_at: datetime
    created_by: str = Field(description="Tenant and agent of who made it.")
    rotated_at: datetime | None
    grace_until: datetime | None = Field(description="The secret before the last rotation counts until then.")
    expires_at: datetime | None
    revoked_at: datetime | None


class NewKeyAnswer(KeyAnswer):
    key: str = Field(description="The key itself. It is shown now and never again.")


class KeysAnswer(Answer):
    keys: list[KeyAnswer]
    next_cursor: str | None


class TenantAnswer(Answer):
    tenant: str
    state: Literal["active", "suspended", "deleted"]
    note: str
    limits: dict[str, Any] = Field(description="What is otherwise for this tenant.")
    limits_in_force: LimitsSettings = Field(description="Per process of the query service.")
    created_at: datetime
    created_by: str


class TenantsAnswer(Answer):
    tenants: list[TenantAnswer]
    next_cursor: str | None


class AuditLine(Answer):
    entry_id: str
    at: datetime
    by_tenant: str
    by_agent: str
    by_key: str | None = Field(description="Id of the key; none for a key of the key file or a token.")
    action: str
    outcome: Literal["done", "denied"]
    target: str = Field(description="Id of a key, name of a tenant, or the route that was refused.")
    request_id: str
    detail: dict[str, str]


class AuditAnswer(Answer):
    entries: list[AuditLine] = Field(description="Newest first.")
    next_cursor: str | None


class WhoamiAnswer(Answer):
    tenant: str
    agent: str
    teams: list[str]
    roles: list[str]
    source: Literal["key_file", "key", "token"]
    key_id: str | None
    expires_at: datetime | None
    operator: bool = Field(description="An operator manages tenants and keys, and has no memory of its own.")
