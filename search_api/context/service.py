"""A context from the request to the answer: ranked hits, their texts, the assembly off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, Protocol

from indexers.domain.identity import Principal
from indexers.ports import TokenCounter
from search_api.context.accounts import Source
from search_api.context.assembly import Assembled, BudgetTooSmallError, Taken, assemble
from search_api.context.models import (
    ContextAnswer,
    ContextExcerptAnswer,
    ContextItemAnswer,
    ReadAnswer,
    RepeatAnswer,
)
from search_api.context.rendering import Line
from search_api.context.requests import ContextRequest
from search_api.context.scoring import Sought, Span
from search_api.context.settings import ContextSettings
from search_api.context.units import Outline, outline
from search_api.graph.kinds import is_name, label_and_key
from search_api.metrics import ApiMetrics
from search_api.problems import FieldError, ProblemError, invalid, invalid_field
from search_api.reading import FileText, Unread, VaultLibrary
from search_api.requests import SearchRequest
from search_api.retrieval.candidates import Candidate, DocumentView
from search_api.retrieval.service import RankedPage


class Ranked(Protocol):
    """What is needed of the search: its hits with their rows and evidence, before any file is read."""

    async def ranked(self, principal: Principal, request: SearchRequest) -> RankedPage: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one request: what it asked for, within what the settings allow."""

    budget_tokens: int
    documents: int
    l1_documents: int


class ContextService:
    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        *,
        search: Ranked,
        library: VaultLibrary,
        counter: TokenCounter,
        executor: Executor,
        settings: ContextSettings,
        page_size_max: int,
        text_max_bytes: int,
        metrics: ApiMetrics,
    ) -> None:
        self._search = search
        self._library = library
        self._counter = counter
        self._executor = executor
        self._settings = settings
        self._page_size_max = page_size_max
        self._text_max_bytes = text_max_bytes
        self._metrics = metrics

    async def context(self, principal: Principal, request: ContextRequest) -> ContextAnswer:
        """ProblemError (422) for limits that only the settings know and a budget too small; Transient as a search."""
        with self._metrics.context_seconds.time():
            limits = self._limits(request)
            page = await self._search.ranked(principal, request.search(limits.documents))
            outlines = await self._outlines(page.shown, limits.l1_documents, request.query)
            made = await self._assembled(page.shown, outlines, limits)
            answer = self._answer(page, made, outlines, limits)
            self._observe(answer)
            return answer

    def _limits(self, request: ContextRequest) -> Limits:
        allowed, errors = self._settings, []

        def within(name: str, asked: int | None, default: int, most: int) -> int:
            if asked is not None and asked > most:
                errors.append(FieldError(field=f"body.{name}", message=f"larger than {most}"))
            return min(default, most) if asked is None else asked

        documents_max = min(allowed.documents_max, self._page_size_max)
        limits = Limits(
            budget_tokens=within(
                "budget_tokens", request.budget_tokens, allowed.budget_tokens, allowed.budget_tokens_max
            ),
            documents=within("documents_max", request.documents_max, allowed.documents, documents_max),
            l1_documents=within(
                "l1_documents_max", request.l1_documents_max, allowed.l1_documents, allowed.l1_documents_max
            ),
        )
        if errors:
            raise ProblemError(invalid(errors))
        return limits

    async def _outlines(self, hits: Sequence[Candidate], most: int, query: str) -> list[Outline | Unread]:
        """Of the best hits, in order: what of their texts may be shown, or why there is no text."""
        titles = {hit.doc_id: _row(hit).title for hit in hits}
        jobs = [(_row(hit), _outlined(sought(hit, query, titles))) for hit in hits[:most]]
        found = await self._library.apply_all(jobs, max_bytes=self._text_max_bytes)
        for outcome in found:
            if isinstance(outcome, str):
                self._metrics.stale_excerpts.labels(reason=outcome).inc()
        return found

    async def _assembled(
        self, hits: Sequence[Candidate], outlines: Sequence[Outline | Unread], limits: Limits
    ) -> Assembled:
        sources = _sources(hits, outlines)

        def work() -> Assembled:
            return assemble(
                sources,
                count=self._counter.count_tokens,
                budget=limits.budget_tokens,
                document_tokens=self._settings.document_tokens,
            )

        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except BudgetTooSmallError as exc:
            message = f"too small: the first document's line alone has {exc.needed} tokens"
            raise ProblemError(invalid_field("body.budget_tokens", message)) from exc

    def _answer(
        self, page: RankedPage, made: Assembled, outlines: Sequence[Outline | Unread], limits: Limits
    ) -> ContextAnswer:
        ids = [hit.doc_id for hit in page.shown]
        return ContextAnswer(
            text=made.text,
            tokens=made.tokens,
            budget_tokens=limits.budget_tokens,
            tokenizer=self._counter.tokenizer_id,
            documents=[
                _item(_row(hit), taken, None if number >= len(outlines) else outlines[number], ids)
                for number, (hit, taken) in enumerate(zip(page.shown, made.taken, strict=False))
            ],
            left_out=len(page.shown) - len(made.taken),
            candidates=page.candidates,
            words_found=page.words_found,
        )

    def _observe(self, answer: ContextAnswer) -> None:
        self._metrics.context_tokens.observe(answer.tokens)
        for item in answer.documents:
            self._metrics.context_documents.labels(level="L1" if item.excerpts else "L0").inc()


