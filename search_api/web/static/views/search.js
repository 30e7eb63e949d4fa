// Search with explained hits. The address holds the whole question, so that it can be shared.

import { html, nothing } from "../vendor/lit-html.js";
import { post } from "../api.js";
import { link, loading, problemCard } from "../parts.js";
import { moment, number, t, term } from "../text.js";
import { stages, why } from "./why.js";

const TYPES = ["note", "memory", "context", "skill", "session_summary"];
const SCOPES = ["shared", "team", "personal"];
const PARTS = ["keyword", "vector", "names", "graph"];

const many = (value) => value.split(",").map((one) => one.trim()).filter(Boolean);

/** Body of the request that an address stands for. */
export function asked(query, cursor) {
  const filters = {};
  if (query.get("tags")) filters.tags = many(query.get("tags"));
  if (query.get("type")) filters.doc_type = many(query.get("type"));
  if (query.get("scope")) filters.scope = many(query.get("scope"));
  if (query.get("path")) filters.path_prefix = query.get("path");
  if (query.get("from")) filters.updated_from = query.get("from");
  if (query.get("before")) filters.updated_before = query.get("before");
  const body = { query: query.get("q") ?? "", filters, explain: true };
  if (query.get("parts")) body.parts = many(query.get("parts"));
  if (cursor) body.cursor = cursor;
  return body;
}

export function searchView(app, { query }) {
  const state = { hits: [], next: null, trace: null, found: null, problem: null, busy: false, asked: false };
  const stop = new AbortController();

  async function more() {
    Object.assign(state, { busy: true, problem: null, asked: true });
    app.draw();
    try {
      const answer = await post("/v1/search", asked(query, state.next), stop.signal);
      state.hits = [...state.hits, ...answer.hits];
      Object.assign(state, { next: answer.next_cursor, trace: answer.trace, found: answer.words_found });
    } catch (fault) {
      if (fault.name === "AbortError") return;
      state.problem = fault;
    }
    state.busy = false;
    app.draw();
  }

  function submit(event) {
    event.preventDefault();
    const fields = new FormData(event.target);
    const next = new URLSearchParams();
    for (const name of ["q", "tags", "type", "scope", "path", "from", "before"]) {
      if (fields.get(name)?.trim()) next.set(name, fields.get(name).trim());
    }
    const parts = fields.getAll("parts");
    if (parts.length && parts.length < PARTS.length) next.set("parts", parts.join(","));
    app.go("search", next);
  }

  /** Arrows move between the hits' titles. */
  function walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target.matches("input, select")) return;
    const titles = [...document.querySelectorAll(".hit h2 a")];
    const at = titles.indexOf(document.activeElement);
    const next = titles[at + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }

  const choice = (name, label, set, values) => html`<label class="field">${label}
    <select name=${name}><option value="">${t("any")}</option>
      ${values.map((value) => html`<option value=${value} ?selected=${query.get(name) === value}>${term(set, value)}</option>`)}</select></label>`;

  const filters = () => html`<details ?open=${["tags", "type", "scope", "path", "from", "before", "parts"].some((name) => query.has(name))}>
      <summary>${t("filters")}</summary>
      <div class="fields">
        <label class="field">${t("filter.tags")}<input name="tags" .value=${query.get("tags") ?? ""}></label>
        ${choice("type", t("filter.type"), "type", TYPES)}
        ${choice("scope", t("filter.scope"), "scope", SCOPES)}
        <label class="field">${t("filter.path")}<input name="path" .value=${query.get("path") ?? ""}></label>
        <label class="field">${t("filter.from")}<input name="from" type="date" .value=${query.get("from") ?? ""}></label>
        <label class="field">${t("filter.before")}<input name="before" type="date" .value=${query.get("before") ?? ""}></label>
      </div>
      <fieldset><legend>${t("filter.parts")}</legend><div class="checks">
        ${PARTS.map((part) => html`<label><input type="checkbox" name="parts" value=${part} .checked=${!query.get("parts") || many(query.get("parts")).includes(part)}> ${term("part", part)}</label>`)}
      </div></fieldset></details>`;

  const one = (hit) => html`<li class="card hit">
      <div class="line"><h2>${link("document", hit.doc_id, hit.title)}</h2><span class="end mono" title=${t("why.score")}>${number(hit.score, 3)}</span></div>
      <div class="line path"><bdi>${hit.path}</bdi><span>${term("type", hit.doc_type)}</span><span>${term("scope", hit.scope)}</span>
        ${hit.updated_at ? html`<span>${moment(hit.updated_at)}</span>` : nothing}
        ${hit.invalid ? html`<strong class="warn">${term("invalid", hit.invalid)}</strong>` : nothing}</div>
      ${hit.excerpt ? html`<p class="excerpt" dir="auto">${hit.excerpt.text}</p>`
        : html`<p class="soft" dir="auto">${hit.abstract}${hit.stale_excerpt ? html` (${term("stale", hit.stale_excerpt)})` : nothing}</p>`}
      <div>${hit.tags.map((tag) => html`<span class="tag">#<bdi>${tag}</bdi></span>`)}</div>
      <div class="line"><details><summary>${t("why")}</summary>${why(hit)}</details>
        <span class="end">${link("graph", hit.doc_id, t("graph.around"))}</span></div></li>`;

  return {
    title: () => query.get("q") || t("search"),
    enter: () => { if (query.get("q")) more(); },
    leave: () => stop.abort(),
    template: () => html`<h1 class="unseen">${t("search")}</h1>
      <form role="search" @submit=${submit}>
        <div class="ask"><label class="unseen" for="q">${t("search.for")}</label>
          <input id="q" name="q" type="search" placeholder=${t("search.for")} .value=${query.get("q") ?? ""} autocomplete="off" dir="auto">
          <button class="main">${t("search")}</button></div>
        ${filters()}
      </form>
      <div aria-live="polite" class="soft">${state.asked && !state.busy && !state.problem ? t("search.count", { count: state.hits.length }) : nothing}
        ${state.found === false && state.hits.length ? t("search.nearest") : nothing}</div>
      <ol @keydown=${walk}>${state.hits.map(one)}</ol>
      ${state.problem ? problemCard(state.problem, more) : nothing}
      ${state.busy ? loading() : nothing}
      ${state.asked && !state.busy && !state.problem && state.hits.length === 0 ? html`<p>${t("search.none")}</p>` : nothing}
      ${state.next && !state.busy ? html`<p><button type="button" @click=${more}>${t("more")}</button></p>` : nothing}
      ${state.trace ? html`<details class="card"><summary>${t("trace")}</summary>${stages(state.trace)}</details>` : nothing}`,
  };
}
