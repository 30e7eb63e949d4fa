"""One search from the request to the answer: vectors, recall, stages, page, excerpts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from indexers.domain.identity import Principal
from indexers.domain.matching import QueryWords
from search_api.cursor import (
    CursorError,
    SearchPosition,
    decode_search_cursor,
    encode_cursor,
    fingerprint,
)
from search_api.metrics import ApiMetrics
from search_api.models import HitAnswer, Part, SearchAnswer, TraceAnswer
from search_api.problems import ProblemError, invalid_field
from search_api.reading import FileText, Unread, VaultLibrary
from search_api.requests import SearchRequest
from search_api.retrieval.answers import hit_answer, stage_answer
from search_api.retrieval.candidates import Candidate, DocumentView, Ranking
from search_api.retrieval.excerpting import ShownExcerpt, matches, show
from search_api.retrieval.queries import fit_words
from search_api.retrieval.query_vectors import QueryVectors
from search_api.retrieval.recall import Passing, Recall, Recalled
from search_api.retrieval.stages import StageRecord, behind, is_stood_by, position_of, run_stages
from search_api.settings import SearchSettings


@dataclass(slots=True)
class _Steps:
    """Milliseconds of what was waited for."""

    metrics: ApiMetrics
    ms: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self.ms[name] = round(seconds * 1_000, 3)
            self.metrics.step_seconds.labels(step=name).observe(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What one request found before ranking."""

    recalled: Recalled
    passing: Passing
    #: Whether the query's vector was known; None without the vector part.
    cached: bool | None
    steps: _Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPage:
    """The hits of a page with their rows, before anything of a file is read."""

    shown: list[Candidate]
    candidates: int
    words_found: bool | None


