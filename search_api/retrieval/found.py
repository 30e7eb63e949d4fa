"""What one search has found, before its page is cut, and the page. Values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexers.domain.identity import Principal
from search_api.requests import SearchRequest
from search_api.retrieval.candidates import Candidate, Ranking
from search_api.retrieval.graphing import GraphRun
from search_api.retrieval.look_up import LookUp
from search_api.retrieval.paths import Paths
from search_api.retrieval.recall import Passing, Recalled
from search_api.retrieval.stages import StageRecord
from search_api.retrieval.steps import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    principal: Principal
    request: SearchRequest
    ranking: Ranking
    passing: Passing
    recalled: Recalled
    #: The model of the vectors that were asked.
    model_id: str
    #: Whether the query's vector was known; None without the vector part.
    cached: bool | None
    steps: Steps
    look_up: LookUp
    #: Of the recall, one a document.
    fused: Sequence[Candidate]
    #: None: the graph wasn't walked.
    graph: GraphRun | None
    #: Ranked: those whose facts are known.
    known: Sequence[Candidate]
    #: Those that need a row first: only names or the graph brought them. The best few.
    unknown: Sequence[Candidate]
    #: Stages before the look-up, and behind it over `known`.
    before: Sequence[StageRecord]
    order: Sequence[StageRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    shown: list[Candidate]
    #: The last one shown, where more follow.
    last: Candidate | None
    #: All of them, in order.
    ranked: list[Candidate]
    #: Whether it is the first.
    first: bool
    records: Sequence[StageRecord]
    #: Of what is shown, in so far as the answer tells them.
    paths: Paths
