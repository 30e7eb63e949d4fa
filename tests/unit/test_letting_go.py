"""When what a hop of the graph made is given back."""

from __future__ import annotations

import asyncio
import weakref

from search_api.graph.fetch import let_go_later


class Page:
    pass


async def test_a_page_is_given_back_when_the_loop_turns_and_not_before() -> None:
    page = Page()
    held = weakref.ref(page)
    let_go_later(page)
    del page
    assert held() is not None
    await asyncio.sleep(0)
    assert held() is None
