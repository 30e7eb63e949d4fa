"""Every row of a query, however many: one request for the usual case, a scan where a page is too small."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, GatedSearch, SearchHit, StoredRow
from indexers.opensearch.rows import Index

#: Rows of one page.
PAGE_ROWS = 1_000
#: Documents of one query that has a few clauses for each: the engine takes 1,024 clauses.
DOCUMENTS_MAX = 150

Found = SearchHit | StoredRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One query; `fields` None: all but the vector."""

    principal: Principal
    index: Index
    query: dict[str, Any]
    fields: tuple[str, ...] | None = None


async def find_pages(
    gate: Gate, wanted: Sequence[Wanted]
) -> AsyncGenerator[tuple[Wanted, list[Found]], None]:
    """Pages of rows that a search shows, never more than one page of a large answer in memory."""
    searches = [GatedSearch(principal=w.principal, index=w.index, body=_body(w)) for w in wanted]
    for one, answer in zip(wanted, await gate.search_many(searches), strict=True):
        if answer.total <= len(answer.hits):
            yield one, list(answer.hits)
            continue
        async with aclosing(scan_pages(gate, one)) as pages:
            async for rows in pages:
                yield one, list(rows)


async def scan_pages(
    gate: Gate, wanted: Wanted, *, page_rows: int = PAGE_ROWS
) -> AsyncGenerator[list[StoredRow], None]:
    """All rows that a search shows, for answers that are known to be large."""
    rows: list[StoredRow] = []
    async with aclosing(
        gate.scan(wanted.principal, wanted.index, wanted.query, fields=wanted.fields)
    ) as scan:
        async for row in scan:
            rows.append(row)
            if len(rows) == page_rows:
                yield rows
                rows = []
    if rows:
        yield rows


async def find_all(gate: Gate, wanted: Sequence[Wanted]) -> list[list[Found]]:
    """All rows of each query, in the order asked. For answers that fit in memory."""
    answers: dict[int, list[Found]] = {id(one): [] for one in wanted}
    async with aclosing(find_pages(gate, wanted)) as pages:
        async for one, rows in pages:
            answers[id(one)] += rows
    return [answers[id(one)] for one in wanted]


def _body(wanted: Wanted) -> dict[str, Any]:
    body: dict[str, Any] = {"query": wanted.query, "size": PAGE_ROWS}
    return body if wanted.fields is None else body | {"_source": list(wanted.fields)}
