"""A plain matcher of titles in texts: every document, every position, every length. What the pipeline must equal."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from indexers.domain.entities.particles import without_particle
from indexers.domain.identity import Namespace
from indexers.domain.links import may_resolve
from indexers.domain.markdown import parse
from indexers.domain.prose import is_stop_word

Token = tuple[str, int, int]
#: From path, name, path that it leads to, ambiguous, where the text says it.
Mention = tuple[str, str, str, bool, tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Doc:
    namespace: Namespace
    path: str
    pieces: tuple[tuple[Token, ...], ...]
    names: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, namespace: Namespace, path: str, raw: str) -> Doc:
        note = parse(raw, path=path, frontmatter_max_bytes=65_536)
        pieces = tuple(
            tuple(token for start, end in piece for token in tokens(note.text, start, end))
            for piece in note.prose
        )
        written = [note.title, *note.frontmatter.aliases]
        called = written + [without_brackets(one) for one in written]
        found = {tuple(key for key, _, _ in tokens(one, 0, len(one))) for one in called}
        return cls(namespace, path, pieces, frozenset(name for name in found if is_name(name)))


def without_brackets(title: str) -> str:
    """`Ebb (song)` is said as `Ebb`."""
    bare = title.rstrip()
    begin = max(bare.rfind("("), bare.rfind("（"))
    inside = bare[begin + 1 : -1]
    closed = begin > 0 and bare[-1] in ")）" and not set(inside) & set(")）")
    return bare[:begin] if closed and bare[:begin].strip() else title


def tokens(text: str, start: int, end: int) -> list[Token]:
    found: list[Token] = []
    at = start
    while at < end:
        if not text[at].isalnum():
            at += 1
            continue
        begin = at
        while at < end and (text[at].isalnum() or unicodedata.category(text[at]).startswith("M")):
            at += 1
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text[begin:at]).casefold())
        key = "".join(c for c in folded if c.isalnum() or unicodedata.category(c).startswith("M"))
        if key and len(key) <= 100:
            found.append((key, begin, at))
    return found


def is_name(name: Sequence[str]) -> bool:
    joined = "".join(name)
    blocks = ("HANGUL", "CJK", "HIRAGANA", "KATAKANA")
    dense = any(unicodedata.name(c, "").startswith(blocks) for c in joined)
    return (
        len(joined) >= (2 if dense else 4)
        and any(c.isalpha() for c in joined)
        and not all(is_stop_word(key) for key in name)
    )


def says(piece: Sequence[Token], at: int, name: Sequence[str]) -> bool:
    window = piece[at : at + len(name)]
    if len(window) < len(name) or any(t[0] != n for t, n in zip(window[:-1], name, strict=False)):
        return False
    last = window[-1][0]
    return name[-1] in (last, without_particle(last, person=False))


def mentions(docs: Sequence[Doc], *, cap: int) -> set[Mention]:
    holders: defaultdict[tuple[str, ...], list[Doc]] = defaultdict(list)
    for doc in docs:
        for name in doc.names:
            holders[name].append(doc)
    by_size: defaultdict[int, set[tuple[str, ...]]] = defaultdict(set)
    for name in holders:
        by_size[len(name)].add(name)
    sizes = sorted(by_size, reverse=True)
    counts = _counts(docs, by_size)
    found: set[Mention] = set()
    for doc in docs:
        found |= _of(doc, by_size, sizes, holders, counts, cap)
    return found


def _starting(
    piece: Sequence[Token], at: int, size: int, names: set[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Names of this many tokens that stand here, the longest first."""
    window = piece[at : at + size]
    if len(window) < size:
        return []
    head, last = tuple(t[0] for t in window[:-1]), window[-1][0]
    ends = dict.fromkeys((last, without_particle(last, person=False)))
    return [name for end in ends if (name := (*head, end)) in names]


def _counts(
    docs: Sequence[Doc], by_size: Mapping[int, set[tuple[str, ...]]]
) -> dict[tuple[tuple[str, ...], tuple[str, str]], int]:
    counts: defaultdict[tuple[tuple[str, ...], tuple[str, str]], int] = defaultdict(int)
    for doc in docs:
        said = {
            name
            for piece in doc.pieces
            for at in range(len(piece))
            for size, names in by_size.items()
            for name in _starting(piece, at, size, names)
        }
        for name in said:
            counts[name, _scope(doc.namespace)] += 1
    return counts


def _scope(namespace: Namespace) -> tuple[str, str]:
    owner = {"personal": namespace.agent_id, "team": namespace.team_id or "", "shared": ""}
    return (namespace.scope.value, owner[namespace.scope.value])


def _of(
    doc: Doc,
    by_size: Mapping[int, set[tuple[str, ...]]],
    sizes: Sequence[int],
    holders: Mapping[tuple[str, ...], list[Doc]],
    counts: Mapping[tuple[tuple[str, ...], tuple[str, str]], int],
    cap: int,
) -> set[Mention]:
    visible = {_scope(doc.namespace), ("shared", "")}
    places: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)

    def usable(name: tuple[str, ...]) -> list[Doc]:
        if any(counts.get((name, scope), 0) > cap for scope in visible):
            return []
        shown = [other for other in holders[name] if may_resolve(doc.namespace, other.namespace)]
        return shown if len(shown) <= cap else []

    for piece in doc.pieces:
        at = 0
        while at < len(piece):
            here = [n for size in sizes for n in _starting(piece, at, size, by_size[size]) if usable(n)]
            if not here:
                at += 1
                continue
            key, start, end = piece[at + len(here[0]) - 1]
            if end - start == len(key):
                end -= len(key) - len(here[0][-1])
            places[here[0]].append((piece[at][1], end))
            at += len(here[0])
    found: set[Mention] = set()
    for name, where in places.items():
        others = usable(name)
        if doc not in others:
            best = min(others, key=lambda other: _distance(doc, other))
            found.add((doc.path, " ".join(name), best.path, len(others) > 1, tuple(where[:100])))
    return found


def _distance(doc: Doc, other: Doc) -> tuple[bool, int, int, str, str]:
    here, there = (unicodedata.normalize("NFC", d.path.casefold()).split("/")[:-1] for d in (doc, other))
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    width = ("personal", "team", "shared").index(other.namespace.scope.value)
    steps = len(here) + len(there) - 2 * common
    return (
        other.namespace.agent_id != doc.namespace.agent_id,
        steps,
        width,
        other.path,
        other.namespace.agent_id,
    )
