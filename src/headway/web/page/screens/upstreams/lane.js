// One upstream as a lane: places as cells, the pace as a tick, a closure as a countdown.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { serverNow } from "../../clock.js";
import { clockTime, count, duration, percent } from "../../format.js";
import { icon } from "../../icons.js";
import { badge, countdown } from "../../parts.js";
import { link } from "../../route.js";
import { laneButtons } from "./actions.js";

const MOST_CELLS = 48;
const places = new Map(); // by upstream: who stands where, so that a cell keeps its place

export function lane(gate, view, chart) {
  return html`<article class="lane card ${stateOf(gate)}" data-row aria-label=${gate.name}>
    <header class="lane-head">
      <a class="lane-name" href=${link("upstreams", gate.name)}>${gate.name}</a>
      ${stateBadge(gate)}
      <span class="lane-numbers numbers">${numbers(gate)}</span>
      <span class="push row">${laneButtons(gate, view)}</span>
    </header>
    <div class="lane-body">
      <div class="lane-gates">${cells(gate)}${holdsBack(gate)}</div>
      <div class="lane-chart">${chart}</div>
    </div>
  </article>`;
}

export function stateOf(gate) {
  if (gate.paused) return "paused";
  if (isClosed(gate)) return "closed";
  return "open";
}

export function isClosed(gate) {
  return gate.closed_until !== null || gate.reason === "closed";
}

export function stateBadge(gate) {
  const state = stateOf(gate);
  return html`<span class="lane-state">${badge(state)}</span>`;
}

export function numbers(gate) {
  return html`<span><b>${count(gate.running)}</b>${gate.limit === null ? null : html`<span class="muted"> / ${count(gate.limit)}</span>`} ${text("upstreams.running")}</span>
    <span><b>${count(gate.waiting)}</b> ${text("upstreams.waiting")}</span>`;
}

// -------------------------------------------------------------------- cells

/** As many as there are places; more when online calls go above them. */
export function cells(gate) {
  const holders = gate.holders ?? [];
  const taken = standing(gate.name, holders);
  const room = gate.limit ?? 0;
  const cooling = gate.cooling_until ?? [];
  const shown = Math.min(MOST_CELLS, Math.max(room, taken.length + cooling.length));
  const all = Array.from({ length: shown }, (_, index) => ({ index, holder: taken[index] ?? null }));
  let cooled = 0;
  for (const cell of all) {
    if (!cell.holder && cooled < cooling.length) cell.cooling = cooling[cooled++];
  }
  const hidden = Math.max(room, gate.running + gate.cooling) - shown;
  if (shown === 0) {
    return html`<p class="cells-none muted">${gate.limit === null ? text("upstreams.unlimited") : text("upstreams.noplaces")}</p>`;
  }
  return html`<ul class="cells" aria-label=${text("upstreams.cells", { n: gate.running, limit: gate.limit ?? "∞" })}>
    ${each(all, ({ index }) => index, (cell) => cellItem(cell, room))}
    ${hidden > 0 && html`<li class="cells-more muted">+${count(hidden)}</li>`}
    ${gate.limit === null && html`<li class="cells-more muted">${text("upstreams.nolimit")}</li>`}
  </ul>`;
}

function cellItem({ index, holder, cooling }, room) {
  const above = index >= room && room > 0 ? "above" : "";
  if (holder) return html`<li><a class="cell ${holder.traffic} ${above}" href=${whereIs(holder)} title=${about(holder)} aria-label=${about(holder)}></a></li>`;
  if (cooling) return html`<li><span class="cell cooling" title=${text("upstreams.cools", { left: clockTime((Date.parse(cooling) - serverNow()) / 1000) })}></span></li>`;
  return html`<li><span class="cell free" title=${text("upstreams.cell.free")}></span></li>`;
}

function about(holder) {
  const what = holder.kind === "job" ? `${holder.type} #${holder.id}` : holder.id;
  return [what, holder.tenant, text(`upstreams.cell.${holder.traffic}`), duration(holder.held_s)].filter(Boolean).join(" · ");
}

export function whereIs(holder) {
  if (holder.kind === "job") return link("requests", holder.id);
  return holder.kind === "online" ? link("channels") : link("slots");
}

