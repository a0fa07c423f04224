// One request as a row: what it is, how it stands, where it goes. Each cell has room for two lines,
// so that nothing moves when what is said in it changes. On a phone the row becomes a card.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { count, duration } from "../../format.js";
import { badge, bar, when } from "../../parts.js";
import { link } from "../../route.js";
import { actionButton, hasEnded } from "./actions.js";
import { phrase, since, upstreamLink, waitSentence } from "./wait.js";

const WAITING = new Set(["pending", "queued"]);

export function requestRow(job, { selected, choose }) {
  return html`<tr data-row=${String(job.id)} aria-selected=${String(selected)}>
    <td class="pick"><input type="checkbox" aria-label=${text("requests.select", { id: String(job.id) })} .checked=${selected} @change=${choose} /></td>
    <td class="id number"><a href=${link("requests", job.id)}>${String(job.id)}</a></td>
    <th class="what" scope="row"><a class="clip" href=${link("requests", job.id)} tabindex="-1">${job.type}</a>${aboutLine(job)}</th>
    <td class="state">${badge(job.status)}${attemptLine(job)}</td>
    <td class="now">${situation(job)}</td>
    <td class="where"><span class="clip">${whereTo(job)}</span><span class="clip muted small">${[text("requests.lane", { name: job.lane }), job.tenant].filter(Boolean).join(" · ")}</span></td>
    <td class="when"><span class="clip">${when(job.created_at)}</span><span class="clip muted small">${ranFor(job)}</span></td>
    <td class="acts">${rowActions(job)}</td>
  </tr>`;
}

/** What it is about, its key and its labels, in one muted line. */
function aboutLine({ about, labels, key, schedule }) {
  const parts = [
    about.title ?? about.url ?? Object.values(about)[0],
    key,
    ...Object.entries(labels).map(([name, value]) => `${name}=${value}`),
    schedule,
  ].filter(Boolean);
  return html`<span class="clip muted small" title=${parts.join(" · ") || null}>${parts.join(" · ") || "\u00a0"}</span>`;
}

function attemptLine(job) {
  const tried = attemptsMade(job);
  const title = text("requests.attempt.more", { n: job.failed_attempts, back: job.pushbacks, lost: job.lost_leases });
  const again = tried > 1 || (job.status === "failed" && tried > 0);
  return html`<span class="clip muted small" title=${tried > 0 ? title : null}>${job.pinned && html`<span class="pin">${text("requests.pinned")}</span> `}${
    again ? text("requests.attempt", { n: tried, most: job.max_attempts }) : "\u00a0"}</span>`;
}

/** Those that count: a pushback is nobody's failure. */
export function attemptsMade(job) {
  return job.failed_attempts + job.lost_leases + (job.status === "running" || job.status === "completed" ? 1 : 0);
}

/** What happens to it now, in words. */
export function situation(job) {
  if (job.status === "running") return running(job);
  if (WAITING.has(job.status)) return html`<span class="lines">${job.wait_reason ? waitSentence(job) : html`<span class="muted">–</span>`}</span>`;
  if (job.status === "paused") return html`<span class="lines muted">${since("requests.paused.since", job.since)}</span>`;
  if (job.last_error && job.status !== "completed") return html`<span class="lines error" title=${job.last_error}>${job.last_error}</span>`;
  return html`<span class="lines muted">${since("requests.ended", job.finished_at)}</span>`;
}

function running(job) {
  const { progress } = job;
  if (job.stop_requested) return html`<span class="lines warn-text">${text("requests.stopping")}</span>`;
  if (!progress) return html`<span class="lines muted">${elapsed(job)}</span>`;
  const label = text("requests.progress", { id: String(job.id) });
  const known = progress.percent !== null;
  return html`<span class="progress">
    <span class="progress-line">${known ? html`${bar(progress.percent / 100, label)}<span class="percent numbers">${Math.round(progress.percent)}%</span>` : html`<span class="muted">${count(progress.done)}</span>`}</span>
    <span class="clip muted small" title=${progress.note || null}>${progress.note || elapsed(job)}</span>
  </span>`;
}

export function elapsed(job) {
  return phrase("requests.running.for", { it: html`<hw-elapsed class="numbers" at=${job.started_at}></hw-elapsed>` });
}

function whereTo({ upstream, upstreams }) {
  if (upstream) return upstreamLink(upstream);
  if (upstreams.length === 0) return html`<span class="muted">${text("requests.any.upstream")}</span>`;
  return html`${upstreamLink(upstreams[0])}${upstreams.length > 1 && html` <span class="muted">+${String(upstreams.length - 1)}</span>`}`;
}

function ranFor(job) {
  return job.run_s === null ? "\u00a0" : text("requests.ran", { took: duration(job.run_s) });
}

/** In a row only what can be done; the request's own screen says why the rest cannot. */
function rowActions(job) {
  if (hasEnded(job)) return html`<div class="row">${job.status === "completed" ? null : actionButton("retry", job, { bare: true })}</div>`;
  return html`<div class="row">${actionButton(job.status === "paused" ? "resume" : "pause", job, { bare: true })}
    ${actionButton(job.pinned ? "unpin" : "pin", job, { bare: true })}${actionButton("cancel", job, { bare: true })}</div>`;
}
