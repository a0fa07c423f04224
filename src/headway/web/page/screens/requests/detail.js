// One request: how it stands and why, its time, its attempts, its log, what went in and what came
// out, and who did what to it.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { count, duration } from "../../format.js";
import { icon } from "../../icons.js";
import { badge, button, problemNotice, stateText, when } from "../../parts.js";
import { link } from "../../route.js";
import { VERBS, actionButton, hasEnded, notBecause, verbText, verbsFor } from "./actions.js";
import { prioritise, reschedule } from "./forms.js";
import { attemptsMade, situation } from "./row.js";
import { quoted } from "./suggest.js";
import { attemptTable, eventText, timeline } from "./timeline.js";
import { askForValue, valueBlock } from "./value.js";
import { isAnswer, phrase, since, upstreamLink, waitSentence } from "./wait.js";
import "./log.js";

const KEYS = { pause: "p", resume: "p", pin: "t", unpin: "t", cancel: "c", retry: "r" };
const payloads = new Map(); // they never change

export function askForOne(id) {
  let asked;
  const job = () => (asked ??= call("getJob", { id }));
  return {
    job,
    events: async () => (await call("listJobEvents", { id })).items,
    logs: async () => (await call("listJobLogs", { id })).items,
    why: async () => (hasEnded(await job()) ? null : explained(id)),
    payload: () => payloadOf(id),
    checkpoint: async () => ((await job()).status === "completed" ? null : askForValue("getJobCheckpoint", { id })),
    result: async () => ((await job()).status === "completed" ? askForValue("getJobResult", { id }) : null),
  };
}

async function explained(id) {
  try {
    return await call("explainJob", { id });
  } catch (error) {
    if (error.status === 409) return null; // it has ended meanwhile
    throw error;
  }
}

async function payloadOf(id) {
  if (!payloads.has(id)) {
    const payload = await askForValue("getJobPayload", { id });
    payloads.clear();
    payloads.set(id, payload);
  }
  return payloads.get(id);
}

export function requestDetail(view, back) {
  const { job, events = [], logs = [], why } = view.data;
  if (!job) return problemNotice(view.errors.job ?? { status: 404, message: "" }, view.refresh);
  return html`<div class="request-head">
      <p class="crumb"><a href=${back}>${icon("left")} ${text("requests.back")}</a></p>
      <div class="row">${badge(job.status)}<code class="type">${job.type}</code>${job.pinned && badge("accent", text("requests.pinned"))}
        <span class="row push">${verbsFor(job).map((verb) => actionButton(verb, job, { keys: KEYS[verb] }))}
          ${button({ label: text("requests.prioritise"), icon: "up", unless: notBecause("pin", job), run: () => prioritise(job) })}
          ${button({ label: text("requests.reschedule"), icon: "clock", unless: notWaiting(job), run: () => reschedule(job) })}</span></div>
      ${standing(job, why)}
    </div>
    <section class="card"><div class="card-head"><h2>${text("requests.tl.title")}</h2></div>
      <div class="card-body">${timeline(events)}<h3 class="sub">${text("requests.attempts")}</h3>${attemptTable(job.attempts, job.created_at)}</div></section>
    <div class="request-columns">
      <div class="request-main">
        ${logCard(job, logs, view.errors.logs)}
        ${valueCard("result", view, text("requests.result.none"), job.status === "completed")}
        ${valueCard("checkpoint", view, text("requests.value.none"), view.data.checkpoint && view.data.checkpoint.source !== "null")}
        ${valueCard("payload", view, text("requests.value.none"), true)}
      </div>
      <section class="card"><div class="card-head"><h2>${text("requests.facts")}</h2></div><div class="card-body">${facts(job)}</div></section>
    </div>
    ${trail(events)}`;
}

function notWaiting(job) {
  if (job.status === "running") return text("requests.not.running");
  return notBecause("pin", job);
}

/** The sentence: why it waits, how far it is, or what went wrong. */
function standing(job, why) {
  const waits = ["pending", "queued"].includes(job.status);
  if (waits && why?.reason) {
    return html`<div class="standing waiting" aria-label=${text("requests.why")} role="group"><p>${waitSentence(why, { whole: true })}</p>
      ${why.since && html`<p class="muted small">${since("requests.wait.since", why.since)}${isAnswer(why) && ` · ${why.detail}`}</p>`}</div>`;
  }
  if (job.status === "completed") {
    return html`<div class="standing good"><p>${text("requests.ran.waited", { took: duration(job.run_s), waited: duration(job.waited_s ?? 0) })} <span class="muted small">· ${since("requests.ended", job.finished_at)}</span></p></div>`;
  }
  const kind = job.status === "failed" ? "bad" : job.status === "running" ? "running" : "";
  return html`<div class="standing ${kind}"><div>${situation(job)}</div></div>`;
}

