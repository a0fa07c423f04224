// Slots: who holds places outside of this server, who waits for them, and whether it is fair.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { confirm } from "../../dialogs.js";
import { count, duration, percent } from "../../format.js";
import { bar, button, countdown, empty, figure, pager, problemNotice } from "../../parts.js";
import { adjust, link } from "../../route.js";
import { may, seesAll } from "../../session.js";
import { say } from "../../toasts.js";
import { SLOT_WORDS } from "./words.js";

const SIZE = 50;
const STATES = ["", "granted", "waiting", "reclaimed"];

export const screen = {
  words: SLOT_WORDS,
  paceMs: 1_000,
  restMs: 2_000,
  // Slots come and go without a line in the trail, so they are looked at again and again.
  concerns: () => false,

  ask({ params }) {
    const { page = 1, upstream, tenant } = params;
    const mine = { slots: () => call("listSlots", { state: params.state, upstream, tenant, page, size: SIZE }) };
    return seesAll() ? { ...mine, stats: () => call("slotStats"), gate: () => busiest(upstream) } : mine;
  },

  show(view) {
    const { slots, stats, gate } = view.data;
    const { params } = view.route;
    const filtered = params.state || params.upstream || params.tenant;
    if (slots?.total === 0 && !filtered && (stats?.counts.created ?? 0) === 0) {
      return empty({ icon: "cells", title: text("slots.none"), about: text("slots.none.about"), code: "headway slot run --upstream downloads.example -- curl -O https://downloads.example/file" });
    }
    return html`${stats && figures(stats)}
      ${view.errors.slots && problemNotice(view.errors.slots, view.refresh)}
      ${gate && gate.tenants.length > 0 && fairness(gate)}
      <section><div class="row between"><h2>${text("slots.list")}</h2>${filters(params)}</div>
        ${slots && (slots.items.length === 0 ? html`<p class="muted" role="status">${text("slots.nomatch")}</p>` : table(slots.items, view))}
        ${slots && pager(slots)}</section>
      ${stats && stats.overshoot.length > 0 && overshoot(stats.overshoot)}`;
  },
};

/** The upstream that is asked for, or the one where most slots are. */
async function busiest(upstream) {
  const name = upstream || mostNamed((await call("listSlots", { size: SIZE, page: 1 })).items);
  return name ? call("getUpstreams", { name }) : { tenants: [] };
}

function mostNamed(items) {
  const found = new Map();
  for (const { upstream, upstreams } of items) {
    const name = upstream ?? upstreams[0];
    if (name) found.set(name, (found.get(name) ?? 0) + 1);
  }
  return [...found].toSorted((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]))[0]?.[0];
}

function figures({ sessions, counts }) {
  const value = (name, number, kind) => figure({ label: text(`slots.${name}`), value: count(number), kind: number ? kind : "none" });
  return html`<div class="figures">
    ${value("granted", sessions.granted, "running")}${value("waiting", sessions.waiting, "queued")}${value("absent", sessions.absent, "")}
    ${value("given", counts.granted, "")}${value("throttled", counts.throttled, "warn")}${value("reclaimed", counts.reclaimed, "warn")}${value("outlived", counts.outlived, "bad")}
  </div>`;
}

function filters({ state: chosen = "", upstream, tenant }) {
  return html`<div class="row">
    ${[["upstream", upstream], ["tenant", tenant]].map(([name, value]) => value && html`<span class="chip">${text(`slots.${name}`)}: <b>${value}</b> ${button({ label: text("slots.any", { name: text(`slots.${name}`) }), icon: "close", bare: true, needs: null, run: () => adjust({ [name]: null, page: null }) })}</span>`)}
    <div class="segments" role="group" aria-label=${text("slots.state")}>${STATES.map((name) => html`<button type="button" aria-pressed=${String(name === chosen)} @click=${() => adjust({ state: name, page: null })}>${text(`slots.state.${name || "all"}`)}</button>`)}</div>
  </div>`;
}

// -------------------------------------------------------------------- fairness

/** Each tenant's share beside the one that it is due: equal, by weight, among those who are here. */
function fairness({ name, tenants, limit, running }) {
  const weights = tenants.reduce((sum, { weight }) => sum + weight, 0);
  const shown = tenants.toSorted((one, other) => one.tenant.localeCompare(other.tenant)).slice(0, 24);
  return html`<section><div class="row between"><h2>${text("slots.fairness", { name })}</h2><span class="muted numbers">${text("slots.places", { n: running, limit: limit ?? "∞" })}</span></div>
    <div class="card card-body"><ul class="fair" aria-label=${text("slots.fairness", { name })}>${each(shown, ({ tenant }) => tenant, (share) => fairRow(share, share.weight / weights))}</ul>
      <p class="muted hint-line"><i class="due-key"></i> ${text("slots.due")}</p></div></section>`;
}