def _row(hit: Candidate) -> DocumentView:
    if hit.document is None:
        msg = "a hit without a row is on a page"
        raise RuntimeError(msg)
    return hit.document


def sought(hit: Candidate, query: str, titles: Mapping[str, str]) -> Sought:
    """What to look for in a hit's text. `titles`: of the other hits, from which a path may have come."""
    spans = [evidence.span for evidence in hit.evidence if evidence.span is not None]
    names = [said.name for evidence in hit.evidence for said in evidence.names]
    ways = [evidence.path[-1].source for evidence in hit.evidence if evidence.path]
    # A path comes by a name, or by a document, which a backward link calls by its title.
    names += [label_and_key(node)[1] if is_name(node) else titles.get(node, "") for node in ways]
    return Sought(
        query=query,
        spans=tuple(Span(start=span.start, end=span.end) for span in spans),
        evidence=tuple(name for name in names if name),
    )


def _outlined(sought: Sought) -> Callable[[FileText], Outline]:
    return lambda file: outline(file.text, sought)


def _sources(hits: Sequence[Candidate], outlines: Sequence[Outline | Unread]) -> list[Source]:
    sources = []
    for number, hit in enumerate(hits):
        row = _row(hit)
        found = outlines[number] if number < len(outlines) else None
        line = Line(number=number + 1, title=row.title, path=row.path, abstract=row.abstract)
        sources.append(
            Source(line=line, score=hit.score, outline=found if isinstance(found, Outline) else None)
        )
    return sources


def _item(
    row: DocumentView, taken: Taken, found: Outline | Unread | None, ids: Sequence[str]
) -> ContextItemAnswer:
    headings: Mapping[int, tuple[str, ...]] = found.headings if isinstance(found, Outline) else {}
    return ContextItemAnswer(
        number=taken.source.line.number,
        doc_id=row.doc_id,
        path=row.path,
        title=row.title,
        abstract=row.abstract,
        score=taken.source.score,
        content_hash=row.content_hash,
        excerpts=[
            ContextExcerptAnswer(
                text=excerpt.text,
                start=excerpt.start,
                end=excerpt.end,
                heading_path=list(headings.get(excerpt.section, ())),
            )
            for excerpt in taken.excerpts
        ],
        repeats=[
            RepeatAnswer(start=repeat.start, end=repeat.end, shown_in=ids[repeat.shown_in])
            for repeat in taken.repeats
        ],
        no_excerpt=_no_excerpt(taken, found),
        read=ReadAnswer(method="GET", path=f"/v1/documents/{row.doc_id}/content"),
    )


_NOT_AMONG_BEST: Final = "not_among_best"


def _no_excerpt(taken: Taken, found: Outline | Unread | None) -> str | None:
    if taken.excerpts:
        return None
    if found is None:
        return _NOT_AMONG_BEST
    if isinstance(found, str):
        return found
    if taken.repeats:
        return "said_elsewhere"
    return "no_room" if found.units else "empty"
