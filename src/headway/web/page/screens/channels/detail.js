// One channel in full: capacity, traffic against the learned limit, who uses it, prices, settings.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { count, duration, money, percent } from "../../format.js";
import { icon } from "../../icons.js";
import { bar, button, countdown, problemNotice, when } from "../../parts.js";
import { adjust, link } from "../../route.js";
import { idleLine, keyState, limitWords, shares, stateBadge, stateOf } from "./capacity.js";
import { change, remove, replaceKey, switchIt } from "./forms.js";
import { daysAgo, declared, keyToShares, lately, switchButton } from "./list.js";
import { forget, pin } from "../upstreams/actions.js";
import { chartWithLegend, charts } from "../upstreams/charts.js";

const SPANS = ["live", "1h", "24h"];
const UNITS = ["rpm", "concurrency", "tpm"];
const REFUSALS = 6;
const TENANTS = 20;

export function detail(view) {
  const { channel, capacity, history, learned } = view.data;
  if (!channel) return problemNotice(view.errors.channel ?? { status: 403, message: text("channels.tenant") }, view.refresh);
  return html`${head(channel, capacity, view)}
    ${capacity && html`<div class="card channel-whole ${stateOf(channel, capacity)}">
      <div class="row between"><span class="channel-limit">${limitWords(capacity)}</span>${keyToShares(capacity.threshold > 0)}</div>
      ${shares(capacity)}
      ${idleLine(channel, capacity)}
      ${numbers(capacity, view.data.spent, channel)}
    </div>`}
    ${historySection(view, history)}
    <div class="channel-halves">
      ${capacity && learnedSection(channel, capacity, learned, view)}
      ${capacity && tenantSection(capacity)}
    </div>
    <div class="channel-halves">${priceSection(channel)}${settingsSection(channel, capacity)}</div>`;
}

export function commandsForChannel(channel, view) {
  if (channel.source === "file") return [];
  const { code } = channel;
  const waiting = () => view.data.capacity?.waiting ?? 0;
  return [
    { label: text("channels.change", { code }), run: () => change(channel, view) },
    { label: text(channel.enabled ? "channels.disable.named" : "channels.enable.named", { code }), run: () => switchIt(channel, view) },
    { label: text("channels.key.replace.title", { code }), run: () => replaceKey(channel, view) },
    { label: text("channels.remove.named", { code }), run: () => remove(channel, waiting(), view) },
  ];
}

function head(channel, capacity, view) {
  const unless = declared(channel);
  const { code, has_key: has } = channel;
  return html`<div class="row channel-top">
      ${stateBadge(channel, capacity)} <code>${channel.model}</code> ${keyState(channel, capacity)}
      <span class="push row">
        ${switchButton(channel, view, false)}
        ${button({ label: text("channels.change.short"), icon: "edit", unless, run: () => change(channel, view) })}
        ${button({ label: text(has ? "channels.key.replace" : "channels.key.set"), icon: "key", unless, run: () => replaceKey(channel, view) })}
        ${button({ label: text("channels.remove"), icon: "trash", kind: "quiet danger", unless, run: () => remove(channel, capacity?.waiting ?? 0, view) })}
      </span>
    </div>
    ${channel.trouble && html`<div class="notice bad" role="alert">${channel.trouble}</div>`}
    <nav class="row channel-links" aria-label=${text("channels.elsewhere")}>
      <a href=${link("channels")}>${icon("left")}${text("channels.all")}</a>
      <a href=${link("upstreams", code)}>${icon("lanes")}${text("channels.upstream")}</a>
      <a href=${link("requests", { q: `upstream:${code} status:open` })}>${icon("list")}${text("upstreams.requests")}</a>
      <a href=${link("channels", "costs", { channel: code })}>${icon("scroll")}${text("channels.costs.of")}</a>
    </nav>`;
}