function logCard(job, logs, error) {
  return html`<section class="card"><div class="card-head"><h2>${text("requests.logs")}</h2>
      ${job.status === "running" && html`<span class="muted small push">${text("requests.logs.follow")}</span>`}</div>
    <div class="card-body">${error ? problemNotice(error) : logs.length > 0 ? html`<hw-log aria-label=${text("requests.logs")} .lines=${logs}></hw-log>` : html`<p class="muted">${text("requests.logs.none")}</p>`}</div></section>`;
}

function valueCard(name, view, nothing, shown) {
  if (!shown && !view.errors[name]) return null;
  const value = view.data[name];
  const error = view.errors[name];
  return html`<section class="card"><div class="card-head"><h2>${text(`requests.${name}`)}</h2>
      ${value?.expiresAt && html`<span class="muted small push">${phrase("requests.result.until", { it: when(value.expiresAt) })}</span>`}</div>
    <div class="card-body">${error ? html`<p class="muted">${refusedText(error)}</p>` : valueBlock(text(`requests.${name}`), value, nothing)}</div></section>`;
}

function refusedText(error) {
  if (error.status === 403) return text("requests.value.forbidden");
  return error.status === 404 ? text("requests.result.expired") : error.message;
}

function facts(job) {
  const rows = [
    ["type", searchLink("type", job.type)],
    ["upstream", job.upstreams.length > 0 && job.upstreams.map((name, index) => html`${index > 0 && ", "}${upstreamLink(name)}`)],
    ["lane", searchLink("lane", job.lane)],
    ["tenant", job.tenant && searchLink("tenant", job.tenant)],
    ["key", job.key && searchLink("key", job.key)],
    ["batch", job.batch !== null && searchLink("batch", String(job.batch))],
    ["schedule", job.schedule && searchLink("schedule", job.schedule)],
    ["priority", String(job.priority)],
    ["traffic", job.traffic !== "normal" && job.traffic],
    ["tools", job.tools.join(", ")],
    ["cost", job.cost !== 1 && count(job.cost)],
    ["attempts", html`${count(attemptsMade(job))} / ${count(job.max_attempts)} <span class="muted">${troubles(job)}</span>`],
    ["timeout", job.timeout_seconds !== null && duration(job.timeout_seconds)],
    ["created", when(job.created_at)],
    ["started", job.started_at && when(job.started_at)],
    ["finished", job.finished_at && when(job.finished_at)],
    ["deadline", job.deadline && when(job.deadline)],
    ["heartbeat", job.heartbeat_at && when(job.heartbeat_at)],
    ["labels", Object.entries(job.labels).map(([name, value], index) => html`${index > 0 && ", "}${searchLink("label", `${name}=${value}`)}`)],
    ["about", Object.entries(job.about).map(([name, value]) => html`<div><span class="muted">${name}</span> ${value}</div>`)],
  ].filter(([, value]) => value && value.length !== 0);
  return html`<dl class="pairs">${each(rows, ([name]) => name, ([name, value]) => html`<dt>${text(`requests.fact.${name}`)}</dt><dd class="numbers">${value}</dd>`)}</dl>`;
}

function troubles({ failed_attempts: n, pushbacks: back, lost_leases: lost }) {
  return n + back + lost > 0 ? text("requests.attempt.more", { n, back, lost }) : null;
}

function searchLink(name, value) {
  return html`<a href=${link("requests", { q: `${name}:${quoted(value)}` })}>${value}</a>`;
}

/** What followed at once from somebody's word is told as theirs: the two are one line. */
function withWho(events) {
  const told = [];
  for (const event of events) {
    const caused = event.event === "asked" && told.findLast(({ at, after }) => after && at === event.at);
    if (caused) caused.who = event.who;
    else told.push({ ...event });
  }
  return told;
}

/** Newest first: who did what. */
function trail(events) {
  return html`<section class="card"><div class="card-head"><h2>${text("requests.trail")}</h2></div>
    <div class="table-frame plain"><table>
      <thead><tr><th class="tight">${text("requests.trail.when")}</th><th class="tight">${text("requests.trail.what")}</th><th class="tight">${text("requests.col.state")}</th><th class="tight">${text("requests.trail.who")}</th><th>${text("requests.trail.detail")}</th></tr></thead>
      <tbody>${each(withWho(events).toReversed(), ({ id }) => id, (event) => html`<tr>
        <td class="tight">${when(event.at)}</td><td class="tight">${eventText(event.event)}</td>
        <td class="tight muted">${event.after && event.before !== event.after ? html`${event.before && `${stateText(event.before)} → `}${stateText(event.after)}` : "–"}</td>
        <td class="tight">${event.who ?? html`<span class="muted">${text("requests.trail.itself")}</span>`}</td><td class="error-cell">${detailText(event) || html`<span class="muted">–</span>`}</td>
      </tr>`)}</tbody></table></div></section>`;
}

function detailText({ event, detail }) {
  return event === "asked" && VERBS.includes(detail) ? verbText(detail) : detail;
}
