// How it went, as charts: what was done and what failed, how long it waited, how much stood in line.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { legend } from "../../chart.js";
import { count, duration } from "../../format.js";

const drawn = new WeakMap(); // an answer is turned into charts once, or they would be drawn again and again

export function chartCards(history) {
  if (!drawn.has(history)) drawn.set(history, [throughput(history), waits(history), line(history)]);
  const [first, ...others] = drawn.get(history);
  return html`<div class="charts">${card(first)}${others.map(card)}</div>`;
}

function card(chart) {
  return html`<div class="card card-body"><div class="row between"><h3>${chart.label}</h3>${legend(chart.series)}</div><hw-chart .chart=${chart}></hw-chart></div>`;
}

function perMinute(values, step) {
  return (values ?? []).map((value) => (value === null ? null : (value * 60) / step));
}

function throughput({ start, step_s: step, series }) {
  return {
    start, step, label: text("overview.throughput"),
    format: (value) => text("overview.perminute", { v: count(Math.round(value * 10) / 10) }),
    series: [
      { label: text("state.completed"), kind: "accent", draw: "bars", values: perMinute(series.completed, step) },
      { label: text("overview.failed"), kind: "bad", draw: "bars", values: perMinute(series.failed, step) },
      { label: text("overview.pushbacks"), kind: "warn", draw: "bars", values: perMinute(series.pushbacks, step) },
      { label: text("overview.submitted"), kind: "blue", values: perMinute(series.submitted, step) },
    ],
  };
}

function waits({ start, step_s: step, series }) {
  return {
    start, step, label: text("overview.waits"), format: duration,
    series: [
      { label: "p50", kind: "accent", draw: "area", values: series.wait_p50_s },
      { label: "p95", kind: "warn", values: series.wait_p95_s },
    ],
  };
}

function line({ start, step_s: step, series }) {
  return {
    start, step, label: text("overview.line"),
    series: [
      { label: text("state.running"), kind: "accent", values: series.running },
      { label: text("state.waiting"), kind: "blue", draw: "area", values: series.waiting },
    ],
  };
}
