// Pairs that may be one.

import { html, nothing } from "../vendor/lit-html.js";
import { get } from "../api.js";
import { commands } from "../commands.js";
import { paged, pages } from "../parts.js";
import { may } from "../session.js";
import { number, t, term } from "../text.js";
import { entityLine } from "./entities.js";

export function proposalsView(app) {
  const stop = new AbortController();
  const fresh = () => pages(async (cursor) => {
    const answer = await get("/v1/entities/proposals", { cursor, page_size: 50 }, stop.signal);
    return { rows: answer.proposals, next: answer.next_cursor };
  }, app.draw);
  let list = fresh();
  const says = commands(app, async () => {
    if (stop.signal.aborted) return;
    list = fresh();
    await list.more();
  });

  return {
    title: () => t("proposals"),
    enter: () => list.more(),
    leave: () => stop.abort(),
    template: () => html`<h1>${t("proposals")}</h1><p class="soft">${t("proposals.help")}</p>
      ${says.template()}
      ${paged(list, (one) => html`${entityLine(one.entity)}<br>${entityLine(one.other)}
        <p class="soft">${term("reason", one.reason)} · ${number(one.similarity, 2)}</p>
        ${may("curator") ? html`<div class="buttons"><button type="button" class="main" ?disabled=${says.busy()} @click=${() => says.accept(one)}>${t("proposal.accept")}</button>
          <button type="button" ?disabled=${says.busy()} @click=${() => says.reject(one)}>${t("proposal.reject")}</button></div>` : nothing}`, list.more, t("none"))}`,
  };
}
