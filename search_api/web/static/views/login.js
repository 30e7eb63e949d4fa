// By key, or at the issuer of tokens where the page is set up for it.

import { html, nothing } from "../vendor/lit-html.js";
import { call } from "../api.js";
import { problemCard } from "../parts.js";
import { enter, goToIssuer, know } from "../session.js";
import { t } from "../text.js";

export function loginView(app, { reason = null } = {}) {
  const state = { problem: reason, busy: false };

  async function submit(event) {
    event.preventDefault();
    const field = event.target.elements.key;
    const key = field.value.trim();
    if (!key) return field.focus();
    Object.assign(state, { busy: true, problem: null });
    app.draw();
    try {
      know(await call("GET", "/v1/whoami", { token: key }));
      enter(key);
      app.entered();
    } catch (fault) {
      Object.assign(state, { busy: false, problem: fault });
      app.draw();
    }
  }

  async function elsewhere() {
    Object.assign(state, { busy: true, problem: null });
    app.draw();
    try {
      await goToIssuer(app.config.login, location.hash);
    } catch (fault) {
      Object.assign(state, { busy: false, problem: fault });
      app.draw();
    }
  }

  return {
    title: () => t("login.title"),
    template: () => html`<h1>${t("login.title")}</h1>
      ${state.problem ? problemCard(state.problem) : nothing}
      <form class="card" @submit=${submit} autocomplete="off">
        <label class="field">${t("login.key")}
          <input name="key" type="password" required autocomplete="off" spellcheck="false" aria-describedby="key-help"></label>
        <p id="key-help" class="soft">${t("login.help")}</p>
        <div class="buttons">
          <button class="main" ?disabled=${state.busy}>${t("login.enter")}</button>
          ${app.config.login
            ? html`<button type="button" ?disabled=${state.busy} @click=${elsewhere}>${t("login.issuer")}</button>`
            : nothing}
        </div>
      </form>`,
  };
}
