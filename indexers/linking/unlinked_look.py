"""Which names the texts of some documents say, by what the index knows now: the edges that they shall have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from indexers.domain.identity import DocumentKey, LinkId, Scope, TenantId, link_id
from indexers.domain.links import SCOPE_WIDTH, VisibleScope, nearest, visible_scopes
from indexers.domain.markdown import context_of
from indexers.domain.title_names import (
    UNLINKED_MENTION,
    NameSet,
    Place,
    Said,
    heads_among,
    long_grams,
    lookup_key,
    short_grams,
)
from indexers.linking.unlinked_names import (
    Holder,
    ScopedName,
    Scopes,
    count_holders,
    count_sayers,
    existing_keys,
    holders_of,
)
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import LinkRow, owner_fields

#: Places kept of one edge.
OCCURRENCES_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedText:
    """One version of a document and what its text says."""

    key: DocumentKey
    version: int
    text: str
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """`rows`: edges that the document shall have. `common`: names that it says, too common in its own scope."""

    rows: dict[LinkId, LinkRow]
    common: frozenset[str]


@dataclass(slots=True)
class _Group:
    """Texts whose authors see the same documents."""

    visible: tuple[VisibleScope, ...]
    texts: list[int] = field(default_factory=list)
    #: Lookup key → documents that have it, among all whose in-degree these texts count for.
    keys: dict[str, int] = field(default_factory=dict)
    #: Those that some text of the group says.
    said: set[str] = field(default_factory=set)
    holders: dict[str, dict[str, Holder]] = field(default_factory=dict)
    #: Names of more documents than the cap allows.
    crowded: set[str] = field(default_factory=set)

    @property
    def counted(self) -> Scopes:
        """Scopes of names that these texts may make common. A shared text counts for everyone's names."""
        return None if self.is_shared else self.visible

    @property
    def is_shared(self) -> bool:
        return self.visible[0].scope is Scope.SHARED

    def names(self) -> set[str]:
        return set(self.holders) | self.crowded

    def shown(self, name: str) -> list[Holder]:
        """Holders that the authors see."""
        found = list(self.holders.get(name, {}).values())
        shared = SCOPE_WIDTH[Scope.SHARED]
        return [h for h in found if h.candidate.scope_width == shared] if self.is_shared else found


async def look_at(gate: Gate, tenant_id: TenantId, texts: Sequence[NamedText], *, cap: int) -> list[Look]:
    """The caller has refreshed documents after its own last write to them."""
    groups: dict[tuple[VisibleScope, ...], _Group] = {}
    for at, text in enumerate(texts):
        visible = visible_scopes(text.key.namespace)
        groups.setdefault(visible, _Group(visible)).texts.append(at)
    members = list(groups.values())
    await _find_keys(gate, tenant_id, members, texts)
    await _find_holders(gate, tenant_id, members, cap)
    asked = {
        ScopedName(name, scope): None
        for group in members
        for name in group.names()
        for scope in group.visible
    }
    counts = await count_sayers(gate, tenant_id, list(asked), limit=cap)
    found: dict[int, Look] = {}
    for group in members:
        common = {
            scope: {name for name in group.names() if counts[ScopedName(name, scope)] > cap}
            for scope in group.visible
        }
        usable = _usable(group, common, cap)
        ready = NameSet(usable)
        # The first of the visible scopes is the texts' own.
        here = NameSet(common[group.visible[0]])
        for at in group.texts:
            text = texts[at]
            found[at] = Look(rows=_rows(text, ready, usable), common=frozenset(here.said_in(text.said)))
    return [found[at] for at in range(len(texts))]


