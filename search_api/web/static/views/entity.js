// One entity: its names, where it is mentioned, what was said of it, and what a curator may say.

import { html, nothing } from "../vendor/lit-html.js";
import { get, id } from "../api.js";
import { commands } from "../commands.js";
import { link, loading, paged, pages, problemCard } from "../parts.js";
import { may } from "../session.js";
import { moment, number, t, term } from "../text.js";
import { entityLine } from "./entities.js";

const MERGES = ["merge", "accept"];

export function entityView(app, { id: asked }) {
  const at = `/v1/entities/${id(asked)}`;
  const state = { about: null, history: [], problem: null, found: null };
  const stop = new AbortController();
  const of = (path, rows) => pages(async (cursor) => {
    const answer = await get(`${at}/${path}`, { cursor, page_size: 20 }, stop.signal);
    return { rows: answer[rows], next: answer.next_cursor };
  }, app.draw);
  const lists = { mentions: of("mentions", "mentions"), relations: of("relations", "relations") };
  const says = commands(app, read);

  async function read() {
    if (stop.signal.aborted) return;
    try {
      const [about, { history }] = await Promise.all([get(at, {}, stop.signal), get(`${at}/history`, {}, stop.signal)]);
      Object.assign(state, { about, history, found: null });
    } catch (fault) {
      if (fault.name !== "AbortError") state.problem = fault;
    }
    app.draw();
  }

  async function look(event) {
    event.preventDefault();
    const q = new FormData(event.target).get("q").trim();
    if (!q) return;
    try {
      const answer = await get("/v1/entities", { q, label: state.about.label, namespace: state.about.namespace, page_size: 20 }, stop.signal);
      state.found = answer.entities.filter((one) => one.entity_id !== state.about.entity_id);
    } catch (fault) {
      if (fault.name !== "AbortError") state.problem = fault;
    }
    app.draw();
  }

  function rename(event) {
    event.preventDefault();
    const name = new FormData(event.target).get("name").trim();
    if (name && name !== state.about.name) says.rename(asked, name, state.about.name);
  }

  const undone = () => new Set(state.history.map((entry) => entry.undoes).filter(Boolean));
  const curating = () => html`<details class="card"><summary>${t("entity.curate")}</summary>
    <form role="search" class="fields" @submit=${look}><label class="field">${t("entity.merge")}<input name="q" type="search" dir="auto"></label>
      <div><button>${t("search")}</button></div></form>
    ${state.found ? html`<ul class="list" id="found">${state.found.map((one) => html`<li>${entityLine(one)}
      <button type="button" ?disabled=${says.busy()} @click=${() => says.merge(asked, one.entity_id)}>${t("entity.join")}</button></li>`)}
      ${state.found.length ? nothing : html`<li class="soft">${t("none")}</li>`}</ul>` : nothing}
    <form class="fields" @submit=${rename}><label class="field">${t("entity.rename")}<input name="name" maxlength="200" .value=${state.about.name} dir="auto"></label>
      <div><button ?disabled=${says.busy()}>${t("entity.save")}</button></div></form>
    <button type="button" ?disabled=${says.busy()} @click=${() => says.block(asked, !state.about.blocked)}>${t(state.about.blocked ? "entity.unblock" : "entity.block")}</button></details>`;

  return {
    title: () => state.about?.name ?? t("entities"),
    enter: async () => {
      await read();
      if (!state.problem) await Promise.all(Object.values(lists).map((list) => list.more()));
    },
    leave: () => stop.abort(),
    template: () => {
      if (state.problem) return problemCard(state.problem);
      if (!state.about) return loading();
      const about = state.about;
      return html`<h1><bdi>${about.name}</bdi></h1>
        <p class="soft">${about.label} · <bdi>${about.namespace}</bdi> · ${t("entity.mentions", { count: about.mention_count })}
          ${about.blocked ? html`<strong class="warn">${t("entity.is_blocked")}</strong>` : nothing}</p>
        ${about.aliases.length ? html`<p>${t("entity.aliases")} ${about.aliases.map((alias) => html`<span class="tag"><bdi>${alias.name}</bdi> ${alias.mentions}</span>`)}</p>` : nothing}
        ${says.template()}
        ${may("curator") ? curating() : nothing}
        <h2>${t("document.mentions")}</h2>
        ${paged(lists.mentions, (one) => html`${link("document", one.document.doc_id, one.document.title)} <span class="soft">${number(one.weight, 2)} · ${one.count}</span>
          <blockquote><bdi>${one.sentence}</bdi></blockquote>`, lists.mentions.more, t("none"))}
        <h2>${t("entity.relations")}</h2>
        ${paged(lists.relations, (one) => html`<bdi>${one.subject.name}</bdi> → <span class="soft">${one.relation_type}</span> → <bdi>${one.object.name}</bdi>
          (${link("document", one.document.doc_id, one.document.title)})<blockquote><bdi>${one.quote}</bdi></blockquote>`, lists.relations.more, t("none"))}
        <h2>${t("entity.history")}</h2>
        ${state.history.length ? html`<ul class="list" id="history">${state.history.map((entry) => html`<li>${term("command", entry.kind)}
          <bdi>${entry.names.join(" / ")}</bdi> <span class="soft">${entry.by} · ${moment(entry.at)} ${entry.reason ?? ""}</span>
          ${may("curator") && MERGES.includes(entry.kind) && !undone().has(entry.event_id)
            ? html`<button type="button" ?disabled=${says.busy()} @click=${() => says.unmerge(asked, entry.event_id)}>${t("undo")}</button>` : nothing}</li>`)}</ul>`
          : html`<p class="soft">${t("none")}</p>`}`;
    },
  };
}
