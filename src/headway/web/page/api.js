// Calls of the server: by name, with problems that say what to do.

import { text } from "../text.js";
import { CALLS } from "./calls.js";
import { hearServerTime } from "./clock.js";

const PATIENCE_MS = 30_000;

/** What the server said when it refused (RFC 9457), or that it could not be reached (status 0). */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.status = status;
    this.kind = String(problem.type ?? "").split(/[/:#]/).pop();
    this.errors = problem.errors ?? [];
  }

  /** It may be well the next time: nobody was there, too much was asked, or something broke. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/**
 * `call("getJob", { id: 7 })`, `call("listJobs", { q: "status:failed" })`,
 * `call("pinJob", { id: 7 }, { body: {…} })`: what is not part of the path goes into the query.
 * `body` is sent as JSON, unless it is a Blob, FormData or text of a `type`.
 */
export async function call(name, values = {}, { body, type, signal, as = "json" } = {}) {
  const [method, path] = CALLS[name].split(" ");
  const response = await send(addressOf(path, values), {
    method,
    headers: headersFor(body, type),
    body: body === undefined || type || isRaw(body) ? body : JSON.stringify(body),
    cache: "no-store",
    signal: signal ?? AbortSignal.timeout(PATIENCE_MS),
  });
  hearServerTime(response.headers.get("date"));
  if (!response.ok) throw await refusalOf(response);
  if (as === "json" && response.status === 204) return null;
  try {
    return await response[as]();
  } catch (error) {
    if (signal?.aborted && error.name === "AbortError") throw error;
    throw new Refusal(0, { detail: text("problem.unread") }); // cut off, or not what was asked for
  }
}

/** Where the same would be got by a link, such as one for a download. */
export function addressOfCall(name, values = {}) {
  return addressOf(CALLS[name].split(" ")[1], values);
}

function addressOf(path, values) {
  const rest = new URLSearchParams();
  const filled = new Set();
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    filled.add(name);
    // Browsers and servers take these for steps of the path, however they are written.
    if (/^\.{1,2}$|\//.test(values[name])) throw new Refusal(404, { detail: text("problem.name", { name: String(values[name]) }) });
    return encodeURIComponent(values[name]);
  });
  for (const [name, value] of Object.entries(values)) {
    if (filled.has(name) || value === undefined || value === null || value === "") continue;
    rest.append(name, String(value));
  }
  const query = rest.toString();
  return query === "" ? address : `${address}?${query}`;
}

async function send(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (options.signal.aborted && error.name === "AbortError") throw error;
    throw new Refusal(0, { detail: "the server could not be reached" });
  }
}

function headersFor(body, type) {
  if (type) return { "Content-Type": type };
  return body === undefined || isRaw(body) ? {} : { "Content-Type": "application/json" };
}

function isRaw(body) {
  return body instanceof FormData || body instanceof Blob;
}

async function refusalOf(response) {
  // Whoever is not logged in (any more) is led to where they can be, and back to this place.
  if (response.status === 401) location.assign(`/login${location.hash}`);
  let problem = {};
  try {
    problem = Object(await response.json());
  } catch {
    // A proxy may answer in words of its own; the status says enough.
  }
  // The routes of language models say what is wrong in the shape of theirs.
  return new Refusal(response.status, problem.error?.message ? { detail: problem.error.message } : problem);
}
