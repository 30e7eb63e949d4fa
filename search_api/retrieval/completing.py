"""From found candidates to a page of them: rows of those that have none, all of them in order, and their paths.

What a page shows never decides a score. Rows are looked up for candidates that only names or the graph brought, the
best few of them whatever the page, and for what a page shows and tells; normally all in one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from msgspec.structs import replace

from search_api.cursor import SearchPosition
from search_api.retrieval.candidates import Candidate
from search_api.retrieval.filtering import passes
from search_api.retrieval.found import Found, Page
from search_api.retrieval.graphing import GraphRun, brought_in, standing_run, with_graph
from search_api.retrieval.paths import Paths, documents_of, edges_of, is_related, paths_of
from search_api.retrieval.stages import (
    ORDER,
    StageRecord,
    behind,
    is_stood_by,
    joined,
    rank,
    run_stages,
)

#: Beyond a page's size, candidates whose paths are read before the last order is known.
_AHEAD: Final = 5
#: So many times the rows of the request before, where a page is still short: a mass delete leaves hundreds in a row.
_MORE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ordered:
    ranked: list[Candidate]
    records: list[StageRecord]
    graph: GraphRun | None
    paths: Paths = field(default_factory=dict)


async def cut_page(found: Found, after: SearchPosition | None, size: int) -> Page:
    """`size` hits that stand as their evidence says, behind a position; passed-over ones are made up for."""
    with found.steps.timed("look_up"):
        ordered = await _order(found, after, size)
        rest = behind(ordered.ranked, after)
        shown: list[Candidate] = []
        done, more = 0, size + 1
        while len(shown) <= size and done < len(rest):
            batch = rest[done : done + more]
            done += len(batch)
            more *= _MORE
            await found.look_up.read(c.doc_id for c in batch if c.document is None)
            shown += [c for c in (_with_row(found, c) for c in batch) if is_stood_by(c)]
        last = shown[size - 1] if len(shown) > size else None
        paths = await _told_paths(found, ordered, shown[:size])
    return Page(
        shown=shown[:size],
        last=last,
        ranked=ordered.ranked,
        first=after is None,
        records=ordered.records,
        paths=paths,
    )


async def _order(found: Found, after: SearchPosition | None, size: int) -> _Ordered:
    """All candidates in order: those without facts get their rows, together with what the page may show."""
    run = found.graph
    if not found.unknown and run is None:
        return _Ordered(ranked=list(found.known), records=[*found.before, *found.order], graph=None)
    near = _expected(found, after, size + 1 + _AHEAD)
    rowless = [c.doc_id for c in behind(found.known, after)[: size + 1] if c.document is None]
    told = [c for c in near if _tells(found, c)]
    paths = {} if run is None else paths_of(run, _each_once([*told, *found.unknown]))
    of_unknown = {c.doc_id for c in found.unknown}
    shown_paths = [path for (doc_id, _), path in paths.items() if doc_id in {c.doc_id for c in told}]
    # Whether these stand decides scores: which they are mustn't depend on the page.
    checked = [*of_unknown, *documents_of(p for (doc_id, _), p in paths.items() if doc_id in of_unknown)]
    await found.look_up.read([*rowless, *checked, *documents_of(shown_paths)], edges_of(shown_paths))
    return _with_rows(found, checked, paths)


def _with_rows(found: Found, checked: Sequence[str], paths: Paths) -> _Ordered:
    ranking, rows, run = found.ranking, found.look_up.documents, found.graph
    known, unknown, order = list(found.known), list(found.unknown), list(found.order)
    if run is not None:
        stood = standing_run(run, found.look_up.versions(checked), found.fused)
        if stood is not run:
            run, paths = stood, {}
            fused = with_graph(run, found.fused)
            views = found.recalled.views
            ids = {c.doc_id for c in found.fused}
            new = [c.doc_id for c in (*found.known, *found.unknown) if c.doc_id not in ids]
            every = {c.doc_id: c for c in (*fused, *brought_in(run, new, views))}
            known, order = run_stages([every[c.doc_id] for c in known if c.doc_id in every], ranking, ORDER)
            unknown = [every[c.doc_id] for c in unknown if c.doc_id in every]
    standing = [
        with_row
        for candidate in unknown
        if (row := rows.get(candidate.doc_id)) is not None
        and is_stood_by(with_row := replace(candidate, document=row, facts=row))
        and passes(found.request.filters, row)
    ]
    ordered, more = run_stages(standing, ranking, ORDER)
    looked_up = StageRecord(
        stage="look_up",
        on=True,
        candidates_in=len(known) + len(unknown),
        candidates_out=len(known) + len(standing),
        ms=0.0,
    )
    return _Ordered(
        ranked=rank([*known, *ordered], ranking),
        records=[*found.before, looked_up, *joined(order, more)],
        graph=run,
        paths=paths,
    )


def _expected(found: Found, after: SearchPosition | None, size: int) -> list[Candidate]:
    """What the page will likely show: those without facts are taken to have the factors that others have."""
    factors = [c.score / c.recall_score for c in found.known[:50] if c.recall_score > 0]
    typical = median(factors) if factors else 1.0
    unknown = [replace(c, score=c.recall_score * typical) for c in found.unknown]
    return behind(rank([*found.known, *unknown], found.ranking), after)[:size]


async def _told_paths(found: Found, ordered: _Ordered, shown: Sequence[Candidate]) -> Paths:
    """Paths of the hits that tell them, with all that they need looked up."""
    told = [c for c in shown if _tells(found, c)]
    if ordered.graph is None or not told:
        return {}
    ids = {c.doc_id for c in told}
    have = {doc_id for doc_id, _ in ordered.paths}
    paths = {key: path for key, path in ordered.paths.items() if key[0] in ids}
    paths |= paths_of(ordered.graph, [c for c in told if c.doc_id not in have])
    await found.look_up.read(documents_of(paths.values()), edges_of(paths.values()))
    return paths


def _tells(found: Found, candidate: Candidate) -> bool:
    """With `explain` every hit tells its paths, else those that the graph alone has brought."""
    if found.request.explain:
        return any(evidence.leg == "graph" for evidence in candidate.evidence)
    return is_related(candidate)


def _with_row(found: Found, candidate: Candidate) -> Candidate:
    if candidate.document is not None:
        return candidate
    return replace(candidate, document=found.look_up.documents[candidate.doc_id])


def _each_once(candidates: Sequence[Candidate]) -> list[Candidate]:
    return list({c.doc_id: c for c in candidates}.values())
