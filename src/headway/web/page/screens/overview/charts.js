// How it went, as charts: what was done and what failed, how long it waited, how much stood in line.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { legend } from "../../chart.js";
import { count } from "../../format.js";
import { line, perMinute, waits } from "../../history.js";

const drawn = new WeakMap(); // an answer is turned into charts once, or they would be drawn again and again

export function chartCards(history) {
  if (!drawn.has(history)) drawn.set(history, [throughput(history), waits(history, text("overview.waits")), line(history, text("overview.line"))]);
  const [first, ...others] = drawn.get(history);
  return html`<div class="charts">${card(first)}${others.map(card)}</div>`;
}

function card(chart) {
  return html`<div class="card card-body"><div class="row between"><h3>${chart.label}</h3>${legend(chart.series)}</div><hw-chart .chart=${chart}></hw-chart></div>`;
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
