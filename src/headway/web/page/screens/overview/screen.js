// The overview: what needs attention, what runs, waits and fails, and how it went.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { bytes, count, duration, percent } from "../../format.js";
import { bar, button, empty, figure, problemNotice } from "../../parts.js";
import { adjust, link, sought } from "../../route.js";
import { may, seesAll } from "../../session.js";
import { say } from "../../toasts.js";
import { attentionList } from "./attention.js";
import { chartCards } from "./charts.js";
import { OVERVIEW_WORDS } from "./words.js";

const SPANS = ["live", "1h", "24h"];
const SHOWN_UPSTREAMS = 8;

export const screen = {
  words: OVERVIEW_WORDS,
  paceMs: 1_000,
  restMs: 4_000,

  ask({ params }) {
    const mine = {
      stats: () => call("getQueueStats"),
      attention: () => call("getAttention"),
      types: () => call("getTaskStats", { hours: 1 }),
    };
    if (!seesAll()) return mine;
    return {
      ...mine,
      history: () => call("getHistory", { span: params.span ?? "live" }),
      lanes: () => call("listLanes"),
      upstreams: () => call("listUpstreams", { order: "activity", size: SHOWN_UPSTREAMS, page: 1 }),
      resources: () => call("getResources"),
    };
  },

  show(view) {
    const { stats, attention, history, lanes, upstreams, types, resources } = view.data;
    return html`${attention && attentionList(attention)}
      ${stats && figures(stats)}
      ${stats?.counts.total === 0 && firstSteps()}
      ${seesAll() && historySection(view, history)}
      <div class="halves">
        ${lanes && laneTable(lanes.items, view)}
        ${upstreams && upstreamTable(upstreams)}
      </div>
      <div class="halves">
        ${types && typeTable(types.items)}
        ${resources && machine(resources)}
      </div>`;
  },

  commands(view) {
    if (!seesAll() || !may("operate")) return [];
    return [
      view.data.stats?.paused.all
        ? { label: text("overview.resume.all"), run: () => resumeAll(view) }
        : { label: text("overview.pause.all"), run: () => pauseAll(view) },
    ];
  },
};

async function pauseAll(view) {
  await call("pauseQueue", { scope: "all" });
  say(text("overview.did.pause"), { undo: () => resumeAll(view) });
  view.refresh();
}

async function resumeAll(view) {
  await call("resumeQueue", { scope: "all" });
  view.refresh();
}

// -------------------------------------------------------------------- numbers

/** The states of all lanes together: the counts of the queue page put two of them into one. */
function totals({ lanes }) {
  const found = { running: 0, queued: 0, pending: 0, paused: 0, failed: 0, completed: 0 };
  for (const states of Object.values(lanes)) {
    for (const [state, many] of Object.entries(states)) found[state] = (found[state] ?? 0) + many;
  }
  return found;
}

function figures(stats) {
  const found = totals(stats);
  return html`<div class="figures">${["running", "queued", "pending", "paused", "failed", "completed"].map((state) =>
    figure({
      label: text(`state.${state}`), value: count(found[state]), kind: found[state] ? state : "none",
      href: link("requests", { q: `status:${state}` }),
    }))}</div>`;
}

function firstSteps() {
  return empty({
    icon: "bolt", title: text("overview.first"), about: text("overview.first.about"),
    code: "headway jobs add fetch --upstream api.example.com\nheadway demo",
  });
}

function historySection(view, history) {
  const span = view.route.params.span ?? "live";
  return html`<section aria-label=${text("overview.history")}>
    <div class="row between"><h2>${text("overview.history")}</h2>
      <div class="segments" role="group" aria-label=${text("overview.span")}>${SPANS.map((one) => html`<button type="button" aria-pressed=${String(one === span)} @click=${() => adjust({ span: one === "live" ? null : one })}>${text(`overview.span.${one}`)}</button>`)}</div></div>
    ${view.errors.history && problemNotice(view.errors.history, view.refresh)}
    ${history && chartCards(history)}
  </section>`;
}

// -------------------------------------------------------------------- lanes, upstreams, types

function laneTable(lanes, view) {
  const shown = lanes.filter(({ counts, limit }) => limit !== null || Object.keys(counts ?? {}).length > 0);
  return html`<section><h2>${text("overview.lanes")}</h2>
    <div class="table-frame"><table>
      <thead><tr><th scope="col">${text("overview.lane")}</th><th scope="col">${text("state.running")}</th><th scope="col" class="number">${text("state.queued")}</th>
        <th scope="col" class="number">${text("state.failed")}</th><th scope="col"><span class="visually-hidden">${text("overview.actions")}</span></th></tr></thead>
      <tbody>${each(shown, ({ name }) => name, (lane) => laneRow(lane, view))}</tbody></table></div>
  </section>`;
}

