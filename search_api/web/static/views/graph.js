// The graph around a document, by mouse and by keyboard; the list beside it holds the same for whoever sees no canvas.

import { html, nothing } from "../vendor/lit-html.js";
import { get, id } from "../api.js";
import { link, loading, problemCard } from "../parts.js";
import { number, t, term } from "../text.js";

export function graphView(app, { id: docId, query }) {
  const depth = Math.min(3, Math.max(1, Number(query.get("depth")) || 1));
  const state = { graph: null, problem: null, chosen: docId, canvas: null };
  const stop = new AbortController();

  async function enter() {
    try {
      state.graph = await get(`/v1/documents/${id(docId)}/graph`, { depth }, stop.signal);
    } catch (fault) {
      if (fault.name !== "AbortError") state.problem = fault;
      app.draw();
      return;
    }
    app.draw();
    const { drawn } = await import("../graph-canvas.js");
    const place = document.getElementById("canvas");
    if (stop.signal.aborted || !place) return;
    state.canvas = drawn(place, state.graph, { centre: docId, onChoose: choose, onWalk: walkTo });
    state.canvas.choose(state.chosen);
    place.dataset.ready = "yes";
  }

  const node = (nodeId) => state.graph.nodes.find((one) => one.id === nodeId);
  const edgesOf = (nodeId) => state.graph.edges.filter((edge) => edge.source === nodeId || edge.target === nodeId);
  const neighbours = (nodeId) => [...new Set(edgesOf(nodeId).map((edge) => (edge.source === nodeId ? edge.target : edge.source)))];

  function choose(nodeId) {
    state.chosen = nodeId;
    state.canvas?.choose(nodeId);
    app.draw();
  }

  function walkTo(nodeId) {
    if (node(nodeId)?.kind === "document") app.go(`graph/${id(nodeId)}`, depth > 1 ? new URLSearchParams({ depth }) : undefined);
  }

  /** Left and right: the next of all nodes; up and down: along an edge; Enter: that one becomes the centre. */
  function key(event) {
    const all = state.graph.nodes.map((one) => one.id);
    const at = all.indexOf(state.chosen);
    const near = neighbours(state.chosen);
    const does = {
      ArrowRight: () => choose(all[(at + 1) % all.length]),
      ArrowLeft: () => choose(all[(at - 1 + all.length) % all.length]),
      ArrowDown: () => near.length && choose(near[0]),
      ArrowUp: () => choose(docId),
      Enter: () => walkTo(state.chosen),
      o: () => node(state.chosen).kind === "document" && app.go(`document/${id(state.chosen)}`),
      "+": () => state.canvas?.zoom(1.25),
      "-": () => state.canvas?.zoom(0.8),
    }[event.key];
    if (does && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      does();
    }
  }

  const about = (one) => html`<h2><bdi>${one.title}</bdi></h2>
    <p class="soft">${one.kind === "document" ? html`<bdi class="mono">${one.path}</bdi>` : one.label} · ${t("graph.hop", { count: one.hop })}</p>
    <div class="buttons">${one.kind === "document" ? html`<a class="button" href=${`#/document/${id(one.id)}`}>${t("graph.open")}</a>` : nothing}
      ${one.kind === "document" && one.id !== docId ? html`<button type="button" @click=${() => walkTo(one.id)}>${t("graph.walk")}</button>` : nothing}</div>
    <h3>${t("graph.edges")}</h3>
    <ul class="list" id="edges">${edgesOf(one.id).slice(0, 100).map((edge) => {
      const other = node(edge.source === one.id ? edge.target : edge.source);
      return html`<li><button type="button" class="plain" @click=${() => choose(other.id)}><bdi>${other.title}</bdi></button>
        <span class="soft">${edge.source === one.id ? "→" : "←"} ${term("kind", edge.kind)} ${number(edge.weight, 2)}</span></li>`;
    })}</ul>`;

  return {
    title: () => t("graph"),
    wide: true,
    enter,
    leave: () => {
      stop.abort();
      state.canvas?.end();
    },
    recolour: () => state.canvas?.recolour(),
    template: () => {
      if (state.problem) return problemCard(state.problem);
      if (!state.graph) return loading();
      return html`<div class="line"><h1>${t("graph.of")} ${link("document", docId, node(docId).title)}</h1>
          <label class="end">${t("graph.depth")} <select @change=${(event) => app.go(`graph/${id(docId)}`, new URLSearchParams({ depth: event.target.value }))}>
            ${[1, 2, 3].map((value) => html`<option value=${value} ?selected=${value === depth}>${value}</option>`)}</select></label></div>
        ${state.graph.capped ? html`<p class="warn">${t("graph.capped")}</p>` : nothing}
        <div class="columns"><div>
          <div id="canvas" tabindex="0" role="application" aria-label=${t("graph.canvas")} aria-describedby="graph-keys" @keydown=${key}></div>
          <p id="graph-keys" class="soft">${t("graph.keys")}</p>
          <p class="unseen" aria-live="polite">${node(state.chosen).title}</p>
        </div><aside>${about(node(state.chosen))}</aside></div>`;
    },
  };
}