function standing(name, holders) {
  const before = places.get(name) ?? [];
  const here = new Map(holders.map((holder) => [holder.fence, holder]));
  const now = before.map((fence) => (here.has(fence) ? fence : null));
  const kept = new Set(now);
  for (const holder of holders) {
    if (kept.has(holder.fence)) continue;
    const free = now.indexOf(null);
    if (free < 0) now.push(holder.fence);
    else now[free] = holder.fence;
  }
  while (now.length > 0 && now.at(-1) === null) now.pop();
  places.set(name, now);
  return now.map((fence) => here.get(fence) ?? null);
}

// -------------------------------------------------------------------- what holds it back

export function holdsBack(gate) {
  return html`<div class="holds">
    ${gate.paused && html`<p class="hold warn">${icon("pause")}<span>${text("upstreams.paused")}</span></p>`}
    ${isClosed(gate) && closure(gate)}
    ${gate.limits.map((limit) => limitLine(limit, gate))}
  </div>`;
}

function closure(gate) {
  const until = gate.closed_until ?? gate.opens_at;
  const why = gate.closed_why || gate.detail;
  return html`<p class="hold bad">${icon("lock")}<span>
    ${why ? html`<strong>${why}</strong> <span>·</span> ` : null}${until ? html`${text("upstreams.opens")} ${countdown(until)}` : text("upstreams.until.opened")}
    ${gate.pushbacks_in_a_row > 1 ? html`<span class="muted"> · ${text("upstreams.inarow", { n: gate.pushbacks_in_a_row })}</span>` : null}
  </span></p>`;
}

function limitLine(limit, gate) {
  if (limit.interval_s) return pace(limit);
  if (limit.believed) return learned(limit, gate);
  if (limit.state && limit.state !== "closed") {
    return html`<p class="hold warn">${icon("shield")}<span>${text(`upstreams.breaker.${limit.state}`)} <span class="muted numbers">${limit.bad}/${limit.heard_of}</span></span></p>`;
  }
  return null;
}

/** The tick fills while the pace keeps the next one waiting. */
function pace(limit) {
  const next = limit.next_at ?? limit.opens_at;
  const left = next ? Math.max(0, (Date.parse(next) - serverNow()) / 1000) : 0;
  const span = Math.max(limit.interval_s, 0.05);
  return html`<p class="hold">${icon("clock")}<span class="pace-text">${limit.interval_s >= 1 ? text("upstreams.every", { time: duration(limit.interval_s) }) : text("upstreams.rate", { n: Math.round(10 / limit.interval_s) / 10 })}${limit.burst > 1 ? html`<span class="muted"> · ${text("upstreams.burst", { n: limit.burst })}</span>` : null}</span>
    ${each(left > 0 ? [next] : [], (at) => at, () => html`<span class="tick" aria-hidden="true"><span class="tick-fill" --span="${span}s" --gone="${Math.min(0, left - span)}s"></span></span>`)}
  </p>`;
}

/** What is believed to be borne, and how much of it online and queued calls use. */
function learned(limit, gate) {
  const top = limit.limit_rpm;
  if (!top) {
    return html`<p class="hold">${icon("spark")}<span>${text("upstreams.learning")} <span class="muted">· ${text(`upstreams.phase.${limit.phase}`)}</span></span></p>`;
  }
  const online = Math.min(1, limit.online.rpm / top);
  const queued = Math.min(1 - online, limit.queued.rpm / top);
  const label = text("upstreams.learned", { rpm: count(Math.round(top)) });
  return html`<div class="hold learned">${icon("spark")}
    <span class="learned-text">${label} <span class="muted">${text(`upstreams.source.${limit.source}`)} · ${text(`upstreams.phase.${limit.phase}`)}</span></span>
    <span class="shares" role="img" aria-label=${text("upstreams.shares", { name: gate.name, online: percent(online), queued: percent(queued), free: percent(Math.max(0, 1 - online - queued)) })}>
      <span class="share online" --size=${String(online)}></span><span class="share queued" --size=${String(queued)}></span><span class="share-mark" --at=${String(1 - limit.threshold)}></span>
    </span></div>`;
}
