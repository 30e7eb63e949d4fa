"""What of the rows that were looked up by name the query really says: exact documents, titles, entities. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from indexers.domain.names import fold, name_key
from indexers.domain.title_names import NameSet, Said, names_of
from search_api.graph.idf import idf
from search_api.graph.kinds import name_node
from search_api.retrieval.candidates import (
    Candidate,
    DocumentView,
    Evidence,
    FoundMention,
    FoundName,
    SaidName,
)
from search_api.retrieval.factors import EXACT_WEIGHT
from search_api.retrieval.normalising import EXACT
from search_api.retrieval.router import Route

#: A name of an entity by label and key, as documents are joined by it.
Node = tuple[str, str]


def is_exact(document: DocumentView, route: Route) -> bool:
    """Its id or path is said, or its title, an alias or its file's name is quoted."""
    if document.doc_id in route.doc_ids or document.path in route.paths:
        return True
    if not route.quoted:
        return False
    own = {fold(name) for name in (document.title, *document.aliases)} | {name_key(document.path)}
    return any(fold(said) in own for said in route.quoted)


def exact_candidate(document: DocumentView) -> Candidate:
    evidence = Evidence(
        part="exact", raw=1.0, normalised=1.0, version=document.version, normaliser=EXACT, weight=EXACT_WEIGHT
    )
    return Candidate(doc_id=document.doc_id, document=document, facts=document, evidence=(evidence,))


def named_titles(documents: Iterable[DocumentView], said: Sequence[Said]) -> dict[str, float]:
    """By document: 1, divided by the documents that have the name too. The longest names that the query says."""
    names = {d.doc_id: names_of(d.title, d.aliases) for d in documents}
    places = NameSet({name for own in names.values() for name in own}).places_in(said)
    found = {place.name for place in places}
    sharing: defaultdict[str, int] = defaultdict(int)
    for own in names.values():
        for name in found.intersection(own):
            sharing[name] += 1
    return {
        doc_id: max(1 / sharing[name] for name in own if name in found)
        for doc_id, own in names.items()
        if found.intersection(own)
    }


def known_names(rows: Sequence[FoundName], total: int) -> dict[Node, SaidName]:
    """By label and key over the namespaces that the asker sees; blocked names are none. `weight` is 1 yet."""
    documents: defaultdict[Node, int] = defaultdict(int)
    spelt: dict[Node, str] = {}
    for row in sorted(rows, key=lambda row: (-row.mentions, row.name_id)):
        if not row.blocked:
            documents[row.label, row.key] += row.mentions
            spelt.setdefault((row.label, row.key), row.name)
    return {
        node: SaidName(label=node[0], name=spelt[node], documents=count, idf=idf(count, total), weight=1.0)
        for node, count in documents.items()
    }


def name_seeds(names: Mapping[Node, SaidName]) -> dict[str, float]:
    """Name nodes of the graph and what each is worth as a start."""
    return {name_node(label, key): said.idf for (label, key), said in names.items()}


def mention_candidates(
    rows: Iterable[FoundMention], names: Mapping[Node, SaidName], documents: Mapping[str, DocumentView]
) -> list[Candidate]:
    """One a document: Σ idf · weight over the names that it says in its newest version, each key once."""
    newest: dict[str, int] = {}
    said: dict[str, dict[str, tuple[SaidName, int]]] = {}
    for row in rows:
        name = names.get((row.label, row.key))
        if name is None:
            continue
        newest[row.doc_id] = max(newest.get(row.doc_id, 0), row.version)
        own = said.setdefault(row.doc_id, {})
        weighed = SaidName(
            label=name.label, name=name.name, documents=name.documents, idf=name.idf, weight=row.weight
        )
        known = own.get(row.key)
        if known is None or (row.version, _worth(weighed)) > (known[1], _worth(known[0])):
            own[row.key] = (weighed, row.version)
    return [
        _mention_candidate(doc_id, newest[doc_id], own, documents.get(doc_id)) for doc_id, own in said.items()
    ]


def _mention_candidate(
    doc_id: str, version: int, said: Mapping[str, tuple[SaidName, int]], document: DocumentView | None
) -> Candidate:
    names = tuple(name for key, (name, of) in sorted(said.items()) if of == version)
    raw = math.fsum(_worth(name)[0] for name in names)
    evidence = Evidence(leg="entities", part="names", raw=raw, normalised=raw, version=version, names=names)
    return Candidate(doc_id=doc_id, document=document, facts=document, evidence=(evidence,))


def _worth(name: SaidName) -> tuple[float, str]:
    """Equal ones by label, so that the order of the rows decides nothing."""
    return name.idf * name.weight, name.label