class SearchService:
    def __init__(
        self,
        *,
        recall: Recall,
        vectors: QueryVectors,
        library: VaultLibrary,
        settings: SearchSettings,
        text_max_bytes: int,
        metrics: ApiMetrics,
    ) -> None:
        self._recall = recall
        self._vectors = vectors
        self._library = library
        self._settings = settings
        self._text_max_bytes = text_max_bytes
        self._metrics = metrics

    async def search(self, principal: Principal, request: SearchRequest) -> SearchAnswer:
        """ProblemError (422) for limits that only the settings know; Transient when the store is away."""
        with self._metrics.search_seconds.labels(mode="+".join(sorted(set(request.parts)))).time():
            return await self._search(principal, request)

    async def ranked(self, principal: Principal, request: SearchRequest) -> RankedPage:
        """The first page of `search` without its excerpts; errors as there."""
        with self._metrics.search_seconds.labels(mode="+".join(sorted(set(request.parts)))).time():
            size = self._page_size(request)
            run = await self._run(principal, request)
            ranking = self._ranking(run.recalled, request.parts)
            ranked, records = run_stages(run.recalled.candidates, ranking)
            with run.steps.timed("look_up"):
                shown, _ = await self._page(principal, ranked, size)
            self._count(records)
            return RankedPage(
                shown=shown,
                candidates=len(ranked),
                words_found=bool(run.recalled.keyword_hits) if "keyword" in request.parts else None,
            )

    async def _search(self, principal: Principal, request: SearchRequest) -> SearchAnswer:
        size = self._page_size(request)
        list_name = _list_name(principal, request, self._settings)
        after = _position(request.cursor, list_name)
        run = await self._run(principal, request)
        ranked, records = run_stages(run.recalled.candidates, self._ranking(run.recalled, request.parts))
        following_hits = behind(ranked, after)
        # Those of the first `size` whose row is known and fits are on the page whatever the look-up finds.
        certain = [c for c in following_hits[:size] if is_stood_by(c)]
        words = QueryWords.of(request.query)
        reading = asyncio.ensure_future(self._hits(certain, words))
        try:
            with run.steps.timed("look_up"):
                shown, following = await self._page(principal, following_hits, size)
            with run.steps.timed("excerpts"):
                hits = await self._in_order(shown, reading, {c.doc_id for c in certain}, words)
        finally:
            reading.cancel()
        self._count(records)
        return SearchAnswer(
            hits=hits,
            candidates=len(ranked),
            words_found=bool(run.recalled.keyword_hits) if "keyword" in request.parts else None,
            next_cursor=None if following is None else encode_cursor(following, list_name),
            trace=self._trace(request.query, run, records) if request.explain else None,
        )

    async def _page(
        self, principal: Principal, ranked: Sequence[Candidate], size: int
    ) -> tuple[list[Candidate], SearchPosition | None]:
        """A full page of hits that the index stands by, and where the next page begins."""
        shown: list[Candidate] = []
        done = 0
        while len(shown) <= size and done < len(ranked):
            batch = ranked[done : done + size + 1 - len(shown)]
            done += len(batch)
            shown += await self._recall.stood_by(principal, batch)
        if len(shown) <= size:
            return shown, None
        return shown[:size], position_of(shown[size - 1])

    async def _run(self, principal: Principal, request: SearchRequest) -> _Run:
        steps = _Steps(self._metrics)
        with steps.timed("filter"):
            passing = await self._recall.passing(principal, request.parts, request.filters)
        vector, cached = await self._vector(principal, request, steps)
        with steps.timed("recall"):
            recalled = await self._recall.recall(
                principal,
                request.query,
                request.filters,
                keyword="keyword" in request.parts,
                vector=vector,
                passing=passing,
            )
        return _Run(recalled=recalled, passing=passing, cached=cached, steps=steps)

    async def _vector(
        self, principal: Principal, request: SearchRequest, steps: _Steps
    ) -> tuple[list[float] | None, bool | None]:
        """The query's vector and whether it was known; None, None without the vector part."""
        if "vector" not in request.parts:
            return None, None
        with steps.timed("embed"):
            made, cached = await self._vectors.vector(principal, request.query)
        self._metrics.query_cache.labels(outcome="hit" if cached else "miss").inc()
        vector: list[float] = made.tolist()
        return vector, cached

    def _page_size(self, request: SearchRequest) -> int:
        if len(request.query) > self._settings.query_max_chars:
            message = f"longer than {self._settings.query_max_chars} characters"
            raise ProblemError(invalid_field("body.query", message))
        size = self._settings.page_size if request.page_size is None else request.page_size
        if size > self._settings.page_size_max:
            raise ProblemError(invalid_field("body.page_size", f"larger than {self._settings.page_size_max}"))
        return size

    def _ranking(self, recalled: Recalled, parts: Sequence[Part]) -> Ranking:
        weights: dict[Part, float] = {
            "keyword": self._settings.keyword_weight,
            "vector": self._settings.vector_weight,
        }
        return Ranking(
            weights={part: weight for part, weight in weights.items() if part in parts},
            keyword_floor=self._settings.keyword_floor,
            cosine_floor=self._vectors.embedder.cosine_floor,
            fusion=self._settings.fusion,
            allowed=recalled.allowed,
            off=frozenset(self._settings.stages_off),
        )

    async def _in_order(
        self,
        shown: Sequence[Candidate],
        reading: Awaitable[Mapping[str, HitAnswer]],
        read: Collection[str],
        words: QueryWords,
    ) -> list[HitAnswer]:
        """The hits that are being read already (`read`), and the others."""
        others = self._hits([c for c in shown if c.doc_id not in read], words)
        known, more = await asyncio.gather(reading, others)
        return [known[c.doc_id] if c.doc_id in known else more[c.doc_id] for c in shown]

    async def _hits(self, shown: Sequence[Candidate], words: QueryWords) -> dict[str, HitAnswer]:
        """By document. Reads the files of this page only."""
        jobs = [(_row(candidate), self._excerpt_of(candidate, words)) for candidate in shown]
        texts = await self._library.apply_all(jobs, max_bytes=self._text_max_bytes)
        return {c.doc_id: self._hit(c, found, words) for c, found in zip(shown, texts, strict=True)}

    def _excerpt_of(self, candidate: Candidate, words: QueryWords) -> Callable[[FileText], ShownExcerpt]:
        return lambda file: show(file.text, words, candidate, max_chars=self._settings.excerpt_max_chars)

    def _hit(self, candidate: Candidate, found: ShownExcerpt | Unread, words: QueryWords) -> HitAnswer:
        document = _row(candidate)
        if isinstance(found, str):
            self._metrics.stale_excerpts.labels(reason=found).inc()
            return hit_answer(candidate, document, None, found, matches(words, candidate, None))
        return hit_answer(candidate, document, found, None, found.matches)

    def _count(self, records: Sequence[StageRecord]) -> None:
        for record in records:
            counter = self._metrics.stage_candidates
            counter.labels(stage=record.stage, direction="in").inc(record.candidates_in)
            counter.labels(stage=record.stage, direction="out").inc(record.candidates_out)

    def _trace(self, query: str, run: _Run, records: Sequence[StageRecord]) -> TraceAnswer:
        return TraceAnswer(
            embedding_model=None if run.cached is None else self._vectors.embedder.model_id,
            candidate_depth=self._settings.candidates,
            keyword_hits=run.recalled.keyword_hits,
            vector_hits=run.recalled.vector_hits,
            filter_mode=run.passing.mode,
            query_words_left_out=fit_words(query).left_out,
            query_vector_cached=bool(run.cached),
            steps_ms=run.steps.ms,
            stages=[stage_answer(record) for record in records],
        )


def _row(candidate: Candidate) -> DocumentView:
    if candidate.document is None:
        msg = "a candidate without a row is on a page"
        raise RuntimeError(msg)
    return candidate.document


def _list_name(principal: Principal, request: SearchRequest, settings: SearchSettings) -> str:
    """Everything that decides which list a cursor walks; the page size is not among it."""
    return fingerprint(
        principal.tenant_id,
        principal.agent_id,
        request.query,
        request.filters.model_dump(mode="json"),
        sorted(set(request.parts)),
        settings.candidates,
        settings.fusion,
    )


def _position(cursor: str | None, list_name: str) -> SearchPosition | None:
    if cursor is None:
        return None
    try:
        return decode_search_cursor(cursor, list_name)
    except ValueError as exc:
        raise ProblemError(invalid_field("body.cursor", str(CursorError()))) from exc
