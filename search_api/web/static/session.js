// Who looks: a key or a token, kept for this tab alone and never in an address.

const OURS = "hopline.";
const KEY = `${OURS}key`;
const BACK = `${OURS}back`;
const ISSUER = `${OURS}oidc.`;

let told = null;

export const bearer = () => sessionStorage.getItem(KEY);
export const enter = (key) => sessionStorage.setItem(KEY, key);

/** Forgets the key or token, and what the library of the login has kept of it. */
export function leave() {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(OURS)) sessionStorage.removeItem(key);
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
    stateStore: new WebStorageStateStore({ store: sessionStorage, prefix: ISSUER }),
    userStore: new WebStorageStateStore({ store: sessionStorage, prefix: ISSUER }),
  });
}

/** What goes wrong in `step` is the issuer's to mend, and said so. */
async function atIssuer(step) {
  try {
    return await step();
  } catch (fault) {
    fault.kind = "issuer";
    throw fault;
  }
}

export async function goToIssuer(login, back) {
  sessionStorage.setItem(BACK, back);
  await atIssuer(async () => (await manager(login)).signinRedirect());
}

export const isReturn = () => {
  const query = new URLSearchParams(location.search);
  return query.has("state") && (query.has("code") || query.has("error"));
};

/** Back from the issuer: takes the token, and puts the view that was asked for before into the address. */
export async function finishLogin(login) {
  try {
    await atIssuer(async () => {
      const issuer = await manager(login);
      const user = await issuer.signinRedirectCallback();
      enter(user.access_token);
      await issuer.removeUser();
    });
  } finally {
    history.replaceState(null, "", `/${sessionStorage.getItem(BACK) ?? ""}`);
    sessionStorage.removeItem(BACK);
  }
}
