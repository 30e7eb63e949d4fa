"""The trace of a search, as an answer gives it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from search_api.models import GraphTraceAnswer, RecognisedAnswer, TraceAnswer
from search_api.retrieval.answers import stage_answer
from search_api.retrieval.found import Found, Page
from search_api.retrieval.graphing import GraphRun
from search_api.retrieval.queries import fit_words


def trace_answer(found: Found, page: Page, model_id: str) -> TraceAnswer:
    recalled, ranking = found.recalled, found.ranking
    return TraceAnswer(
        embedding_model=None if found.cached is None else model_id,
        candidate_depth=ranking.rules.candidates,
        keyword_hits=recalled.hits("keyword"),
        vector_hits=recalled.hits("vector"),
        filter_mode=found.passing.mode,
        query_words_left_out=fit_words(found.request.query).left_out,
        query_vector_cached=bool(found.cached),
        cosine_floor=ranking.cosine_floor,
        turn_previous=ranking.rules.turn_previous,
        turn_next=ranking.rules.turn_next,
        steps_ms=found.steps.ms,
        round_trips=found.steps.round_trips,
        recognised=list(_recognised(found)),
        lists={f"{leg}/{part}": count for (leg, part), count in recalled.found.items()},
        weights={f"{leg}/{part}": share for (leg, part), share in ranking.weights.items()},
        graph=None if found.graph is None else _graph(found.graph),
        stages=[stage_answer(record) for record in page.records],
    )


def _graph(run: GraphRun) -> GraphTraceAnswer:
    graph = run.subgraph
    return GraphTraceAnswer(
        edges=len(graph.edges),
        names=len(graph.names),
        documents=graph.documents,
        stale=graph.stale,
        truncated=dict(graph.truncated),
    )


def _recognised(found: Found) -> Iterator[RecognisedAnswer]:
    recalled = found.recalled
    for one in found.ranking.route.recognised:
        yield RecognisedAnswer(kind=one.kind, said=one.said, effect=one.effect)
    for doc_id in sorted(recalled.named):
        yield RecognisedAnswer(kind="title", said=recalled.views[doc_id].title, effect="boost")
    for node in sorted(recalled.names):
        yield RecognisedAnswer(kind="name", said=recalled.names[node].name, effect="boost")
