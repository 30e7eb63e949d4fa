// The shell: which view an address means, who is logged in, language and colours.

import { html, nothing, render } from "./vendor/lit-html.js";
import { call, get } from "./api.js";
import { loading, problemCard } from "./parts.js";
import * as session from "./session.js";
import { current, languages, preferred, remember, t, use } from "./text.js";
import { documentView } from "./views/document.js";
import { entitiesView } from "./views/entities.js";
import { entityView } from "./views/entity.js";
import { graphView } from "./views/graph.js";
import { loginView } from "./views/login.js";
import { proposalsView } from "./views/proposals.js";
import { searchView } from "./views/search.js";

const VIEWS = {
  search: searchView, document: documentView, graph: graphView, entities: entitiesView, entity: entityView, proposals: proposalsView,
};
const MENU = ["search", "entities", "proposals"];
const THEMES = ["auto", "light", "dark"];
const THEME = "hopline.theme";

const root = document.getElementById("app");
const app = { config: { login: null }, draw, go, entered };
let view = null;
let name = "search";
let pending = false;
let started = false;

/** What its escapes say; text with others than that is the id of nothing, which the service then says. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `#/document/ID?depth=2` → its view, id and query. */
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, ...rest] = path.split("/");
  return { name: Object.hasOwn(VIEWS, first) ? first : "search", id: decoded(rest.join("/")), query: new URLSearchParams(query) };
}

function go(path, query) {
  const asked = query?.toString();
  const next = `#/${path}${asked ? `?${asked}` : ""}`;
  if (next === location.hash) open();
  else location.hash = next;
}

function open(reason) {
  view?.leave?.();
  if (!session.who()) {
    name = "login";
    view = loginView(app, { reason });
  } else {
    const asked = route();
    name = asked.name;
    view = VIEWS[name](app, asked);
  }
  draw();
  view.enter?.();
  document.getElementById("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** Soon, once for all that changed meanwhile. */
function draw() {
  if (pending) return;
  pending = true;
  queueMicrotask(() => {
    pending = false;
    document.title = `${view.title()} · Hopline`;
    render(page(), root);
  });
}

function entered() {
  open();
}

/** The key or token has come to its end: the address stays, and is opened after the next login. */
function refused(problem) {
  if (!session.who()) return;
  session.leave();
  open(problem);
}

function logOut() {
  session.leave();
  open();
}

async function choose(language) {
  remember(language);
  await use(language);
  draw();
}

function paint(theme) {
  if (theme === "auto") {
    localStorage.removeItem(THEME);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(THEME, theme);
    document.documentElement.dataset.theme = theme;
  }
  view?.recolour?.();
}

function page() {
  const who = session.who();
  const theme = document.documentElement.dataset.theme ?? "auto";
  return html`<a class="skip" href="#main" @click=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>${t("skip")}</a>
    <header class="top"><a class="name" href="#/search">Hopline</a>
      <nav aria-label=${t("menu")}>${who ? MENU.map((entry) => html`<a href=${`#/${entry}`} aria-current=${entry === name ? "page" : nothing}>${t(entry)}</a>`) : nothing}</nav>
      <div class="tools">
        <select aria-label=${t("language")} @change=${(event) => choose(event.target.value)}>
          ${languages().map((tag) => html`<option value=${tag} ?selected=${tag === current()}>${{ en: "English", ko: "한국어" }[tag]}</option>`)}</select>
        <select aria-label=${t("theme")} @change=${(event) => paint(event.target.value)}>
          ${THEMES.map((one) => html`<option value=${one} ?selected=${one === theme}>${t(`theme.${one}`)}</option>`)}</select>
        ${who ? html`<span class="soft"><bdi>${who.agent}</bdi> · <bdi>${who.tenant}</bdi></span>
          <button type="button" @click=${logOut}>${t("logout")}</button>` : nothing}
      </div></header>
    <main id="main" tabindex="-1" class=${view.wide ? "wide" : ""}>${view.template()}</main>`;
}

function slash(event) {
  if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
  const field = document.getElementById("q");
  if (field) {
    event.preventDefault();
    field.focus();
  }
}

async function begin() {
  const theme = localStorage.getItem(THEME);
  if (theme) document.documentElement.dataset.theme = theme;
  await use(preferred());
  addEventListener("hashchange", () => started && open());
  addEventListener("keydown", slash);
  addEventListener("unauthorized", ({ detail }) => refused(detail));
  await start();
}

/** Who looks, as far as this tab knows. A service that is away for now costs nobody their login. */
async function start() {
  view = { title: () => "…", template: loading };
  draw();
  let reason;
  try {
    app.config = await call("GET", "/web/config.json", { token: null });
    if (session.isReturn() && app.config.login) reason = await returned();
    if (session.bearer()) session.know(await get("/v1/whoami"));
  } catch (fault) {
    if (![401, 403].includes(fault.status)) {
      view = { title: () => t("problem.other"), template: () => problemCard(fault, start) };
      draw();
      return;
    }
    session.leave();
    reason = fault;
  }
  started = true;
  open(reason);
}

/** Back from the issuer. Gives why nobody is logged in, if so. */
async function returned() {
  try {
    await session.finishLogin(app.config.login);
    return undefined;
  } catch (fault) {
    return fault;
  }
}

begin().catch((fault) => render(problemCard(fault), root));
