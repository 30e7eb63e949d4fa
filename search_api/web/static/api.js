// The public REST API, and nothing else. A problem answer becomes an Error that says what to do.

import { bearer } from "./session.js";

/** RFC 9457, or what the browser could say where nothing answered (`status` 0). */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? "");
    this.status = status;
    this.kind = (body.type ?? "").replace("urn:hopline:problem:", "");
    this.title = body.title ?? "";
    this.errors = body.errors ?? [];
    this.requestId = body.request_id ?? "";
    this.retryAfter = body.retryAfter ?? null;
  }
}

/** Answer of a route as JSON; null for one without a body. `query`: values that are null, "" or [] are left out. */
export async function call(method, path, { query = {}, body, signal, token = bearer() } = {}) {
  const address = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, value);
  }
  const headers = { accept: "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body), credentials: "omit", cache: "no-store",
    });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Problem(0, { type: "unreachable" });
  }
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const told = await answer.json().catch(() => ({ title: answer.statusText }));
  const problem = new Problem(answer.status, { ...told, retryAfter: answer.headers.get("retry-after") });
  // The key that was good is no longer: the shell asks for another.
  if (problem.status === 401 && token && token === bearer()) dispatchEvent(new CustomEvent("unauthorized", { detail: problem }));
  throw problem;
}

export const get = (path, query, signal) => call("GET", path, { query, signal });
export const post = (path, body, signal) => call("POST", path, { body, signal });

export const id = encodeURIComponent;