function fairRow({ tenant, share, running, waiting }, due) {
  return html`<li><button type="button" class="link fair-name" @click=${() => adjust({ tenant, page: null })}>${tenant || text("slots.nobody")}</button>
    <span class="fair-bar">${bar(share, text("slots.share", { tenant, share: percent(share), due: percent(due) }), share > due * 1.5 ? "warn" : "blue")}<span class="due" --at=${String(Math.min(1, due))}></span></span>
    <span class="numbers fair-numbers">${percent(share)}</span>
    <span class="numbers muted fair-line">${text("slots.holdswaits", { held: running, waits: waiting })}</span></li>`;
}

// -------------------------------------------------------------------- the list

function table(items, view) {
  return html`<div class="table-frame"><table>
    <thead><tr><th scope="col">${text("slots.slot")}</th><th scope="col">${text("slots.upstream")}</th><th scope="col">${text("slots.tenant")}</th><th scope="col">${text("slots.state")}</th><th scope="col">${text("slots.time")}</th>
      <th scope="col"><span class="visually-hidden">${text("slots.actions")}</span></th></tr></thead>
    <tbody>${each(items, ({ id, kind }) => `${kind} ${id}`, (slot) => row(slot, view))}</tbody></table></div>`;
}

function row(slot, view) {
  const where = slot.upstream ?? slot.upstreams[0];
  return html`<tr data-row>
    <th scope="row"><span tabindex="-1">${slot.id}</span><span class="under muted">${text(`slots.kind.${slot.kind}`)}${slot.holder && html` · ${slot.holder}`}</span></th>
    <td>${where ? html`<a href=${link("upstreams", where)}>${where}</a>` : html`<span class="muted">–</span>`}</td>
    <td>${slot.tenant || html`<span class="muted">–</span>`}</td>
    <td>${state(slot)}</td>
    <td class="numbers">${slot.state === "waiting" ? waits(slot) : holds(slot)}</td>
    <td class="tight"><span class="row">${button({ label: text("slots.end", { id: String(slot.id) }), icon: "stop", bare: true, unless: slot.kind === "own" ? text("slots.end.own") : null, run: () => end(slot, view) })}</span></td>
  </tr>`;
}

function state(slot) {
  if (slot.state === "granted") return html`<span class="badge running">${text("slots.state.granted")}</span>`;
  if (slot.state === "reclaimed") return html`<span class="badge bad">${text("slots.state.reclaimed")}</span>`;
  return html`<span class="badge ${slot.attached ? "queued" : ""}">${text(slot.attached ? "slots.state.waiting" : "slots.away")}</span>`;
}

function waits({ position, eta, opens_at: opens, waited_s: waited, wait_detail: why }) {
  return html`${text("slots.waited", { time: duration(waited) })}${position && html` · ${text("slots.place", { n: position })}`}
    ${(eta ?? opens) && html` · ${text("slots.eta")} ${countdown(eta ?? opens)}`}${why && html`<span class="under muted">${why}</span>`}`;
}

function holds({ held_s: held, lease_ends_at: ends }) {
  return html`${text("slots.held", { time: duration(held) })}${ends && html` <span class="muted">· ${text("slots.lease")} ${countdown(ends)}</span>`}`;
}

async function end(slot, view) {
  const { id, state: now, tenant } = slot;
  const sure = await confirm({ title: text("slots.end", { id: String(id) }), about: text(now === "waiting" ? "slots.end.waiting" : "slots.end.held", { tenant: tenant || "–" }), action: text("slots.end.do") });
  if (!sure || !may("operate")) return;
  await call("endSlot", { id });
  say(text("slots.did.end", { id: String(id) }));
  view.refresh();
}

function overshoot(rows) {
  return html`<section><h2>${text("slots.overshoot")}</h2><p class="muted lead">${text("slots.overshoot.about")}</p>
    <div class="table-frame"><table><thead><tr><th scope="col">${text("slots.upstream")}</th><th scope="col" class="number">${text("slots.reclaimed")}</th><th scope="col" class="number">${text("slots.outlived")}</th><th scope="col" class="number">${text("slots.outlived.time")}</th></tr></thead>
      <tbody>${each(rows, ({ upstream }) => upstream, (one) => html`<tr><th scope="row"><a href=${link("upstreams", one.upstream)}>${one.upstream}</a></th><td class="number">${count(one.reclaimed)}</td><td class="number">${count(one.outlived)}</td><td class="number">${duration(one.outlived_s)}</td></tr>`)}</tbody></table></div></section>`;
}
