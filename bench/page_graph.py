"""Frames of the page's graph while it is dragged and zoomed, in headless Chromium.

    python -m bench.page_graph [--nodes 2000]

The page's own module draws made-up rings (1 : 12 : the rest) from files alone, no engine; each frame moves the view and
waits for the browser's next one. Drawn by software here: a graphics card would be faster. Milliseconds, no target.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import Receive, Scope, Send

from bench.report import Report
from hopline.local.ports import free_ports
from search_api.identity.settings import OidcSettings
from search_api.web.page import WebPage
from search_api.web.settings import WebSettings
from tests.browser import opened_browser

_DRAW: Final = """
async (count) => {
  const { drawn } = await import("/web/graph-canvas.js");
  const host = document.createElement("div");
  host.id = "canvas";
  document.body.replaceChildren(host);
  const nodes = [{ id: "n0", title: "centre", kind: "document", hop: 0 }];
  const edges = [];
  for (let at = 1; at < count; at++) {
    const hop = at < 40 ? 1 : at < 500 ? 2 : 3;
    nodes.push({ id: `n${at}`, title: `Note ${at}`, kind: at % 4 ? "document" : "entity", hop });
    edges.push({ source: `n${at}`, target: `n${hop === 1 ? 0 : hop === 2 ? 1 + (at % 39) : 40 + (at % 460)}` });
    if (at % 2) edges.push({ source: `n${at}`, target: `n${(at * 7) % count}` });
  }
  const frame = () => new Promise(requestAnimationFrame);
  const begun = performance.now();
  const graph = drawn(host, { nodes, edges }, { centre: "n0", onChoose() {}, onWalk() {} });
  await frame();
  await frame();
  const made = performance.now() - begun;
  const times = [];
  for (let at = 0; at < 120; at++) {
    const from = performance.now();
    graph.cy.panBy({ x: at % 2 ? 4 : -3, y: 2 });
    if (at % 10 === 9) graph.zoom(at % 20 === 9 ? 1.2 : 0.85);
    await frame();
    times.push(performance.now() - from);
  }
  times.sort((a, b) => a - b);
  return { made, edges: edges.length, p50: times[60], p95: times[114], most: times[119] };
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=2_000)
    nodes: int = parser.parse_args().nodes
    with _served() as address, opened_browser() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        told: dict[str, Any] = page.evaluate(_DRAW, nodes)
    figures = {
        "nodes": nodes,
        "edges": told["edges"],
        "first_drawing_ms": round(told["made"]),
        **{f"frame.{name}_ms": round(told[name], 1) for name in ("p50", "p95", "most")},
    }
    report = Report(name="page_graph", figures=figures)
    report.save()
    report.print_figures()


async def _nothing(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def _served() -> Iterator[str]:
    page, port = WebPage(_nothing, WebSettings(), OidcSettings()), free_ports()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"request_id": "bench"}
        await page(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(app, port=port, lifespan="off", log_config=None))
    serving = threading.Thread(target=lambda: asyncio.run(server.serve()))
    serving.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        serving.join()


if __name__ == "__main__":
    main()
