// What was spent: by day, by channel, model, tenant and kind, and each call; and what may be.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { addressOfCall, call } from "../../api.js";
import { serverNow } from "../../clock.js";
import { legend } from "../../chart.js";
import { count, money } from "../../format.js";
import { icon } from "../../icons.js";
import { bar, button, empty, figure, pager, problemNotice, when } from "../../parts.js";
import { adjust, link } from "../../route.js";
import { budgetSection } from "./budgets.js";
import { daysAgo } from "./list.js";

const SPANS = { "7d": 7, "30d": 30, "90d": 90, all: null };
const USUAL_SPAN = "30d";
const GROUPS = ["channel", "model", "tenant", "kind"];
const KINDS = [["online", "blue"], ["queued", "warn"], ["batch", "accent"]];
const SIZE = 25;
const ROWS = 50;
const DAY_S = 86_400;
const FEWEST_DAYS = 7;
const MOST_DAYS = 366;
const MOST_CURRENCIES = 3;
const drawn = new WeakMap(); // an answer is turned into charts once

export function askCosts(params) {
  const wanted = wantedOf(params);
  return {
    days: () => call("getCosts", { ...wanted, group: "day,kind" }),
    groups: () => call("getCosts", { ...wanted, group: groupOf(params) }),
    bills: () => call("listBills", { ...wanted, page: Number(params.page) || 1, size: SIZE }),
    budgets: () => call("listBudgets"),
  };
}

function spanOf({ span }) {
  return span in SPANS ? span : USUAL_SPAN;
}

function groupOf({ by }) {
  return GROUPS.includes(by) ? by : GROUPS[0];
}

function wantedOf(params) {
  const days = SPANS[spanOf(params)];
  const { channel, model, tenant } = params;
  return { from: days ? daysAgo(days - 1) : undefined, channel, model, tenant };
}

export function costs(view) {
  const { days, groups, bills, budgets } = view.data;
  const { params } = view.route;
  if (!days) return problemNotice(view.errors.days ?? { status: 0, message: "" }, view.refresh);
  const filtered = ["channel", "model", "tenant"].filter((name) => params[name]);
  if (days.totals.length === 0 && filtered.length === 0 && spanOf(params) === "all") {
    return html`${choices(params, filtered)}${empty({ icon: "scroll", title: text("channels.costs.none"), about: text("channels.costs.none.about") })}${budgets && budgetSection(budgets.items, view)}`;
  }
  return html`${choices(params, filtered)}
    ${figures(days.totals)}
    ${dayCharts(days, SPANS[spanOf(params)])}
    <div class="channel-halves">${groups && groupSection(groups, params)}${budgets && budgetSection(budgets.items, view)}</div>
    ${bills && billSection(bills, params)}`;
}

function choices(params, filtered) {
  const here = spanOf(params);
  return html`<div class="row">
    <div class="segments" role="group" aria-label=${text("upstreams.span")}>${Object.keys(SPANS).map((span) => html`<button type="button" aria-pressed=${String(span === here)} @click=${() => adjust({ span: span === USUAL_SPAN ? null : span, page: null })}>${text(`channels.span.${span}`)}</button>`)}</div>
    ${filtered.map((name) => button({ label: `${text(`channels.by.${name}`)}: ${params[name]}`, icon: "close", needs: null, pressed: true, title: text("channels.unfilter"), run: () => adjust({ [name]: null, page: null }) }))}
    <a class="push channel-save" download href=${addressOfCall("exportBills", wantedOf(params))}>${icon("download")}${text("channels.csv")}</a>
  </div>`;
}

function figures(totals) {
  const sum = (name) => totals.reduce((all, row) => all + row[name], 0);
  const estimated = sum("estimated");
  return html`<div class="figures">
    ${totals.length === 0 && figure({ label: text("channels.spent"), value: "–", kind: "none" })}
    ${totals.map(({ cost, currency }) => figure({ label: text("channels.spent.in", { currency }), value: html`<span title=${`${cost} ${currency}`}>${money(Number(cost), currency)}</span>` }))}
    ${figure({ label: text("channels.calls"), value: count(sum("calls")), about: estimated > 0 ? text("channels.estimated", { n: estimated }) : null })}
    ${figure({ label: text("channels.tokens.in"), value: count(sum("input_tokens")) })}
    ${figure({ label: text("channels.tokens.out"), value: count(sum("output_tokens")) })}
  </div>`;
}

// -------------------------------------------------------------------- by day

function dayCharts(days, span) {
  if (days.items.length === 0) return html`<p class="muted" role="status">${text("channels.costs.nospan")}</p>`;
  if (!drawn.has(days)) drawn.set(days, days.totals.slice(0, MOST_CURRENCIES).map(({ currency }) => dayChart(days.items, currency, span)));
  return html`<section><h2>${text("channels.bydays")}</h2>
    ${drawn.get(days).map((chart) => html`<div class="card card-body channel-chart">${legend(chart.series)}<hw-chart .chart=${chart}></hw-chart></div>`)}</section>`;
}

