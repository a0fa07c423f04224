// The history of upstreams as charts: what went there, what was refused, what was believed.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { legend } from "../../chart.js";
import { count } from "../../format.js";
import { line, perMinute, waits } from "../../history.js";

const AGAIN_MS = 6_000;
const small = new Map(); // by upstream: { chart, askedAt }
const drawn = new WeakMap(); // an answer is turned into charts once

export function historyOf(name, span) {
  return call("getHistory", { span, kind: "upstream", name });
}

export function forgetCharts() {
  small.clear();
}

/** Asked for beside the list, since it changes slowly; drawn when it has come. */
export function miniChart({ name }, update) {
  const known = small.get(name) ?? { chart: null, askedAt: -Infinity };
  if (performance.now() - known.askedAt > AGAIN_MS) {
    small.set(name, { ...known, askedAt: performance.now() });
    historyOf(name, "live").then(
      (history) => {
        small.set(name, { ...small.get(name), chart: traffic(history) });
        update();
      },
      () => {}, // the list itself says what cannot be reached
    );
  }
  return known.chart ? html`<hw-chart .chart=${known.chart}></hw-chart>` : html`<span class="chart-place"></span>`;
}

export function charts(history) {
  if (!drawn.has(history)) drawn.set(history, { traffic: traffic(history), waits: waits(history, text("upstreams.chart.waits")), waiting: line(history, text("upstreams.chart.line")) });
  return drawn.get(history);
}

export function chartWithLegend(chart) {
  return html`${legend(chart.series)}<hw-chart .chart=${chart}></hw-chart>`;
}

function sum(one, other) {
  return one.map((value, index) => (value === null ? null : value + (other[index] ?? 0)));
}

function traffic({ start, step_s: step, series }) {
  const lines = [
    { label: text("upstreams.chart.all"), kind: "accent", draw: "area", values: perMinute(sum(series.started, series.online ?? []), step) },
  ];
  if (series.online?.some((value) => value > 0)) {
    lines.push({ label: text("upstreams.chart.online"), kind: "blue", values: perMinute(series.online, step) });
  }
  if (series.limit_rpm?.some((value) => value !== null)) {
    lines.push({ label: text("upstreams.chart.limit"), kind: "warn", draw: "step", values: series.limit_rpm });
  }
  return {
    start, step, series: lines, label: text("upstreams.chart.traffic"),
    marks: refusals(series, start, step), bands: closures(series, start, step),
    format: (value) => text("upstreams.perminute", { v: count(Math.round(value * 10) / 10) }),
  };
}

function refusals({ pushbacks, refused_online: online }, start, step) {
  return (pushbacks ?? []).flatMap((value, index) => {
    const n = (value ?? 0) + (online?.[index] ?? 0);
    return n > 0 ? [{ at: start + index * step, label: text("upstreams.chart.refused", { n }) }] : [];
  });
}

function closures({ closed }, start, step) {
  return (closed ?? []).flatMap((share, index) => (share > 0 ? [{ from: start + (index - 1) * step, to: start + (index - 1 + share) * step }] : []));
}
