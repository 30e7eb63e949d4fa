// Entities by name.

import { html } from "../vendor/lit-html.js";
import { get } from "../api.js";
import { link, paged, pages } from "../parts.js";
import { t } from "../text.js";

export const entityLine = (one) => html`${link("entity", one.entity_id, one.name)} <span class="soft">${one.label} · <bdi>${one.namespace}</bdi> ·
  ${t("entity.mentions", { count: one.mention_count })}${one.matched ? html` · <bdi>${one.matched}</bdi>` : ""}</span>`;

export function entitiesView(app, { query }) {
  const stop = new AbortController();
  const asked = { q: query.get("q"), label: query.get("label"), blocked: query.get("blocked") };
  const list = pages(async (cursor) => {
    const answer = await get("/v1/entities", { ...asked, cursor, page_size: 50 }, stop.signal);
    return { rows: answer.entities, next: answer.next_cursor };
  }, app.draw);

  function submit(event) {
    event.preventDefault();
    const fields = new FormData(event.target);
    const next = new URLSearchParams();
    for (const name of ["q", "label", "blocked"]) if (fields.get(name)?.trim()) next.set(name, fields.get(name).trim());
    app.go("entities", next);
  }

  return {
    title: () => t("entities"),
    enter: () => list.more(),
    leave: () => stop.abort(),
    template: () => html`<h1>${t("entities")}</h1>
      <form role="search" @submit=${submit} class="fields">
        <label class="field">${t("entity.name")}<input name="q" type="search" .value=${asked.q ?? ""} dir="auto"></label>
        <label class="field">${t("entity.label")}<input name="label" .value=${asked.label ?? ""}></label>
        <label><input type="checkbox" name="blocked" value="true" .checked=${asked.blocked === "true"}> ${t("entity.blocked")}</label>
        <div><button class="main">${t("search")}</button></div>
      </form>
      ${paged(list, entityLine, list.more, t("none"))}`,
  };
}
