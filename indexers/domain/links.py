"""Which document a link names. Never fuzzy, and a function of the set of candidates, not of their order.

First tier that holds a candidate wins:

1. the exact path from the vault's root; for `reference` (`[text](file.md)`) first from the note's own folder;
2. a path that ends with the target's folders and name (only where the target has a folder);
3. the file name (only where it has none);
4. an alias.

Several in one tier: the author's own documents before other agents', then fewest folder steps from the note,
then the narrower scope, then path order; the edge is marked ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from indexers.domain.identity import AgentId, Namespace, Scope, TeamId
from indexers.domain.names import (
    LinkType,
    alias_key,
    fold,
    name_key,
    path_key,
    target_alias_key,
    target_name_key,
    with_suffix,
    without_suffix,
)

#: Narrow to wide: a link resolves within the author's scope or a wider one.
SCOPE_WIDTH = {Scope.PERSONAL: 0, Scope.TEAM: 1, Scope.SHARED: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A living document that a link may name. The caller passes only what `may_resolve` allows."""

    doc_id: str
    path: str
    path_key: str
    name_key: str
    alias_keys: tuple[str, ...] = ()
    #: 0 personal, 1 team, 2 shared.
    scope_width: int = 2
    agent_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    to_doc_id: str | None
    ambiguous: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetKeys:
    """Documents that may be the target: with one of these path keys, this name key or this alias key."""

    path_keys: tuple[str, ...]
    name_key: str | None
    alias_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKeys:
    """Links that may name a document: `target_name_key` is `name_key`, or `target_key` in `target_keys`."""

    path_key: str
    name_key: str
    alias_keys: tuple[str, ...]
    target_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleScope:
    """One `AND` of a filter; None: any."""

    scope: Scope
    agent_id: AgentId | None = None
    team_id: TeamId | None = None


def target_keys(target_key: str, *, from_path: str, link_type: LinkType) -> TargetKeys:
    """All keys under which the store must look for a link's target."""
    if target_key.startswith("/"):
        return TargetKeys(path_keys=(target_key[1:],), name_key=None, alias_key=None)
    return TargetKeys(
        path_keys=_exact_paths(target_key, from_path, link_type),
        name_key=target_name_key(target_key),
        alias_key=target_alias_key(target_key),
    )


def document_keys(path: str, aliases: Sequence[str]) -> DocumentKeys:
    """All keys of a document, and those under which the store must look for links that may name it."""
    keys = tuple(sorted({key for alias in aliases if (key := alias_key(alias))}))
    return DocumentKeys(
        path_key=path_key(path),
        name_key=name_key(path),
        alias_keys=keys,
        target_keys=tuple(with_suffix(key) for key in keys),
    )


def visible_scopes(namespace: Namespace) -> tuple[VisibleScope, ...]:
    """Scopes in which a note of this namespace may find targets.

    A personal note doesn't see team documents: an event names its agent, not the agent's teams.
    """
    shared = VisibleScope(scope=Scope.SHARED)
    match namespace.scope:
        case Scope.PERSONAL:
            return (VisibleScope(scope=Scope.PERSONAL, agent_id=namespace.agent_id), shared)
        case Scope.TEAM:
            return (VisibleScope(scope=Scope.TEAM, team_id=namespace.team_id), shared)
        case Scope.SHARED:
            return (shared,)


def may_resolve(author: Namespace, target: Namespace) -> bool:
    """Whether a link written in `author` may point at a document of `target`."""
    return author.tenant_id == target.tenant_id and any(
        visible.scope is target.scope
        and visible.agent_id in (None, target.agent_id)
        and visible.team_id in (None, target.team_id)
        for visible in visible_scopes(author)
    )


def resolve(
    target_key: str,
    *,
    from_path: str,
    link_type: LinkType,
    candidates: Sequence[Candidate],
    author: str | None = None,
) -> Resolution:
    """The document that a target key names, or None. `author`: agent whose own documents go first."""
    for fits in _tiers(target_key, from_path, link_type):
        found = {candidate.doc_id: candidate for candidate in candidates if fits(candidate)}
        if found:
            best = nearest(list(found.values()), from_path, author)
            return Resolution(to_doc_id=best.doc_id, ambiguous=len(found) > 1)
    return Resolution(to_doc_id=None, ambiguous=False)


def nearest(candidates: Sequence[Candidate], from_path: str, author: str | None) -> Candidate:
    """The one that is meant among those that a name fits equally."""
    return min(candidates, key=lambda candidate: _nearness(candidate, from_path, author))


def path_steps(from_path: str, to_path: str) -> int:
    """Folder steps up and down between two paths; 0 within one folder."""
    here, there = fold(from_path).split("/")[:-1], fold(to_path).split("/")[:-1]
    common = 0
    for left, right in zip(here, there, strict=False):
        if left != right:
            break
        common += 1
    return len(here) + len(there) - 2 * common


Fits = Callable[[Candidate], bool]


def _tiers(key: str, from_path: str, link_type: LinkType) -> list[Fits]:
    if key.startswith("/"):
        return [_has_path(key[1:])]
    exact = [_has_path(path) for path in _exact_paths(key, from_path, link_type)]
    name, alias = target_name_key(key), target_alias_key(key)
    ending = f"/{without_suffix(key)}"
    by_name: Fits = (
        (lambda c: without_suffix(c.path_key).endswith(ending))
        if "/" in key
        else (lambda c: c.name_key == name)
    )
    return [*exact, by_name, lambda c: alias in c.alias_keys]


def _has_path(path: str) -> Fits:
    return lambda candidate: candidate.path_key == path


def _exact_paths(key: str, from_path: str, link_type: LinkType) -> tuple[str, ...]:
    folder = fold(from_path).rpartition("/")[0]
    if link_type == "reference" and folder:
        return (f"{folder}/{key}", key)
    return (key,)


def _nearness(
    candidate: Candidate, from_path: str, author: str | None
) -> tuple[bool, int, int, str, str, str]:
    return (
        author is not None and candidate.agent_id != author,
        path_steps(from_path, candidate.path),
        candidate.scope_width,
        candidate.path,
        candidate.agent_id,
        candidate.doc_id,
    )
