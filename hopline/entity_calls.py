"""The requests about entities as values, for `HoplineClient.call` and its async twin. Pure.

A command may be sent twice where an answer got lost: the second changes nothing that the first has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from hopline.calls import Call, given
from hopline.entity_answers import (
    Accepted,
    CommandState,
    DocumentMentionPage,
    Entity,
    EntityPage,
    History,
    Labels,
    MentionPage,
    ProposalPage,
    RelationPage,
)


def entities(
    words: str | None = None,
    *,
    label: str | None = None,
    namespace: str | None = None,
    blocked: bool = False,
    page_size: int | None = None,
    cursor: str | None = None,
) -> Call[EntityPage]:
    params = given(
        q=words,
        label=label,
        namespace=namespace,
        blocked="true" if blocked else None,
        page_size=page_size,
        cursor=cursor,
    )
    return Call(method="GET", path="/v1/entities", answer=EntityPage, params=params)


def entity(entity_id: str) -> Call[Entity]:
    return Call(method="GET", path=_path(entity_id), answer=Entity)


def mentions(entity_id: str, *, page_size: int | None = None, cursor: str | None = None) -> Call[MentionPage]:
    params = given(page_size=page_size, cursor=cursor)
    return Call(method="GET", path=_path(entity_id, "/mentions"), answer=MentionPage, params=params)


def relations(
    entity_id: str, *, page_size: int | None = None, cursor: str | None = None
) -> Call[RelationPage]:
    params = given(page_size=page_size, cursor=cursor)
    return Call(method="GET", path=_path(entity_id, "/relations"), answer=RelationPage, params=params)


def mentioned_in(
    doc_id: str, *, page_size: int | None = None, cursor: str | None = None
) -> Call[DocumentMentionPage]:
    """What one document mentions."""
    path = f"/v1/documents/{quote(doc_id, safe='')}/mentions"
    params = given(page_size=page_size, cursor=cursor)
    return Call(method="GET", path=path, answer=DocumentMentionPage, params=params)


def history(entity_id: str) -> Call[History]:
    return Call(method="GET", path=_path(entity_id, "/history"), answer=History)


def command_state(event_id: str) -> Call[CommandState]:
    path = f"/v1/entities/commands/{quote(event_id, safe='')}"
    return Call(method="GET", path=path, answer=CommandState)


def merge(entity_id: str, other_id: str, *, reason: str | None = None) -> Call[Accepted]:
    return _command(entity_id, "merge", other_id=other_id, reason=reason)


def unmerge(
    entity_id: str,
    *,
    merge_event_id: str | None = None,
    name_id: str | None = None,
    reason: str | None = None,
) -> Call[Accepted]:
    """One of the two: the merge that is taken back, or the alias that leaves."""
    return _command(entity_id, "unmerge", merge_event_id=merge_event_id, name_id=name_id, reason=reason)


def rename(entity_id: str, name: str, *, reason: str | None = None) -> Call[Accepted]:
    return _command(entity_id, "rename", name=name, reason=reason)


def block(entity_id: str, *, reason: str | None = None) -> Call[Accepted]:
    return _command(entity_id, "block", reason=reason)


def unblock(entity_id: str, *, reason: str | None = None) -> Call[Accepted]:
    return _command(entity_id, "unblock", reason=reason)


def proposals(
    *,
    label: str | None = None,
    namespace: str | None = None,
    page_size: int | None = None,
    cursor: str | None = None,
) -> Call[ProposalPage]:
    params = given(label=label, namespace=namespace, page_size=page_size, cursor=cursor)
    return Call(method="GET", path="/v1/entities/proposals", answer=ProposalPage, params=params)


def decide(
    proposal_id: str, decision: Literal["accept", "reject"], *, reason: str | None = None
) -> Call[Accepted]:
    return _command(f"proposals/{quote(proposal_id, safe='')}", decision, quoted=True, reason=reason)


def labels(namespace: str) -> Call[Labels]:
    return Call(method="GET", path=_labels_path(namespace), answer=Labels)


def set_labels(namespace: str, value: Mapping[str, Any]) -> Call[Labels]:
    """`value`: `labels`, `patterns` and, to be safe from another's change, the `version` it is based on."""
    return Call(method="PUT", path=_labels_path(namespace), answer=Labels, json=value)


def _labels_path(namespace: str) -> str:
    return f"/v1/namespaces/{quote(namespace, safe='')}/labels"


def _command(target: str, kind: str, *, quoted: bool = False, **fields: str | None) -> Call[Accepted]:
    path = f"/v1/entities/{target}/{kind}" if quoted else _path(target, f"/{kind}")
    return Call(method="POST", path=path, answer=Accepted, json=given(**fields))


def _path(entity_id: str, suffix: str = "") -> str:
    return f"/v1/entities/{quote(entity_id, safe='')}{suffix}"