function laneRow(lane, view) {
  const { name, running, limit, counts, paused } = lane;
  return html`<tr>
    <th scope="row"><a href=${link("requests", { q: sought({ lane: name, status: "open" }) })}>${name}</a>${paused && html` <span class="badge paused">${text("state.paused")}</span>`}</th>
    <td><span class="use"><span class="numbers">${count(running)}${limit === null ? null : ` / ${count(limit)}`}</span>${limit !== null && bar(limit ? running / limit : 1, text("overview.use", { name }))}</span></td>
    <td class="number">${count(counts?.queued ?? 0)}</td>
    <td class="number ${counts?.failed ? "failing" : "muted"}">${count(counts?.failed ?? 0)}</td>
    <td class="tight">${paused
      ? button({ label: text("overview.resume", { name }), icon: "play", bare: true, run: () => resumeLane(name, view) })
      : button({ label: text("overview.pause", { name }), icon: "pause", bare: true, run: () => pauseLane(name, view) })}</td>
  </tr>`;
}

async function pauseLane(name, view) {
  await call("pauseLanes", { name });
  say(text("overview.did.pause.lane", { name }), { undo: () => resumeLane(name, view) });
  view.refresh();
}

async function resumeLane(name, view) {
  await call("resumeLanes", { name });
  view.refresh();
}

function upstreamTable({ items, total }) {
  return html`<section><h2>${text("overview.upstreams")}</h2>
    ${items.length === 0
      ? html`<p class="muted">${text("overview.upstreams.none")}</p>`
      : html`<div class="table-frame"><table>
        <thead><tr><th scope="col">${text("overview.upstream")}</th><th scope="col">${text("state.running")}</th><th scope="col" class="number">${text("state.waiting")}</th><th scope="col">${text("overview.state")}</th></tr></thead>
        <tbody>${each(items, ({ name }) => name, upstreamRow)}</tbody></table></div>
      ${total > items.length && html`<p><a href=${link("upstreams")}>${text("overview.upstreams.all", { n: total })}</a></p>`}`}
  </section>`;
}

function upstreamRow(gate) {
  const until = gate.closed_until ?? gate.opens_at;
  const closed = gate.closed_until !== null || gate.reason === "closed";
  return html`<tr><th scope="row"><a href=${link("upstreams", gate.name)}>${gate.name}</a></th>
    <td><span class="use"><span class="numbers">${count(gate.running)}${gate.limit === null ? null : ` / ${count(gate.limit)}`}</span>${gate.limit !== null && bar(gate.limit ? gate.running / gate.limit : 1, text("overview.use", { name: gate.name }))}</span></td>
    <td class="number">${count(gate.waiting)}</td>
    <td class="tight">${gate.paused
      ? html`<span class="badge paused">${text("state.paused")}</span>`
      : closed ? html`<span class="badge closed">${text("state.closed")}${until && html` <hw-countdown at=${until}></hw-countdown>`}</span>`
      : html`<span class="badge open">${text("state.open")}</span>`}</td></tr>`;
}

function typeTable(types) {
  return html`<section><h2>${text("overview.types")}</h2>
    ${types.length === 0
      ? html`<p class="muted">${text("overview.types.none")}</p>`
      : html`<div class="table-frame"><table>
        <thead><tr><th scope="col">${text("overview.type")}</th><th scope="col" class="number">${text("overview.ended")}</th><th scope="col" class="number">${text("overview.success")}</th>
          <th scope="col" class="number">${text("overview.run")}</th><th scope="col" class="number">${text("overview.wait")}</th></tr></thead>
        <tbody>${each(types, ({ type }) => type, (row) => html`<tr><th scope="row"><a href=${link("requests", { q: sought({ type: row.type }) })}>${row.type}</a></th>
          <td class="number">${count(row.count)}</td><td class="number ${row.failed ? "failing" : ""}">${percent(row.success_rate, 1)}</td>
          <td class="number">${duration(row.mean_run_s)}</td><td class="number">${duration(row.mean_wait_s)}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}

function machine({ cpu_percent: cpu, memory, disk }) {
  const line = (name, share, words) => html`<dt>${text(`overview.${name}`)}</dt><dd><span class="use"><span class="numbers">${words}</span>${bar(share, text(`overview.${name}`), share > 0.9 ? "bad" : "blue")}</span></dd>`;
  return html`<section><h2>${text("overview.machine")}</h2><div class="card card-body"><dl class="pairs machine">
    ${line("cpu", cpu / 100, percent(cpu / 100))}
    ${line("memory", memory.percent / 100, text("overview.of", { used: bytes(memory.process_rss_bytes), total: bytes(memory.total_bytes) }))}
    ${line("disk", disk.total_bytes ? 1 - disk.free_bytes / disk.total_bytes : 0, text("overview.free", { free: bytes(disk.free_bytes) }))}
  </dl></div></section>`;
}
