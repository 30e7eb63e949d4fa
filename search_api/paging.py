"""Lists of rows, read page by page in a total order. What mayn't be shown is passed over, and the page filled on."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, GatedSearch, SearchHit
from indexers.opensearch.rows import Index
from search_api.cursor import CursorError, ListPosition, decode_list_cursor, encode_cursor, fingerprint
from search_api.problems import ProblemError, invalid_field

T = TypeVar("T")
#: Rows fetched at once where many mayn't be shown, and how often one page looks.
_MORE_ROWS: Final = 100
_ROUNDS: Final = 5
_WHOLE: Final = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """One field of the order. `kind`: what its values are; ids and names rise, numbers and ids made of times fall."""

    field: str
    kind: Literal["text", "newest", "whole", "fraction"] = "text"

    @property
    def clause(self) -> dict[str, str]:
        return {self.field: "asc" if self.kind == "text" else "desc"}

    def fits(self, value: str) -> bool:
        """The engine refuses a number that is none."""
        match self.kind:
            case "text" | "newest":
                return True
            case "whole":
                return _WHOLE.fullmatch(value) is not None
            case "fraction":
                try:
                    return math.isfinite(float(value)) and value.isascii()
                except ValueError:
                    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowList:
    """`name`: what tells this list from others, for its cursors; the principal is added."""

    name: tuple[Any, ...]
    index: Index
    query: Mapping[str, Any]
    sort: tuple[SortKey, ...]
    #: Many rows in a row may be passed over: the first look at them takes more than the page.
    looks_far: bool = False

    def fingerprint(self, principal: Principal) -> str:
        return fingerprint(*self.name, principal.tenant_id, principal.agent_id)


async def read_page(
    gate: Gate,
    principal: Principal,
    rows: RowList,
    show: Callable[[Sequence[SearchHit]], Awaitable[Sequence[T | None]]],
    *,
    cursor: str | None,
    size: int,
) -> tuple[list[T], str | None]:
    """Up to `size` of what `show` makes of the rows (None: not shown), and the cursor of the following page.

    Where very many rows aren't shown, a page is shorter, or empty, and still has a following one.
    """
    list_name = rows.fingerprint(principal)
    after = _after(cursor, rows, list_name)
    shown: list[T] = []
    for round_ in range(_ROUNDS):
        asked = max(size, _MORE_ROWS) if round_ or rows.looks_far else size
        hits, more = await _fetch(gate, principal, rows, after, asked)
        for place, (hit, item) in enumerate(zip(hits, await show(hits), strict=True), start=1):
            if item is None:
                continue
            shown.append(item)
            if len(shown) == size:
                last = place == len(hits) and not more
                return shown, None if last else encode_cursor(_position(hit), list_name)
        if not more:
            return shown, None
        after = _position(hits[-1])
    return shown, None if after is None else encode_cursor(after, list_name)


async def _fetch(
    gate: Gate, principal: Principal, rows: RowList, after: ListPosition | None, size: int
) -> tuple[list[SearchHit], bool]:
    """So many rows, and whether there are more."""
    body: dict[str, Any] = {
        "query": dict(rows.query),
        "size": size + 1,
        "_source": {"excludes": ["grams"]},
        "sort": [key.clause for key in rows.sort],
        "track_total_hits": False,
    }
    if after is not None:
        body["search_after"] = after.after
    [page] = await gate.search_many([GatedSearch(principal=principal, index=rows.index, body=body)])
    return list(page.hits[:size]), len(page.hits) > size


def _position(hit: SearchHit) -> ListPosition:
    return ListPosition(after=[str(value) for value in hit.sort])


def _after(cursor: str | None, rows: RowList, list_name: str) -> ListPosition | None:
    if cursor is None:
        return None
    try:
        position = decode_list_cursor(cursor, list_name, length=len(rows.sort))
        if not all(key.fits(value) for key, value in zip(rows.sort, position.after, strict=True)):
            raise CursorError
    except ValueError as exc:
        raise ProblemError(invalid_field("query.cursor", str(exc))) from exc
    return position