function numbers(capacity, spent, { code }) {
  const today = (spent?.items ?? []).filter(({ day }) => day === daysAgo(0));
  const sum = (rows) => (rows.length === 0 ? "–" : rows.map(({ cost, currency }) => money(Number(cost), currency)).join(" + "));
  const fact = (key, value, kind = "") => html`<div><dt>${text(`channels.${key}`)}</dt><dd class=${kind}>${value}</dd></div>`;
  const refused = lately(capacity);
  return html`<dl class="channel-facts wide" aria-label=${code}>
    ${fact("online.now", count(capacity.online.concurrent))}
    ${fact("queued.now", count(capacity.queued.concurrent))}
    ${fact("waiting", count(capacity.waiting))}
    ${fact("refused", count(refused), refused > 0 ? "some" : "")}
    ${fact("today", sum(today))}
    ${fact("week", sum(spent?.totals ?? []))}
  </dl>`;
}

function historySection(view, history) {
  const span = view.route.params.span ?? "1h";
  const traffic = history && charts(history).traffic;
  return html`<section aria-label=${text("channels.history")}>
    <div class="row between"><h2>${text("channels.history")}</h2>
      <div class="segments" role="group" aria-label=${text("upstreams.span")}>${SPANS.map((one) => html`<button type="button" aria-pressed=${String(one === span)} @click=${() => adjust({ span: one === "1h" ? null : one })}>${text(`upstreams.span.${one}`)}</button>`)}</div></div>
    ${view.errors.history && problemNotice(view.errors.history, view.refresh)}
    <div class="card card-body channel-chart">${traffic && chartWithLegend(traffic)}</div>
  </section>`;
}

// -------------------------------------------------------------------- what was learned

function learnedSection({ code }, capacity, learned, view) {
  const { believed, phase, source, samples, opens_at: opens, threshold } = capacity;
  const pins = learned?.pins ?? {};
  const shown = UNITS.filter((unit) => believed[unit] !== null || (pins[unit] ?? null) !== null);
  const unless = learned ? null : text("channels.learned.unknown");
  return html`<section><div class="row between"><h2>${text("upstreams.learned.title")}</h2>
      <span class="row">${button({ label: text("upstreams.pin"), icon: "pin", unless, run: () => pin({ name: code }, learned, view) })}
      ${button({ label: text("upstreams.forget"), icon: "retry", unless, run: () => forget({ name: code }, view) })}</span></div>
    <div class="card card-body"><dl class="pairs">
      ${shown.length === 0 && html`<dt>${text("channels.believed")}</dt><dd class="muted">${text("upstreams.source.open")}</dd>`}
      ${shown.map((unit) => html`<dt>${text(`upstreams.unit.${unit}`)}</dt><dd class="numbers"><b>${count(believed[unit] === null ? null : Math.round(believed[unit]))}</b>
        ${(pins[unit] ?? null) !== null && html` <span class="badge warn">${text("upstreams.pinned", { n: pins[unit] })}</span>`}</dd>`)}
      <dt>${text("upstreams.known.by")}</dt><dd>${text(`upstreams.source.${source}`)}</dd>
      <dt>${text("upstreams.phase")}</dt><dd>${text(`upstreams.phase.${phase}`)}${learned?.holding_why && html` (${text(`upstreams.holding.${learned.holding_why}`)})`}</dd>
      <dt>${text("channels.next")}</dt><dd>${opens ? countdown(opens) : text("time.now")}</dd>
      <dt>${text("channels.threshold")}</dt><dd class="numbers">${threshold > 0 ? percent(threshold) : text("channels.threshold.none")}</dd>
    </dl></div>
    ${samples.length > 0 && refusals(samples)}
  </section>`;
}