function dayChart(items, currency, span) {
  const rows = items.filter((row) => row.currency === currency);
  const today = Math.floor(serverNow() / 1000 / DAY_S);
  const dayNumber = ({ day }) => Date.parse(`${day}T00:00:00Z`) / 1000 / DAY_S;
  const earliest = Math.min(today - FEWEST_DAYS + 1, ...rows.map(dayNumber));
  const first = span ? today - span + 1 : Math.max(earliest, today - MOST_DAYS + 1);
  const series = KINDS.map(([kind, colour]) => {
    const values = Array.from({ length: today - first + 1 }, () => 0);
    for (const row of rows) {
      if (row.kind === kind && dayNumber(row) >= first) values[dayNumber(row) - first] += Number(row.cost);
    }
    return { label: text(`channels.kind.${kind}`), kind: colour, draw: "bars", values };
  });
  return {
    start: first * DAY_S, step: DAY_S, series: series.filter(({ values }) => values.some((value) => value > 0)),
    label: text("channels.chart.days", { currency }), format: (value) => money(value, currency),
  };
}

// -------------------------------------------------------------------- by group

function groupSection({ items, more }, params) {
  const by = groupOf(params);
  const sorted = items.toSorted((one, other) => one.currency.localeCompare(other.currency) || Number(other.cost) - Number(one.cost));
  const most = {};
  for (const { currency, cost } of items) most[currency] = Math.max(most[currency] ?? 0, Number(cost));
  return html`<section><div class="row between"><h2>${text("channels.bygroup")}</h2>
      <div class="segments" role="group" aria-label=${text("channels.bygroup")}>${GROUPS.map((group) => html`<button type="button" aria-pressed=${String(group === by)} @click=${() => adjust({ by: group === GROUPS[0] ? null : group })}>${text(`channels.by.${group}`)}</button>`)}</div></div>
    ${items.length === 0
      ? html`<p class="muted">${text("channels.costs.nospan")}</p>`
      : html`<div class="table-frame"><table>
        <thead><tr><th scope="col">${text(`channels.by.${by}`)}</th><th scope="col" class="number">${text("channels.calls")}</th><th scope="col" class="number">${text("channels.tokens")}</th><th scope="col">${text("channels.spent")}</th></tr></thead>
        <tbody>${each(sorted.slice(0, ROWS), (row) => `${row[by]} ${row.currency}`, (row) => groupRow(row, by, most[row.currency]))}</tbody></table></div>`}
    ${(more || items.length > ROWS) && html`<p class="muted">${text("channels.more")}</p>`}
  </section>`;
}

function groupRow(row, by, most) {
  const share = most > 0 ? Number(row.cost) / most : 0;
  return html`<tr data-row><th scope="row">${named(row, by)}</th>
    <td class="number">${count(row.calls)}</td><td class="number">${count(row.input_tokens + row.output_tokens)}</td>
    <td><span class="channel-use"><span class="numbers" title=${`${row.cost} ${row.currency}`}>${money(Number(row.cost), row.currency)}</span>${bar(share, text("channels.share.of", { name: row[by] }))}</span></td></tr>`;
}

function named(row, by) {
  if (by === "kind") return text(`channels.kind.${row.kind}`);
  if (row[by] === "") return text("upstreams.nobody");
  return html`<button type="button" class="link" title=${text("channels.only", { name: row[by] })} @click=${() => adjust({ [by]: row[by], page: null })}>${row[by]}</button>`;
}

// -------------------------------------------------------------------- each call

function billSection(bills, params) {
  return html`<section><h2>${text("channels.bills")}</h2>
    ${bills.total === 0 ? html`<p class="muted">${text("channels.costs.nospan")}</p>` : html`<div class="table-frame"><table class="bill-table">
      <thead><tr><th scope="col">${text("channels.when")}</th><th scope="col">${text("channels.by.tenant")}</th><th scope="col">${text("channels.by.channel")}</th><th scope="col">${text("channels.by.kind")}</th>
        <th scope="col" class="number">${text("channels.tokens.in")}</th><th scope="col" class="number">${text("channels.tokens.out")}</th><th scope="col" class="number">${text("channels.cost")}</th></tr></thead>
      <tbody>${each(bills.items, ({ id }) => id, billRow)}</tbody></table></div>`}
    ${pager({ page: Number(params.page) || 1, size: bills.size ?? SIZE, total: bills.total })}
  </section>`;
}

function billRow(bill) {
  const { at, tenant, channel, kind, job, batch, input_tokens: input, output_tokens: output, estimated, cost, currency } = bill;
  const place = batch ? link("channels", "batches", batch) : job ? link("requests", job) : null;
  const what = text(`channels.kind.${kind}`);
  const sign = estimated ? html`<span class="muted" title=${text("channels.estimated.one")}>≈ </span>` : null;
  return html`<tr data-row><td class="tight">${when(at)}</td><td>${tenant || html`<span class="muted">${text("upstreams.nobody")}</span>`}</td>
    <td><a href=${link("channels", "channel", channel)}>${channel}</a></td><td>${place ? html`<a href=${place}>${what}</a>` : what}</td>
    <td class="number">${sign}${count(input)}</td><td class="number">${sign}${count(output)}</td><td class="number" title=${`${cost} ${currency}`}>${money(Number(cost), currency)}</td></tr>`;
}
