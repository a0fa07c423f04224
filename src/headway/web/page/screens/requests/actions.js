// What can be done to requests: to one, to those that are selected, to all that match; with the way
// back where there is one.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { confirm } from "../../dialogs.js";
import { update, view } from "../../frame.js";
import { badge, button, stateText } from "../../parts.js";
import { say } from "../../toasts.js";

export const VERBS = ["pause", "resume", "cancel", "retry", "pin", "unpin"];
export const ICONS = { pause: "pause", resume: "play", cancel: "close", retry: "retry", pin: "pin", unpin: "pin" };
const CALLS = { pause: "pauseJob", resume: "resumeJob", cancel: "cancelJob", retry: "retryJob", pin: "pinJob", unpin: "unpinJob" };
const UNDONE_BY = { pause: "resume", resume: "pause", cancel: "retry", pin: "unpin", unpin: "pin" };
const ENDED = new Set(["completed", "failed", "cancelled"]);
const SAMPLE = 5;

export function hasEnded({ status }) {
  return ENDED.has(status);
}

export function verbText(verb) {
  return text(`requests.do.${verb}`);
}

/** Why this cannot be done to it now; null: it can. */
export function notBecause(verb, job) {
  if (verb === "retry") {
    return ["failed", "cancelled"].includes(job.status) ? null : text("requests.not.ended");
  }
  if (hasEnded(job)) return text("requests.not.open", { state: stateText(job.status) });
  if (job.stop_requested && verb !== "pin" && verb !== "unpin") return text("requests.not.stopping");
  return null;
}

/** The four that fit a request as it is: each is the opposite of what it has. */
export function verbsFor(job) {
  return [job.status === "paused" ? "resume" : "pause", job.pinned ? "unpin" : "pin", "cancel", "retry"];
}

export async function act(verb, job) {
  const reason = notBecause(verb, job);
  if (reason) return say(reason, { kind: "warn" });
  if (verb === "cancel" && !(await sureToCancel(job))) return null;
  const after = await call(CALLS[verb], { id: job.id });
  const back = UNDONE_BY[verb];
  const undo = back && (async () => {
    await call(CALLS[back], { id: job.id });
    view()?.refresh();
  });
  say(text(`requests.done.${after.stop_requested === "cancel" ? "stopping" : verb}`, { id: String(job.id) }), { undo });
  view()?.refresh();
  return after;
}

function sureToCancel({ id, status }) {
  return confirm({
    title: text("requests.cancel.title", { id: String(id) }),
    about: text(status === "running" ? "requests.cancel.running" : "requests.cancel.waiting"),
    action: text("requests.do.cancel"),
  });
}

/** One action as a button: `bare` as a drawing only. */
export function actionButton(verb, job, { bare = false, keys = null } = {}) {
  return button({
    label: bare ? text("requests.do.one", { verb: verbText(verb), id: String(job.id) }) : verbText(verb),
    icon: ICONS[verb], bare, keys, kind: verb === "cancel" && !bare ? "quiet danger" : "quiet",
    unless: notBecause(verb, job), pressed: verb === "unpin" ? true : null, run: () => act(verb, job),
  });
}

// ---------------------------------------------------------------------- several

/** `which` is { ids } or { q }. Asked twice: first what would happen, then to do exactly that. */
export async function actOnAll(verb, which) {
  let changed = false;
  for (;;) {
    const seen = await call("bulkJobs", {}, { body: { action: verb, ...which, dry_run: true } });
    if (seen.possible === 0) return say(text("requests.bulk.none", { matched: seen.matched }), { kind: "warn" });
    if (!(await sure(verb, seen, changed))) return null;
    // Where requests come and go all the time no number holds: who has seen that may go on without.
    const expected = changed ? undefined : seen.matched;
    try {
      return done(verb, await call("bulkJobs", {}, { body: { action: verb, ...which, dry_run: false, expected } }));
    } catch (error) {
      if (error.status !== 409) throw error;
      changed = true;
    }
  }
}

function sure(verb, { matched, possible, sample }, changed) {
  return confirm({
    title: text("requests.bulk.title", { verb: verbText(verb), n: possible }),
    action: verbText(verb),
    danger: verb === "cancel",
    about: html`${changed && html`<div class="notice" role="status">${text("requests.bulk.changed", { matched })}</div>`}
      <p>${text(possible === matched ? "requests.bulk.all" : "requests.bulk.of", { possible, matched })} ${verb === "cancel" && text("requests.bulk.cancel")}</p>
      <ul class="bulk-sample">${sample.slice(0, SAMPLE).map((job) => html`<li><span class="numbers muted">${String(job.id)}</span> <span class="clip">${job.type}</span> ${badge(job.status)}</li>`)}
        ${possible > SAMPLE && html`<li class="muted">${text("requests.bulk.more", { n: possible - SAMPLE })}</li>`}</ul>`,
  });
}

function done(verb, { done: many, refused, touched }) {
  const back = UNDONE_BY[verb];
  const undo = back && touched.length > 0 && (async () => {
    await call("bulkJobs", {}, { body: { action: back, ids: touched, dry_run: false } });
    view()?.refresh();
  });
  const moved = refused > 0 ? ` ${text("requests.bulk.refused", { n: refused })}` : "";
  say(text(`requests.bulk.done.${verb}`, { n: many }) + moved, { undo: undo || null });
  view()?.refresh();
  update();
  return many;
}
