// Small templates that several views share.

import { html, nothing } from "./vendor/lit-html.js";
import { number, t } from "./text.js";

export const link = (view, id, title) => html`<a href="#/${view}/${encodeURIComponent(id)}"><bdi>${title}</bdi></a>`;

/** What went wrong and what to do about it: a problem of the service, or any Error. */
export function problemCard(problem, again) {
  const what = t(problem.status === 0 ? "problem.unreachable" : `problem.${problem.kind || problem.status}`);
  const known = !what.startsWith("problem.");
  return html`<section class="card problem" role="alert">
    <h2>${known ? what : problem.title || t("problem.other")}</h2>
    ${problem.message ? html`<p>${problem.message}</p>` : nothing}
    <ul>${(problem.errors ?? []).map((error) => html`<li><code>${error.field}</code> ${error.message}</li>`)}</ul>
    ${problem.retryAfter ? html`<p>${t("problem.retry", { seconds: problem.retryAfter })}</p>` : nothing}
    ${problem.requestId ? html`<p class="soft">${t("problem.request")} <code>${problem.requestId}</code></p>` : nothing}
    ${again ? html`<p><button type="button" @click=${again}>${t("again")}</button></p>` : nothing}
  </section>`;
}

export const loading = () => html`<p role="status" class="soft">${t("loading")} <progress aria-label=${t("loading")}></progress></p>`;

/** A list that grows by pages. `list`: { rows, next, busy, problem }. */
export function paged(list, row, more, empty) {
  if (list.problem) return problemCard(list.problem, more);
  if (list.rows.length === 0) return list.busy ? loading() : html`<p class="soft">${empty}</p>`;
  return html`<ul class="list">${list.rows.map((one) => html`<li>${row(one)}</li>`)}</ul>
    ${list.next ? html`<p><button type="button" ?disabled=${list.busy} @click=${more}>${t("more")}</button></p>` : nothing}`;
}

/** An empty list of `load(cursor)`, which gives { rows, next }; `draw` is called after each change. */
export function pages(load, draw) {
  const list = { rows: [], next: null, busy: false, problem: null };
  list.more = async () => {
    if (list.busy) return;
    Object.assign(list, { busy: true, problem: null });
    draw();
    try {
      const { rows, next } = await load(list.next);
      list.rows = [...list.rows, ...rows];
      list.next = next;
    } catch (fault) {
      if (fault.name !== "AbortError") list.problem = fault;
    }
    list.busy = false;
    draw();
  };
  return list;
}

export const bar = (value, most, label) =>
  html`<meter min="0" max=${most > 0 ? most : 1} value=${Math.max(0, value)} aria-label=${label}>${number(value, 3)}</meter>`;
