// Why a hit came up: its score taken apart, as docs/explanation/scores.md defines it.

import { html, nothing } from "../vendor/lit-html.js";
import { bar, link } from "../parts.js";
import { number, t, term } from "../text.js";

const node = (end) => html`<span class="node">${end.doc_id ? link("document", end.doc_id, end.title) : html`<bdi>${end.title}</bdi>`}
  ${end.label ? html`<span class="soft">${end.label}</span>` : nothing}</span>`;

/** The way through the graph, from a hit or a name of the query to this document. */
function walked(path) {
  if (path.length === 0) return nothing;
  const said = path.filter((step) => step.context);
  return html`<div class="walk">${node(path[0].from)}${path.map((step) => html`
      <span class="edge">${step.backward ? "←" : "→"} ${term("kind", step.kind)} ${number(step.weight, 2)} ${step.backward ? "←" : "→"}</span>${node(step.to)}`)}</div>
    ${said.map((step) => html`<blockquote><bdi>${step.context}</bdi></blockquote>`)}`;
}

const details = (reason) => [
  reason.matched_terms.length ? html`${t("why.words")} ${reason.matched_terms.map((word) => html`<span class="tag"><bdi>${word}</bdi></span>`)}` : nothing,
  reason.heading_path.length ? html`<span class="soft"><bdi>${reason.heading_path.join(" › ")}</bdi></span>` : nothing,
  reason.names.map((name) => html`<span class="tag"><bdi>${name.name}</bdi> ${number(name.idf * name.weight, 2)}</span>`),
];

export function why(hit) {
  const total = hit.reasons.reduce((sum, reason) => sum + reason.contribution, 0);
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("why")}><table>
      <caption class="unseen">${t("why.title", { title: hit.title })}</caption>
      <thead><tr><th scope="col">${t("why.leg")}</th><th scope="col" class="number">${t("why.raw")}</th>
        <th scope="col" class="number">${t("why.normalised")}</th><th scope="col" class="number">${t("why.weight")}</th>
        <th scope="col" class="number">${t("why.share")}</th><th scope="col"><span class="unseen">${t("why.bar")}</span></th></tr></thead>
      <tbody>${hit.reasons.map((reason) => html`<tr>
        <th scope="row">${term("leg", reason.leg)} · ${term("part", reason.part)}</th>
        <td class="number" title=${reason.normaliser}>${number(reason.raw_score, 3)}</td>
        <td class="number">${number(reason.normalised, 3)}</td>
        <td class="number">× ${number(reason.weight, 2)}</td>
        <td class="number">${number(reason.contribution, 3)}</td>
        <td>${bar(reason.contribution, total, term("part", reason.part))}</td></tr>
        <tr><td colspan="6">${details(reason)}${walked(reason.path)}</td></tr>`)}
        ${hit.factors.map((factor) => html`<tr>
          <th scope="row">${term("factor", factor.name)}</th>
          <td colspan="3" class="soft mono">${Object.entries(factor.inputs).map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ")}</td>
          <td class="number">× ${number(factor.value, 3)}</td>
          <td>${bar(factor.value, 1, term("factor", factor.name))}</td></tr>`)}
      </tbody>
      <tfoot><tr><th scope="row" colspan="4">${t("why.score")}</th><td class="number"><strong>${number(hit.score, 3)}</strong></td><td></td></tr></tfoot>
    </table></div>`;
}

export function stages(trace) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("trace.title")}><table>
      <caption class="unseen">${t("trace.title")}</caption>
      <thead><tr><th scope="col">${t("trace.stage")}</th><th scope="col" class="number">${t("trace.in")}</th>
        <th scope="col" class="number">${t("trace.out")}</th><th scope="col" class="number">ms</th></tr></thead>
      <tbody>${trace.stages.map((stage) => html`<tr><th scope="row">${stage.stage}${stage.on ? nothing : html` <span class="soft">${t("trace.off")}</span>`}</th>
        <td class="number">${number(stage.candidates_in)}</td><td class="number">${number(stage.candidates_out)}</td>
        <td class="number">${number(stage.ms, 2)}</td></tr>`)}</tbody></table></div>
    <p class="soft">${t("trace.trips", { count: trace.round_trips })} ·
      ${Object.entries(trace.steps_ms).map(([step, ms]) => `${step} ${number(ms, 1)} ms`).join(" · ")}</p>`;
}
