"""One search from the request to the answer: ranked candidates, their page, its excerpts, the trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

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
from search_api.models import HitAnswer, SearchAnswer
from search_api.overlays import overlaid
from search_api.problems import ProblemError, invalid_field
from search_api.ranking_settings import RankingRules
from search_api.reading import FileText, Unread, VaultLibrary
from search_api.requests import SearchRequest
from search_api.retrieval.answers import hit_answer
from search_api.retrieval.candidates import Candidate, DocumentView
from search_api.retrieval.completing import cut_page
from search_api.retrieval.counting import count_search
from search_api.retrieval.excerpting import ShownExcerpt, matches, show
from search_api.retrieval.found import Found, Page
from search_api.retrieval.paths import shown_path
from search_api.retrieval.pipeline import Retrieval
from search_api.retrieval.stages import behind, is_stood_by
from search_api.retrieval.tracing import trace_answer
from search_api.settings import SearchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPage:
    """The hits of a page with their rows, before anything of a file is read."""

    shown: list[Candidate]
    candidates: int
    words_found: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Showing:
    """What the hits of one answer have in common."""

    found: Found
    words: QueryWords


class SearchService:
    def __init__(
        self,
        *,
        retrieval: Retrieval,
        library: VaultLibrary,
        settings: SearchSettings,
        text_max_bytes: int,
        metrics: ApiMetrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._retrieval = retrieval
        self._library = library
        self._settings = settings
        self._rules: Mapping[str, RankingRules] = {
            tenant: overlaid(settings, changes) for tenant, changes in settings.tenants.items()
        }
        self._text_max_bytes = text_max_bytes
        self._metrics = metrics
        self._clock = clock

    async def search(self, principal: Principal, request: SearchRequest) -> SearchAnswer:
        """ProblemError (422) for limits that only the settings know; Transient when the store is away."""
        with self._metrics.search_seconds.labels(mode=_mode(request)).time():
            return await self._search(principal, request)

    async def ranked(self, principal: Principal, request: SearchRequest) -> RankedPage:
        """The first page of `search` without its excerpts; errors as there."""
        with self._metrics.search_seconds.labels(mode=_mode(request)).time():
            size, rules = self._page_size(request), self.rules_for(principal, request)
            begun = self._retrieval.begin(principal, request, rules)
            found = await self._retrieval.find(begun, self._now(None))
            page = await cut_page(found, None, size)
            count_search(self._metrics, found, page)
            return RankedPage(
                shown=page.shown, candidates=len(page.ranked), words_found=_words_found(request, found)
            )

    def rules_for(self, principal: Principal, request: SearchRequest) -> RankingRules:
        """The settings, what of them is otherwise for the tenant, and what for this request."""
        return overlaid(self._rules.get(principal.tenant_id, self._settings), request.options)

    async def _search(self, principal: Principal, request: SearchRequest) -> SearchAnswer:
        size, rules = self._page_size(request), self.rules_for(principal, request)
        # Not for a cursor that may be refused.
        begun = None if request.cursor else self._retrieval.begin(principal, request, rules)
        list_name, words = _list_name(principal, request, rules), QueryWords.of(request.query)
        after = _position(request.cursor, list_name)
        now = self._now(after)
        found = await self._retrieval.find(begun or self._retrieval.begin(principal, request, rules), now)
        # Most of these are on the page whatever the look-up finds: their files can be read meanwhile.
        near = [c for c in behind(found.known, after)[:size] if is_stood_by(c)]
        showing = _Showing(found=found, words=words)
        reading = asyncio.ensure_future(self._excerpts(near, showing.words))
        try:
            page = await cut_page(found, after, size)
            with found.steps.timed("excerpts"):
                hits = await self._in_order(page.shown, reading, {c.doc_id for c in near}, showing)
                hits = [with_paths(hit, found, page) for hit in hits] if page.paths else hits
        finally:
            reading.cancel()
        # Counted, and its ten thousand values given back, once the answer is on its way.
        asyncio.get_running_loop().call_soon(count_search, self._metrics, found, page)
        last = page.last
        return SearchAnswer(
            hits=hits,
            candidates=len(page.ranked),
            words_found=_words_found(request, found),
            next_cursor=None if last is None else encode_cursor(_position_of(last, now), list_name),
            trace=trace_answer(found, page, found.model_id) if request.explain else None,
        )

    def _now(self, after: SearchPosition | None) -> datetime:
        """The clock of the first page."""
        return datetime.fromtimestamp(int(self._clock()) if after is None else after.at, UTC)

    def _page_size(self, request: SearchRequest) -> int:
        if len(request.query) > self._settings.query_max_chars:
            message = f"longer than {self._settings.query_max_chars} characters"
            raise ProblemError(invalid_field("body.query", message))
        size = self._settings.page_size if request.page_size is None else request.page_size
        if size > self._settings.page_size_max:
            raise ProblemError(invalid_field("body.page_size", f"larger than {self._settings.page_size_max}"))
        return size

    async def _in_order(
        self,
        shown: Sequence[Candidate],
        reading: Awaitable[Mapping[str, ShownExcerpt | Unread]],
        read: Collection[str],
        showing: _Showing,
    ) -> list[HitAnswer]:
        """As the page has them: the look-up may have changed scores since their files (`read`) began to be read."""
        # `reading` goes on by itself meanwhile.
        texts = await self._excerpts([c for c in shown if c.doc_id not in read], showing.words)
        texts |= await reading
        return [self._hit(candidate, texts[candidate.doc_id], showing) for candidate in shown]

    async def _excerpts(
        self, shown: Sequence[Candidate], words: QueryWords
    ) -> dict[str, ShownExcerpt | Unread]:
        """By document. Reads the files of this page only."""
        jobs = [(_row(candidate), self._excerpt_of(candidate, words)) for candidate in shown]
        texts = await self._library.apply_all(jobs, max_bytes=self._text_max_bytes)
        return {candidate.doc_id: found for candidate, found in zip(shown, texts, strict=True)}

    def _excerpt_of(self, candidate: Candidate, words: QueryWords) -> Callable[[FileText], ShownExcerpt]:
        return lambda file: show(file.text, words, candidate, max_chars=self._settings.excerpt_max_chars)

    def _hit(self, candidate: Candidate, found: ShownExcerpt | Unread, showing: _Showing) -> HitAnswer:
        ranking, explain = showing.found.ranking, showing.found.request.explain
        document = _row(candidate)
        if isinstance(found, str):
            self._metrics.stale_excerpts.labels(reason=found).inc()
            said = matches(showing.words, candidate, None)
            return hit_answer(candidate, document, None, found, said, ranking, explain=explain)
        return hit_answer(candidate, document, found, None, found.matches, ranking, explain=explain)


def with_paths(hit: HitAnswer, found: Found, page: Page) -> HitAnswer:
    """The hit with the paths that its reasons tell."""
    documents, contexts = found.look_up.documents, found.look_up.contexts
    reasons = [
        reason
        if (path := page.paths.get((hit.doc_id, reason.part))) is None
        else reason.model_copy(update={"path": shown_path(path, documents, contexts)})
        for reason in hit.reasons
    ]
    return hit.model_copy(update={"reasons": reasons})


def _mode(request: SearchRequest) -> str:
    return "+".join(sorted(set(request.parts)))


def _words_found(request: SearchRequest, found: Found) -> bool | None:
    return bool(found.recalled.hits("keyword")) if "keyword" in request.parts else None


def _row(candidate: Candidate) -> DocumentView:
    if candidate.document is None:
        msg = "a candidate without a row is on a page"
        raise RuntimeError(msg)
    return candidate.document


def _list_name(principal: Principal, request: SearchRequest, rules: RankingRules) -> str:
    """Everything that decides which list a cursor walks; the page size is not among it."""
    return fingerprint(
        principal.tenant_id,
        principal.agent_id,
        request.query,
        request.filters.model_dump(mode="json"),
        sorted(set(request.parts)),
        rules.model_dump(mode="json", include=set(RankingRules.model_fields)),
    )


def _position_of(candidate: Candidate, now: datetime) -> SearchPosition:
    return SearchPosition(score=candidate.score, doc_id=candidate.doc_id, at=int(now.timestamp()))


def _position(cursor: str | None, list_name: str) -> SearchPosition | None:
    if cursor is None:
        return None
    try:
        return decode_search_cursor(cursor, list_name)
    except ValueError as exc:
        raise ProblemError(invalid_field("body.cursor", str(CursorError()))) from exc
