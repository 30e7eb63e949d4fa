// Who looks: a key or a token, kept for this tab alone and never in an address.

const KEY = "hopline.key";
const BACK = "hopline.back";

let told = null;

export const bearer = () => sessionStorage.getItem(KEY);
export const enter = (key) => sessionStorage.setItem(KEY, key);

export function leave() {
  sessionStorage.removeItem(KEY);
  told = null;
}

/** What `/v1/whoami` said of the key in use; null before a login. */
export const who = () => told;
export const know = (answer) => (told = answer);

/** `curator` and above may curate, `admin` sees the dead letters. */
export const may = (role) => {
  const ranks = ["reader", "agent", "curator", "admin"];
  return Boolean(told) && told.roles.some((own) => ranks.indexOf(own) >= ranks.indexOf(role));
};

export async function config() {
  const answer = await fetch("/web/config.json", { credentials: "omit" });
  return answer.json();
}

/** The login at the issuer (authorization code with PKCE), by its library; loaded only here. */
async function manager(login) {
  const { UserManager, WebStorageStateStore } = await import("./vendor/oidc-client-ts.js");
  return new UserManager({
    authority: login.authority,
    client_id: login.client_id,
    scope: login.scope,
    redirect_uri: `${location.origin}/`,
    response_type: "code",
    automaticSilentRenew: false,
    stateStore: new WebStorageStateStore({ store: sessionStorage, prefix: "hopline.oidc." }),
    userStore: new WebStorageStateStore({ store: sessionStorage, prefix: "hopline.oidc." }),
  });
}

export async function goToIssuer(login, back) {
  sessionStorage.setItem(BACK, back);
  await (await manager(login)).signinRedirect();
}

export const isReturn = () => {
  const query = new URLSearchParams(location.search);
  return query.has("state") && (query.has("code") || query.has("error"));
};

/** Back from the issuer: takes the token and cleans the address. Gives the view that was asked for before. */
export async function finishLogin(login) {
  try {
    const user = await (await manager(login)).signinRedirectCallback();
    enter(user.access_token);
  } finally {
    history.replaceState(null, "", "/");
  }
  const back = sessionStorage.getItem(BACK);
  sessionStorage.removeItem(BACK);
  return back;
}
