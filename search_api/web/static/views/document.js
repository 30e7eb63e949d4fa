// A document: its facts, its text as written with the links in it, and what leads here and from here.

import { html, nothing } from "../vendor/lit-html.js";
import { get, id } from "../api.js";
import { link, loading, paged, pages, problemCard } from "../parts.js";
import { moment, number, t, term } from "../text.js";

const PAGE_CHARS = 20_000;

/** The text from `start` on in pieces: strings, and links { text, to } where an occurrence of one stands. Offsets count
 * code points. */
export function pieces(text, start, links) {
  const points = Array.from(text);
  const spans = links
    .filter((one) => one.to)
    .flatMap((one) => one.occurrences.map((place) => ({ from: place.start - start, to: place.end - start, doc: one.to })))
    .filter((span) => span.from >= 0 && span.to <= points.length && span.from < span.to)
    .sort((a, b) => a.from - b.from);
  const found = [];
  let at = 0;
  for (const span of spans) {
    if (span.from < at) continue;
    found.push(points.slice(at, span.from).join(""), { text: points.slice(span.from, span.to).join(""), to: span.doc });
    at = span.to;
  }
  found.push(points.slice(at).join(""));
  return found;
}

export function documentView(app, { id: docId }) {
  const at = `/v1/documents/${id(docId)}`;
  const state = { about: null, text: [], next: 0, total: 0, problem: null, textProblem: null, busy: false };
  const stop = new AbortController();
  const of = (path, rows) => pages(async (cursor) => {
    const answer = await get(`${at}/${path}`, { cursor, page_size: 50 }, stop.signal);
    return { rows: answer[rows], next: answer.next_cursor ?? null };
  }, app.draw);
  const lists = { links: of("links", "links"), backlinks: of("backlinks", "links"), mentions: of("mentions", "mentions") };
  lists.related = pages(async () => ({ rows: (await get(`${at}/related`, { page_size: 20 }, stop.signal)).related, next: null }), app.draw);

  async function more() {
    Object.assign(state, { busy: true, textProblem: null });
    app.draw();
    try {
      const page = await get(`${at}/content`, { start: state.next, max_chars: PAGE_CHARS }, stop.signal);
      state.text = [...state.text, { start: page.start, text: page.text }];
      Object.assign(state, { next: page.next, total: page.total_chars });
    } catch (fault) {
      if (fault.name === "AbortError") return;
      state.textProblem = fault;
    }
    state.busy = false;
    app.draw();
  }

  async function enter() {
    try {
      state.about = await get(at, {}, stop.signal);
    } catch (fault) {
      if (fault.name !== "AbortError") state.problem = fault;
      app.draw();
      return;
    }
    app.draw();
    await Promise.all([more(), ...Object.values(lists).map((list) => list.more())]);
  }

  const facts = (about) => [
    [t("fact.path"), html`<bdi class="mono">${about.path}</bdi>`],
    [t("filter.type"), term("type", about.doc_type)],
    [t("filter.scope"), `${term("scope", about.scope)}${about.team ? ` · ${about.team}` : ""}`],
    [t("fact.agent"), about.agent],
    [t("fact.source"), about.source],
    [t("fact.updated"), moment(about.updated_at)],
    [t("fact.indexed"), moment(about.indexed_at)],
    [t("fact.version"), String(about.version)],
    [t("fact.tags"), about.tags.length ? about.tags.map((tag) => html`<span class="tag">#<bdi>${tag}</bdi></span>`) : "–"],
    ...(about.aliases.length ? [[t("fact.aliases"), about.aliases.join(", ")]] : []),
    ...(about.warnings.length ? [[t("fact.warnings"), about.warnings.join(", ")]] : []),
  ];

  const text = (page) => pieces(page.text, page.start, lists.links.rows).map((piece) =>
    typeof piece === "string" ? piece : html`<a href=${`#/document/${encodeURIComponent(piece.to.doc_id)}`}>${piece.text}</a>`);

  const said = (one) => one.occurrences.slice(0, 2).map((place) => html`<blockquote><bdi>${place.context}</bdi></blockquote>`);
  const section = (name, row) => html`<section aria-labelledby=${`h-${name}`}><h2 id=${`h-${name}`}>${t(`document.${name}`)}</h2>
    ${paged(lists[name], row, lists[name].more, t("none"))}</section>`;

  return {
    title: () => state.about?.title ?? t("document"),
    wide: true,
    enter,
    leave: () => stop.abort(),
    template: () => {
      if (state.problem) return problemCard(state.problem);
      if (!state.about) return loading();
      const about = state.about;
      return html`<div class="line"><h1><bdi>${about.title}</bdi></h1>
          <a class="button end" href=${`#/graph/${encodeURIComponent(docId)}`}>${t("graph.around")}</a></div>
        <div class="columns"><article>
          <dl class="facts">${facts(about).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
          <h2 class="unseen">${t("document.text")}</h2>
          ${state.text.length ? html`<div class="text" tabindex="0" role="region" aria-label=${t("document.text")}>${state.text.map(text)}</div>` : nothing}
          ${state.textProblem ? problemCard(state.textProblem, more) : nothing}
          ${state.busy ? loading() : nothing}
          ${state.next ? html`<p><button type="button" ?disabled=${state.busy} @click=${more}>${t("document.more", { shown: number(state.next), total: number(state.total) })}</button></p>` : nothing}
        </article><aside>
          ${section("links", (one) => html`${one.to ? link("document", one.to.doc_id, one.to.title) : html`<bdi>${one.target}</bdi> <span class="soft">${t("document.nowhere")}</span>`}
            <span class="soft">${term("kind", one.link_type)}</span>`)}
          ${section("backlinks", (one) => html`${link("document", one.from.doc_id, one.from.title)} <span class="soft">${term("kind", one.link_type)}</span>${said(one)}`)}
          ${section("mentions", (one) => html`<bdi>${one.entity.name}</bdi> <span class="soft">${one.entity.label} · ${one.count}</span>`)}
          ${section("related", (one) => html`${link("document", one.document.doc_id, one.document.title)} <span class="soft">${number(one.score, 2)} ·
            ${one.reasons.map((reason) => term("kind", reason.kind)).join(", ")}</span>`)}
        </aside></div>`;
    },
  };
}