async def _find_keys(
    gate: Gate, tenant_id: TenantId, groups: Sequence[_Group], texts: Sequence[NamedText]
) -> None:
    grams = [set[str]().union(*(short_grams(texts[at].said) for at in group.texts)) for group in groups]
    pairs = list(zip((group.counted for group in groups), grams, strict=True))
    for group, keys in zip(groups, await existing_keys(gate, tenant_id, pairs), strict=True):
        group.keys = keys
    longer = [(group, heads) for group in groups if (heads := heads_among(group.keys))]
    asked = [
        (group.counted, set[str]().union(*(long_grams(texts[at].said, heads) for at in group.texts)))
        for group, heads in longer
    ]
    for (group, heads), keys in zip(longer, await existing_keys(gate, tenant_id, asked), strict=True):
        group.keys = {k: n for k, n in group.keys.items() if k not in heads} | keys
    for group in groups:
        names = NameSet(group.keys)
        for at in group.texts:
            group.said |= names.said_in(texts[at].said)


async def _find_holders(gate: Gate, tenant_id: TenantId, groups: Sequence[_Group], cap: int) -> None:
    """Of names that very many documents have only that there are so many."""
    crowds = [(group, key) for group in groups for key in sorted(group.said) if group.keys[key] > cap]
    shared = [(group, key) for group, key in crowds if group.is_shared]
    for group, key in crowds:
        group.crowded.add(key)
    seen = await count_holders(gate, tenant_id, [(g.visible, key) for g, key in shared], limit=cap)
    few: defaultdict[int, set[str]] = defaultdict(set)
    for (group, key), count in zip(shared, seen, strict=True):
        if count <= cap:
            few[id(group)].add(key)
    asked: list[tuple[_Group, Scopes, set[str]]] = []
    for group in groups:
        asked.append((group, group.counted, group.said - group.crowded))
        asked.append((group, group.visible, few[id(group)]))
    found = await holders_of(gate, tenant_id, [(scopes, keys) for _, scopes, keys in asked])
    for (group, _, keys), holders in zip(asked, found, strict=True):
        for holder in holders:
            for name in holder.names:
                if lookup_key(name) in keys:
                    group.holders.setdefault(name, {})[holder.candidate.doc_id] = holder


def _usable(group: _Group, common: Mapping[VisibleScope, set[str]], cap: int) -> dict[str, list[Holder]]:
    """Names that make edges, with their holders."""
    too_common = set[str]().union(*common.values())
    shown = {name: group.shown(name) for name in group.names() - too_common}
    return {name: holders for name, holders in shown.items() if 0 < len(holders) <= cap}


def _rows(text: NamedText, ready: NameSet, usable: Mapping[str, list[Holder]]) -> dict[LinkId, LinkRow]:
    found: dict[str, list[Place]] = {}
    for place in ready.places_in(text.said):
        found.setdefault(place.name, []).append(place)
    rows: dict[LinkId, LinkRow] = {}
    for name, at in found.items():
        holders = usable[name]
        # A text that says its own document's name speaks of itself.
        if all(holder.candidate.doc_id != text.key.doc_id for holder in holders):
            row_id = link_id(text.key.doc_id, text.version, name, UNLINKED_MENTION)
            rows[row_id] = _row(text, name, at, holders)
    return rows


def _row(text: NamedText, name: str, found: Sequence[Place], holders: Sequence[Holder]) -> LinkRow:
    namespace, path = text.key.namespace, text.key.path
    candidates = [holder.candidate for holder in holders]
    first = found[0]
    return LinkRow(
        **owner_fields(namespace),
        from_doc_id=text.key.doc_id,
        from_path=path,
        to_doc_id=nearest(candidates, path, namespace.agent_id).doc_id,
        target=" ".join(text.text[first.start : first.end].split()),
        target_key=name,
        target_name_key="",
        link_type=UNLINKED_MENTION,
        occurrences=[_occurrence(text.text, place) for place in found[:OCCURRENCES_MAX]],
        resolved=True,
        ambiguous=len(candidates) > 1,
        version=text.version,
    )


def _occurrence(text: str, place: Place) -> dict[str, object]:
    return {
        "start": place.start,
        "end": place.end,
        "display": None,
        "context": context_of(text, place.start, place.end),
        "heading": None,
    }
