// The life of one request as a bar: where it waited and why, where it ran and how that ended, where
// it was set aside; and its attempts, one by one. Drawn from its events.

import { each, html } from "../../../render.js";
import { isKnown, text } from "../../../text.js";
import { serverNow } from "../../clock.js";
import { count, duration, exactTime, timeOfDay } from "../../format.js";
import { badge, when } from "../../parts.js";

const FAILED = new Set(["retry", "lost", "fatal", "exhausted", "lost_too_often", "deadline"]);
const PUSHED_BACK = new Set(["pushback", "pushed_back_too_long"]);
const ENDED = new Set(["completed", "failed", "cancelled"]);
const SECONDS_MS = 600_000; // shorter lives are told to the second

export function eventText(event) {
  return isKnown(`requests.event.${event}`) ? text(`requests.event.${event}`) : event;
}

/** [{ kind, group, from, to, detail }] in ms; the last one of an open request lasts until `now`. */
function spansOf(events, now) {
  const changes = events.filter(({ after }) => after).map((event) => ({ ...event, ms: Date.parse(event.at) }));
  const spans = [];
  changes.forEach((event, index) => {
    if (ENDED.has(event.after)) return;
    const next = changes[index + 1];
    if (next?.after === event.after && next.before === event.after) next.event = event.event; // nothing but a note
    const to = next ? next.ms : Math.max(now, event.ms);
    spans.push({ ...kindOf(event, next), from: event.ms, to, open: !next, detail: event.after === "running" ? (next?.detail ?? "") : event.detail });
  });
  return spans;
}

function kindOf({ after, event }, next) {
  if (after === "paused") return { kind: "paused", group: "paused" };
  if (after === "running") return { kind: outcomeKind(next?.event), group: "running" };
  if (PUSHED_BACK.has(event)) return { kind: "pushback", group: "waiting" };
  return { kind: FAILED.has(event) ? "backoff" : "waiting", group: "waiting" };
}

function outcomeKind(event) {
  if (event === undefined) return "running";
  if (event === "ok") return "ok";
  if (PUSHED_BACK.has(event)) return "back";
  return FAILED.has(event) ? "bad" : "stopped";
}

export function timeline(events) {
  const spans = spansOf(events, serverNow());
  if (spans.length === 0) return null;
  const [begin, end] = [spans[0].from, spans.at(-1).to];
  const length = Math.max(1, end - begin);
  const exact = length < SECONDS_MS;
  return html`<div class="timeline">
    <div class="tl-bar" role="img" aria-label=${text("requests.tl.label", { what: totals(spans).map(({ words }) => words).join(", ") })}>
      ${each(spans, ({ from, kind }) => `${from} ${kind}`, (span) => html`<span class="tl-span ${span.kind}" data-open=${String(span.open)} --from=${String((span.from - begin) / length)} --length=${String((span.to - span.from) / length)}
        title=${`${text(`requests.tl.${span.kind}`)}, ${duration((span.to - span.from) / 1000)}, ${exactTime(span.from)}${span.detail ? `: ${span.detail}` : ""}`}></span>`)}
    </div>
    <div class="tl-axis numbers"><span title=${exactTime(begin)}>${timeOfDay(begin, exact)}</span><span title=${exactTime(end)}>${spans.at(-1).open ? text("requests.tl.now") : timeOfDay(end, exact)}</span></div>
    <ul class="legend">${kindsIn(spans).map((kind) => html`<li><i class="tl-swatch ${kind}"></i>${text(`requests.tl.${kind}`)}</li>`)}
      ${totals(spans).map(({ words }) => html`<li class="tl-total numbers">${words}</li>`)}</ul>
  </div>`;
}

function kindsIn(spans) {
  return [...new Set(spans.map(({ kind }) => kind))];
}

function totals(spans) {
  return ["waiting", "running", "paused"].map((group) => {
    const ms = spans.filter((span) => span.group === group).reduce((sum, { from, to }) => sum + to - from, 0);
    return { ms, words: text(`requests.tl.total.${group}`, { took: duration(Math.round(ms) / 1000) }) };
  }).filter(({ ms }) => ms > 0);
}

const OUTCOMES = { ok: "good", running: "running", bad: "failed", back: "warn", stopped: "muted" };

export function attemptTable(attempts, created) {
  if (attempts.length === 0) return html`<p class="muted">${text("requests.attempts.none")}</p>`;
  const before = (index) => Date.parse(attempts[index].started_at) - Date.parse(index > 0 ? (attempts[index - 1].ended_at ?? created) : created);
  return html`<div class="table-frame"><table>
    <thead><tr><th class="number tight">${text("requests.attempts.no")}</th><th class="tight">${text("requests.attempts.started")}</th><th class="number tight">${text("requests.attempts.waited")}</th>
      <th class="number tight">${text("requests.attempts.took")}</th><th class="tight">${text("requests.attempts.outcome")}</th><th>${text("requests.attempts.error")}</th></tr></thead>
    <tbody>${each(attempts, ({ number }) => number, (attempt, index) => html`<tr>
      <td class="number">${count(attempt.number)}</td><td class="tight">${when(attempt.started_at)}</td>
      <td class="number tight">${duration(Math.max(0, before(index)) / 1000)}</td>
      <td class="number tight">${attempt.ended_at ? duration(attempt.duration_s) : html`<hw-elapsed at=${attempt.started_at}></hw-elapsed>`}</td>
      <td class="tight">${badge(OUTCOMES[outcomeKind(attempt.outcome ?? undefined)], attempt.outcome ? eventText(attempt.outcome) : text("requests.attempts.running"))}</td>
      <td class="error-cell">${attempt.error ?? html`<span class="muted">–</span>`}</td>
    </tr>`)}</tbody></table></div>`;
}
