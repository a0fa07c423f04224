// One upstream in full: its lane, its history, who shares it, what was learned, what is set.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { resetCaps } from "../../caps.js";
import { count, duration, percent } from "../../format.js";
import { bar, button, countdown, problemNotice, when } from "../../parts.js";
import { adjust, link, sought } from "../../route.js";
import { detailButtons, forget, pin } from "./actions.js";
import { chartWithLegend, charts } from "./charts.js";
import { cells, holdsBack, numbers, stateBadge, stateOf, whereIs } from "./lane.js";

const SPANS = ["live", "1h", "24h"];
const MOST_HOLDERS = 50;

export function detail(view) {
  const { gate, history } = view.data;
  if (!gate) return view.errors.gate ? problemNotice(view.errors.gate, view.refresh) : null;
  const learner = gate.limits.find((limit) => limit.believed);
  return html`<div class="lane card ${stateOf(gate)} whole">
      <div class="lane-head">${stateBadge(gate)}<span class="lane-numbers numbers">${numbers(gate)}</span>
        <span class="push row">${detailButtons(gate, view)}</span></div>
      <div class="lane-gates">${cells(gate)}${holdsBack(gate)}</div>
    </div>
    ${historySection(view, history)}
    <div class="halves">
      ${tenants(gate)}
      ${learner ? learnedSection(gate, learner, view) : notLearning()}
    </div>
    <div class="halves">${holders(gate)}${settings(gate, view)}</div>`;
}

function historySection(view, history) {
  const span = view.route.params.span ?? "live";
  const drawn = history && charts(history);
  return html`<section aria-label=${text("upstreams.history")}>
    <div class="row between"><h2>${text("upstreams.history")}</h2>
      <div class="segments" role="group" aria-label=${text("upstreams.span")}>${SPANS.map((name) => html`<button type="button" aria-pressed=${String(name === span)} @click=${() => adjust({ span: name === "live" ? null : name })}>${text(`upstreams.span.${name}`)}</button>`)}</div></div>
    ${view.errors.history && problemNotice(view.errors.history, view.refresh)}
    ${drawn && html`<div class="card card-body big-chart"><h3>${drawn.traffic.label}</h3>${chartWithLegend(drawn.traffic)}</div>
      <div class="halves">
        <div class="card card-body"><h3>${drawn.waiting.label}</h3>${chartWithLegend(drawn.waiting)}</div>
        <div class="card card-body"><h3>${drawn.waits.label}</h3>${chartWithLegend(drawn.waits)}</div>
      </div>`}
  </section>`;
}

function tenants(gate) {
  return html`<section><h2>${text("upstreams.tenants")}</h2>
    ${gate.tenants.length === 0
      ? html`<p class="muted">${text("upstreams.tenants.none")}</p>`
      : html`<div class="table-frame"><table>
        <thead><tr><th scope="col">${text("upstreams.tenant")}</th><th scope="col">${text("upstreams.share")}</th><th scope="col" class="number">${text("upstreams.running")}</th>
          <th scope="col" class="number">${text("upstreams.waiting")}</th><th scope="col">${text("upstreams.waits.since")}</th></tr></thead>
        <tbody>${each(byShare(gate.tenants), ({ tenant }) => tenant, tenantRow)}</tbody></table></div>`}
  </section>`;
}

/** Rows that change their places with every look cannot be read: small differences do not count. */
function byShare(sharing) {
  const rough = ({ share }) => Math.round(share * 10);
  return sharing.toSorted((one, other) => rough(other) - rough(one) || one.tenant.localeCompare(other.tenant));
}

function tenantRow(row) {
  return html`<tr>
    <th scope="row">${row.tenant || text("upstreams.nobody")}${row.weight !== 1 && html` <span class="muted">×${count(row.weight)}</span>`}</th>
    <td class="share-cell"><span class="numbers">${percent(row.share)}</span>${bar(row.share, text("upstreams.share.of", { tenant: row.tenant }), "blue")}</td>
    <td class="number">${count(row.running)}</td><td class="number">${count(row.waiting)}</td>
    <td class="tight">${row.closed_until ? html`${text("upstreams.opens")} ${countdown(row.closed_until)}` : when(row.waiting_since)}</td>
  </tr>`;
}

