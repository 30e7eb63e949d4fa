// What a curator says: sent, waited for, and offered to be taken back.

import { html, nothing } from "./vendor/lit-html.js";
import { get, id, post } from "./api.js";
import { problemCard } from "./parts.js";
import { t } from "./text.js";

const WAIT_MS = 300;
const PATIENCE_MS = 30_000;
const SEEN_MS = 1_500;

/** One command at a time. `done()` is called when it has been carried out. */
export function commands(app, done) {
  const state = { busy: false, problem: null, said: null, undo: null };

  async function send(said, path, body, undo) {
    Object.assign(state, { busy: true, problem: null, said: null, undo: null });
    app.draw();
    try {
      const { event_id: event } = await post(path, body);
      const applied = await carriedOut(event);
      state.said = t(applied ? said : "command.waiting");
      state.undo = undo ? () => undo(event) : null;
    } catch (fault) {
      state.problem = fault;
    }
    state.busy = false;
    app.draw();
    if (state.problem) return;
    await done();
    // Searches of the engine see a change up to a second later than its log.
    setTimeout(done, SEEN_MS);
  }

  async function carriedOut(event) {
    const end = Date.now() + PATIENCE_MS;
    while (Date.now() < end) {
      if ((await get(`/v1/entities/commands/${id(event)}`)).state === "applied") return true;
      await new Promise((resume) => setTimeout(resume, WAIT_MS));
    }
    return false;
  }

  const unmerge = (entity) => (event) => send("command.undone", `/v1/entities/${id(entity)}/unmerge`, { merge_event_id: event });

  return {
    busy: () => state.busy,
    merge: (entity, other) => send("command.merged", `/v1/entities/${id(entity)}/merge`, { other_id: other }, unmerge(entity)),
    accept: (proposal) => send("command.accepted", `/v1/entities/proposals/${id(proposal.proposal_id)}/accept`, {}, unmerge(proposal.entity.entity_id)),
    reject: (proposal) => send("command.rejected", `/v1/entities/proposals/${id(proposal.proposal_id)}/reject`, {}),
    unmerge: (entity, event) => unmerge(entity)(event),
    rename: (entity, name, before) => send("command.renamed", `/v1/entities/${id(entity)}/rename`, { name },
      () => send("command.undone", `/v1/entities/${id(entity)}/rename`, { name: before })),
    block: (entity, blocked) => send(blocked ? "command.blocked" : "command.unblocked", `/v1/entities/${id(entity)}/${blocked ? "block" : "unblock"}`, {},
      () => send("command.undone", `/v1/entities/${id(entity)}/${blocked ? "unblock" : "block"}`, {})),
    template: () => html`<div aria-live="polite">
      ${state.busy ? html`<p class="card waiting">${t("command.sent")} <progress aria-label=${t("command.sent")}></progress></p>` : nothing}
      ${state.said ? html`<p class="card notice">${state.said} ${state.undo ? html`<button type="button" @click=${state.undo}>${t("undo")}</button>` : nothing}</p>` : nothing}
      ${state.problem ? problemCard(state.problem) : nothing}</div>`,
  };
}
