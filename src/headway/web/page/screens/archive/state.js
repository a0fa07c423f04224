// What somebody has opened or chosen on the screen of the archive, and what its parts know of each
// other's things.

import { call } from "../../api.js";

/** The jobs that call sites. */
export const TYPES = new Set(["download", "list_fetch", "expected_total", "parse"]);
export const LANES = ["requires_cookie", "no_cookie"];
const MOST = 500; // names that are remembered

export const state = {
  isOn: null, // whether the server has an archive; null: nobody has asked yet
  isActive: false, // something runs whose progress is shown
  removing: null, // the subscription that is about to be gone: nobody asks for it any more
  chosen: new Set(), // failures
  look: { dry_run: false, import: false, force: false }, // what the next comparison is to do
};

const names = new Map(); // of subscriptions
const titles = new Map(); // of items

function keep(map, id, name) {
  if (map.size >= MOST) map.clear();
  map.set(id, name);
}

export function learnNames(subscriptions) {
  for (const { id, name } of subscriptions) keep(names, id, name);
}

export function nameOf(subscription) {
  return names.get(subscription) ?? null;
}

/** Asks for the names that are not known yet, once. */
export async function lookUpNames(ids) {
  const unknown = [...new Set(ids)].filter((id) => id && !names.has(id));
  await Promise.all(unknown.map(async (id) => {
    try {
      learnNames([await call("getSubscription", { id })]);
    } catch {
      keep(names, id, null); // removed meanwhile
    }
  }));
}

export function titleOf(item) {
  return titles.get(Number(item)) ?? null;
}

export async function lookUpTitles(ids) {
  const unknown = [...new Set(ids.map(Number))].filter((id) => id && !titles.has(id));
  await Promise.all(unknown.map(async (id) => {
    try {
      keep(titles, id, (await call("getItem", { id })).title);
    } catch {
      keep(titles, id, null);
    }
  }));
}
