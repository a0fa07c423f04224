// Who is looking, and what they may do.

import { text } from "../text.js";
import { call } from "./api.js";

let info = { who: "", scopes: [], tenant: null, version: "", open: true, store: "" };

// The first question of all, asked while the rest of the page is still on its way.
let first = call("getInfo").then(
  (answer) => () => answer,
  (error) => () => {
    throw error;
  },
);

export async function loadSession() {
  const answer = first;
  first = null;
  info = answer ? (await answer)() : await call("getInfo");
}

export function session() {
  return info;
}

export function may(scope) {
  return info.scopes.includes(scope) || info.scopes.includes("admin");
}

/** Whether this login sees all tenants: gates, tokens and settings are for those only. */
export function seesAll() {
  return info.tenant === null || info.tenant === undefined;
}

/** Why somebody who sees one tenant only cannot do what concerns all; null: they see all. */
export function boundToOne() {
  return seesAll() ? null : text("may.one");
}

/** Why somebody without this scope cannot do it; null: they can. */
export function refusedBecause(scope) {
  return may(scope) ? null : text("may.not", { scope });
}