function learnedSection(gate, limit, view) {
  const units = ["rpm", "concurrency", "tpm"].filter((unit) => limit.believed[unit] !== null || limit.pins[unit] !== null);
  return html`<section><div class="row between"><h2>${text("upstreams.learned.title")}</h2>
      <span class="row">${button({ label: text("upstreams.pin"), icon: "pin", run: () => pin(gate, limit, view) })}
      ${button({ label: text("upstreams.forget"), icon: "retry", run: () => forget(gate, view) })}</span></div>
    <div class="card card-body"><dl class="pairs">
      ${units.map((unit) => html`<dt>${text(`upstreams.unit.${unit}`)}</dt><dd class="numbers"><b>${count(limit.believed[unit] === null ? null : Math.round(limit.believed[unit]))}</b>
        ${limit.pins[unit] !== null && html` <span class="badge warn">${text("upstreams.pinned", { n: limit.pins[unit] })}</span>`}</dd>`)}
      <dt>${text("upstreams.known.by")}</dt><dd>${text(`upstreams.source.${limit.source}`)}</dd>
      <dt>${text("upstreams.phase")}</dt><dd>${text(`upstreams.phase.${limit.phase}`)}${limit.holding_why && html` (${text(`upstreams.holding.${limit.holding_why}`)})`}</dd>
      <dt>${text("upstreams.traffic.online")}</dt><dd class="numbers">${text("upstreams.traffic", { rpm: count(limit.online.rpm), n: limit.online.concurrent })}</dd>
      <dt>${text("upstreams.traffic.queued")}</dt><dd class="numbers">${text("upstreams.traffic", { rpm: count(limit.queued.rpm), n: limit.queued.concurrent })}</dd>
      <dt>${text("upstreams.kept")}</dt><dd class="numbers">${percent(limit.threshold)}</dd>
    </dl></div>
    ${limit.history.length > 0 && refusals(limit.history)}
  </section>`;
}

function refusals(history) {
  const last = history.slice(-6).toReversed();
  return html`<div class="table-frame"><table><caption class="visually-hidden">${text("upstreams.refusals")}</caption>
    <thead><tr><th scope="col">${text("upstreams.refused.at")}</th><th scope="col" class="number">${text("upstreams.refused.rpm")}</th><th scope="col" class="number">${text("upstreams.refused.took")}</th></tr></thead>
    <tbody>${each(last, ({ at }) => at, ({ at, rpm, response_ms: took }) => html`<tr><td>${when(at)}</td><td class="number">${count(rpm)}</td><td class="number">${duration(took / 1000)}</td></tr>`)}</tbody></table></div>`;
}

function notLearning() {
  return html`<section><h2>${text("upstreams.learned.title")}</h2><p class="muted">${text("upstreams.notlearning")}</p></section>`;
}

function holders(gate) {
  const shown = gate.holders.slice(0, MOST_HOLDERS);
  return html`<section><h2>${text("upstreams.holders")}</h2>
    ${shown.length === 0
      ? html`<p class="muted">${text("upstreams.holders.none")}</p>`
      : html`<div class="table-frame"><table>
        <thead><tr><th scope="col">${text("upstreams.holder")}</th><th scope="col">${text("upstreams.tenant")}</th><th scope="col">${text("upstreams.class")}</th><th scope="col" class="number">${text("upstreams.held")}</th></tr></thead>
        <tbody>${each(shown, ({ fence }) => fence, (holder) => html`<tr>
          <td><a href=${whereIs(holder)}>${holder.kind === "job" ? `#${holder.id}` : holder.id}</a> <span class="muted">${holder.type}</span></td>
          <td>${holder.tenant || text("upstreams.nobody")}</td><td><i class="cell-key ${holder.traffic}"></i>${text(`upstreams.cell.${holder.traffic}`)}</td>
          <td class="number"><hw-elapsed at=${holder.granted_at}></hw-elapsed></td></tr>`)}</tbody></table></div>`}
    <p><a href=${link("requests", { q: sought({ upstream: gate.name, status: "open" }) })}>${text("upstreams.requests")}</a></p>
  </section>`;
}

function settings(gate, view) {
  const value = Object.entries(gate.settings?.value ?? {}).filter(([, set]) => set !== null);
  const from = gate.settings?.from ?? {};
  return html`<section><div class="row between"><h2>${text("upstreams.settings")}</h2>
      ${gate.settings?.overridden && button({ label: text("caps.reset"), icon: "retry", run: () => resetCaps("Upstreams", gate, view) })}</div>
    ${value.length === 0
      ? html`<p class="muted">${text("upstreams.settings.none")}</p>`
      : html`<div class="table-frame"><table><thead><tr><th scope="col">${text("upstreams.setting")}</th><th scope="col">${text("upstreams.value")}</th><th scope="col">${text("upstreams.from")}</th></tr></thead>
        <tbody>${value.map(([name, set]) => html`<tr><th scope="row"><code>${name}</code></th><td><code class="wraps">${typeof set === "object" ? JSON.stringify(set) : String(set)}</code></td>
          <td>${from[name] === "operator" ? html`<span class="badge warn">${text("upstreams.from.operator")}</span>` : text(`upstreams.from.${from[name]}`)}</td></tr>`)}</tbody></table></div>`}
    ${gate.settings && gate.settings.declared_as !== gate.name && html`<p class="muted">${text("upstreams.declared", { pattern: gate.settings.declared_as })}</p>`}
  </section>`;
}
