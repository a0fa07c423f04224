// What could come next in a search, from where somebody types: names of qualifiers, then values. The
// grammar is the server's (`api/search.py`); nothing here touches the document.

import { text } from "../../../text.js";
import { stateText } from "../../parts.js";

const NAMES = ["status", "type", "upstream", "lane", "tenant", "key", "error", "label", "created", "finished", "batch", "schedule", "id"];
const STATES = ["queued", "running", "pending", "paused", "completed", "failed", "cancelled"];
const GROUPS = ["open", "waiting", "ended"];
const SPANS = ["5m", "1h", "24h", "7d"];
const WITH_COMMAS = new Set(["status", "id"]);
const MOST = 12;

/** The word around the place where somebody types: a blank inside of quotes does not end it. */
export function wordAt(typed, caret) {
  let from = 0;
  let inQuotes = false;
  for (let at = 0; at < caret; at += 1) {
    if (typed[at] === '"' && typed[at - 1] !== "\\") inQuotes = !inQuotes;
    else if (!inQuotes && /\s/.test(typed[at])) from = at + 1;
  }
  return { from, to: caret, word: typed.slice(from, caret) };
}

/** { from, to, options: [{ insert, label, about, complete }] }; `values` is { name: [value] }. */
export function suggestions(typed, caret, values) {
  const { from, to, word } = wordAt(typed, caret);
  const [, name, begun] = word.match(/^(\w+):(.*)$/s) ?? [];
  const all = name === undefined ? namesFor(word) : valuesFor(name.toLowerCase(), begun, values);
  // What is written already needs no completion.
  const options = all.filter(({ insert }) => insert.trim() !== word);
  return { from, to, word, options: options.slice(0, MOST + (name === undefined ? NAMES.length : 0)) };
}

function namesFor(word) {
  return NAMES.filter((name) => name.startsWith(word.toLowerCase())).map((name) => ({
    insert: `${name}:`, label: `${name}:`, about: text(`requests.q.${name}`), complete: false,
  }));
}

function valuesFor(name, begun, values) {
  const cut = WITH_COMMAS.has(name) ? begun.lastIndexOf(",") + 1 : 0;
  const [kept, sought] = [begun.slice(0, cut), begun.slice(cut).replace(/^"/, "").toLowerCase()];
  const fits = ([value, about = ""]) => `${value} ${about}`.toLowerCase().includes(sought);
  const all = known(name, values).filter(fits);
  all.sort(([one], [other]) => Number(!one.toLowerCase().startsWith(sought)) - Number(!other.toLowerCase().startsWith(sought)));
  return all.map(([value, about]) => ({ insert: `${name}:${kept}${quoted(value)} `, label: value, about, complete: true }));
}

function known(name, values) {
  if (name === "status") {
    return [
      ...STATES.map((state) => [state, stateText(state) === state ? "" : stateText(state)]),
      ...GROUPS.map((group) => [group, text(`requests.q.group.${group}`)]),
    ];
  }
  if (name === "created" || name === "finished") {
    return [
      ...SPANS.map((span) => [`>${span}`, text("requests.q.within", { span })]),
      ...SPANS.slice(1).map((span) => [`<${span}`, text("requests.q.before", { span })]),
    ];
  }
  return (values[name] ?? []).map((value) => [value, ""]);
}

export function quoted(value) {
  return /[\s"]/.test(value) || value === "" ? `"${value.replaceAll(/["\\]/g, "\\$&")}"` : value;
}

/** What the rows that are shown have to offer, beside what the server lists. */
export function valuesIn(jobs) {
  const found = { type: [], lane: [], upstream: [], tenant: [], key: [], batch: [], schedule: [], label: [], error: [], id: [] };
  for (const job of jobs) {
    for (const name of ["type", "lane", "tenant", "key", "schedule"]) if (job[name]) found[name].push(job[name]);
    found.upstream.push(...job.upstreams);
    found.id.push(String(job.id));
    if (job.batch) found.batch.push(String(job.batch));
    if (job.last_error) found.error.push(job.last_error.slice(0, 80));
    for (const [name, value] of Object.entries(job.labels)) found.label.push(`${name}=${value}`);
  }
  return found;
}

/** The search without its `status:`, and what that was. */
export function apartFromStatus(q) {
  const said = q.match(/(?:^|\s)(?:status|state):(\S+)/i)?.[1] ?? "";
  return { status: said.toLowerCase(), rest: q.replaceAll(/(^|\s)(?:status|state):\S+/gi, " ").replaceAll(/\s+/g, " ").trim() };
}