function refusals(samples) {
  const last = samples.slice(-REFUSALS).toReversed();
  return html`<div class="table-frame"><table><caption class="visually-hidden">${text("upstreams.refusals")}</caption>
    <thead><tr><th scope="col">${text("upstreams.refused.at")}</th><th scope="col" class="number">${text("upstreams.refused.rpm")}</th><th scope="col" class="number">${text("upstreams.refused.took")}</th></tr></thead>
    <tbody>${each(last, ({ ts }) => ts, ({ ts, rpm, avg_ms: took }) => html`<tr><td>${when(ts)}</td><td class="number">${count(rpm)}</td><td class="number">${duration(took / 1000)}</td></tr>`)}</tbody></table></div>`;
}

function tenantSection({ tenants }) {
  return html`<section><h2>${text("channels.tenants")}</h2>
    ${tenants.length === 0
      ? html`<p class="muted">${text("upstreams.tenants.none")}</p>`
      : html`<div class="table-frame"><table>
        <thead><tr><th scope="col">${text("upstreams.tenant")}</th><th scope="col" class="number">${text("channels.calls.now")}</th><th scope="col" class="number">${text("channels.waiting")}</th><th scope="col">${text("channels.held")}</th></tr></thead>
        <tbody>${each(tenants.slice(0, TENANTS), ({ tenant }) => tenant, (row) => html`<tr>
          <th scope="row">${row.tenant || text("upstreams.nobody")}</th><td class="number">${count(row.concurrent)}</td><td class="number">${count(row.waiting)}</td>
          <td>${row.closed_until ? html`<span class="badge closed">${countdown(row.closed_until)}</span> ${row.closed_why}` : html`<span class="muted">–</span>`}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}

// -------------------------------------------------------------------- prices, settings

function priceSection({ price, batch_discount: discount }) {
  const { input_per_1k: input, output_per_1k: output, currency } = price;
  const row = (key, cost) => html`<tr><th scope="row">${text(`channels.price.${key}`)}</th><td class="number">${money(cost, currency)}</td><td class="number">${money(cost * (1 - discount), currency)}</td></tr>`;
  return html`<section><h2>${text("channels.prices")}</h2>
    ${input === 0 && output === 0
      ? html`<p class="muted">${text("channels.prices.none")}</p>`
      : html`<div class="table-frame"><table>
        <thead><tr><th scope="col">${text("channels.price.per")}</th><th scope="col" class="number">${text("channels.kind.online")}</th><th scope="col" class="number">${text("channels.price.queued")}${discount > 0 && ` (−${percent(discount)})`}</th></tr></thead>
        <tbody>${row("input", input)}${row("output", output)}</tbody></table></div>`}
  </section>`;
}

function settingsSection(channel, capacity) {
  const pair = (label, value) => html`<dt>${label}</dt><dd>${value ?? html`<span class="muted">${text("channels.unset")}</span>`}</dd>`;
  const most = channel.max_concurrency;
  const inUse = capacity ? capacity.online.concurrent + capacity.queued.concurrent : 0;
  return html`<section><h2>${text("upstreams.settings")}</h2><div class="card card-body"><dl class="pairs">
    ${pair(text("channels.form.url"), html`<code>${channel.base_url}</code>`)}
    ${pair(text("channels.form.called"), channel.upstream_model && html`<code>${channel.upstream_model}</code>`)}
    ${pair(text("channels.form.mode"), text(`channels.mode.${channel.queue_mode}`))}
    ${pair(text("channels.form.rpm"), channel.rpm && count(channel.rpm))}
    ${pair(text("channels.form.tpm"), channel.tpm && count(channel.tpm))}
    ${pair(text("channels.form.max_concurrency"), most && html`<span class="numbers">${count(inUse)} / ${count(most)}</span> ${bar(inUse / most, text("channels.form.max_concurrency"))}`)}
    ${pair(text("channels.form.max_concurrency_per_tenant"), channel.max_concurrency_per_tenant && count(channel.max_concurrency_per_tenant))}
    ${pair(text("channels.timeout"), duration(channel.timeout_s))}
    ${pair(text("channels.source"), text(`channels.source.${channel.source}`))}
    ${pair(text("channels.updated"), when(channel.updated_at))}
  </dl></div></section>`;
}
