// What came out: what differs, in words; both runs in numbers and charts, on the same scales.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { legend } from "../../chart.js";
import { count, duration, percent } from "../../format.js";

const MOST_TENANTS = 20;
const drawn = new WeakMap(); // an answer is turned into charts once, or they would be drawn again and again

const shares = new Set(["use", "fairness"]);
const times = new Set(["finish", "p50", "p95", "longest"]);

/** Two times that are compared may not be rounded to the same hour. */
function span(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 60 || minutes >= 2 * 1440) return duration(seconds);
  const rest = minutes % 60 ? ` ${text("time.min", { v: String(minutes % 60) })}` : "";
  return text("time.h", { v: String(Math.floor(minutes / 60)) }) + rest;
}

export function results(answer) {
  const [before, after] = answer.runs;
  return html`${facts(answer)}
    ${chartsOf(answer).map(({ title, charts }) => html`<section><h2>${title}</h2><div class="halves">${charts.map(card)}</div></section>`)}
    <section><h2>${text("whatif.numbers")}</h2>${numbers(before, after)}</section>
    ${after.tenants.length > 1 && tenants(before, after)}`;
}

function facts({ facts: [found], runs, left_out: out, load, shortened_to_s: shortened }) {
  const stopped = runs.find((run) => run.stopped);
  return html`<section class="card card-body verdict"><h2>${text("whatif.verdict")}</h2>
    ${found.length === 0 ? html`<p>${text(["calls", "asked"].includes(stopped?.stopped) ? "whatif.uneven" : "whatif.same")}</p>` : html`<ul>${found.map(fact)}</ul>`}
    ${stopped && html`<p class="muted">${text(`whatif.stopped.${stopped.stopped}`)}</p>`}
    ${shortened !== null && html`<p class="muted">${text("whatif.shortened", { time: span(shortened) })}</p>`}
    ${out > 0 && html`<p class="muted">${text("whatif.leftout", { n: out })}</p>`}
    ${load === "recent" && html`<p class="muted">${text("whatif.replay")}</p>`}</section>`;
}

function fact({ what, before, after, better }) {
  const said = (value) => (value === null ? text("whatif.never") : times.has(what) ? span(value) : shares.has(what) ? percent(value, 1) : count(value));
  return html`<li class=${better === null ? "" : better ? "better" : "worse"}>${text(`whatif.fact.${what}`, { before: said(before), after: said(after) })}</li>`;
}

function numbers(before, after) {
  const rows = [
    ["came", (run) => count(run.came)], ["completed", (run) => count(run.completed)], ["failed", (run) => count(run.failed)],
    ["left", (run) => count(run.left)], ["finish", (run) => (run.finished_after_s === null ? "–" : span(run.finished_after_s))],
    ["calls", (run) => count(run.calls)], ["refused", (run) => count(run.refused + run.banned)], ["unwell", (run) => count(run.unwell)],
    ["use", (run) => percent(run.use)], ["p50", (run) => span(run.waits.p50_s)], ["p95", (run) => span(run.waits.p95_s)],
    ["longest", (run) => span(run.waits.longest_s)], ["fairness", (run) => (run.fairness === null ? "–" : count(Math.round(run.fairness * 1000) / 1000))],
  ];
  const told = rows.map(([name, said]) => [name, said(before), said(after)]).filter(([name, one, other]) => name === "refused" || ![one, other].every((value) => value === "0" || value === "–"));
  return html`<div class="table-frame"><table class="numbers-table"><thead><tr><th scope="col">${text("whatif.figure")}</th><th scope="col" class="number">${text("whatif.before")}</th><th scope="col" class="number">${text("whatif.after")}</th></tr></thead>
    <tbody>${each(told, ([name]) => name, ([name, one, other]) => html`<tr><th scope="row">${text(`whatif.row.${name}`)}</th><td class="number">${one}</td><td class="number ${one === other ? "" : "differs"}">${other}</td></tr>`)}</tbody></table></div>`;
}

function tenants(before, after) {
  const was = new Map(before.tenants.map((row) => [row.name, row]));
  const shown = after.tenants.toSorted((one, other) => other.waits.p95_s - one.waits.p95_s).slice(0, MOST_TENANTS);
  const wait = (row, name) => (row ? span(row.waits[name]) : "–");
  return html`<section><h2>${text("whatif.tenants")}</h2><div class="table-frame"><table>
    <thead><tr><th scope="col">${text("whatif.tenant")}</th><th scope="col" class="number">${text("whatif.row.p50")}</th><th scope="col" class="number">${text("whatif.after")}</th><th scope="col" class="number">${text("whatif.row.p95")}</th><th scope="col" class="number">${text("whatif.after")}</th></tr></thead>
    <tbody>${each(shown, ({ name }) => name, (row) => html`<tr><th scope="row">${row.name || text("whatif.nobody")}</th><td class="number">${wait(was.get(row.name), "p50_s")}</td><td class="number">${wait(row, "p50_s")}</td><td class="number">${wait(was.get(row.name), "p95_s")}</td><td class="number">${wait(row, "p95_s")}</td></tr>`)}</tbody></table></div></section>`;
}

// -------------------------------------------------------------------- charts

function card(chart) {
  return html`<div class="card card-body"><div class="row between"><h3>${chart.label}</h3>${legend(chart.series)}</div><hw-chart .chart=${chart}></hw-chart></div>`;
}

function chartsOf(answer) {
  if (!drawn.has(answer)) drawn.set(answer, figures(answer));
  return drawn.get(answer);
}

function figures({ runs, kind, name }) {
  const gates = runs.map((run) => run.gates.find((gate) => gate.kind === kind && gate.name === name));
  const found = [
    pair(text("whatif.chart.traffic"), runs, (run) => [
      { label: text("whatif.taken"), kind: "accent", draw: "area", values: run.series.taken },
      { label: text("whatif.refused"), kind: "bad", draw: "bars", values: run.series.refused },
      { label: text("whatif.truelimit"), kind: "warn", draw: "step", values: run.series.limit },
    ], text("whatif.perminute")),
    pair(text("whatif.chart.line"), runs, (run) => [{ label: text("state.waiting"), kind: "blue", draw: "area", values: run.series.waiting }]),
  ];
  if (gates.every(Boolean)) {
    found.push(pair(text("whatif.chart.places", { name }), runs, (run, index) => {
      const { inside, cap } = gates[index];
      const lines = [{ label: text("whatif.inuse"), kind: "accent", draw: "area", values: inside }];
      return cap === null ? lines : [...lines, { label: text("whatif.cap"), kind: "warn", draw: "step", values: inside.map(() => cap) }];
    }));
  }
  if (gates.some((gate) => gate?.learns)) {
    found.push(pair(text("whatif.chart.learned"), runs, (run, index) => [
      { label: text("whatif.learned"), kind: "blue", values: gates[index]?.learns ? gates[index].believed : run.series.taken.map(() => null) },
      { label: text("whatif.truelimit"), kind: "warn", draw: "step", values: run.series.limit },
    ], text("whatif.perminute")));
  }
  return found;
}

/** The same figure of both, on one scale and one time. */
function pair(title, runs, linesOf, unit = "") {
  const length = Math.max(...runs.map((run) => run.series.taken.length));
  const padded = (values) => [...values, ...Array.from({ length: length - values.length }, () => null)];
  const all = runs.map((run, index) => linesOf(run, index).filter(({ values }) => values.some((value) => value !== null)).map((line) => ({ ...line, values: padded(line.values) })));
  const max = Math.max(0, ...all.flatMap((lines) => lines.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const round = (value) => count(Math.round(value * 100) / 100);
  const format = (value) => (unit ? `${round(value)} ${unit}` : round(value));
  return {
    title,
    charts: runs.map((run, index) => ({
      start: 0, step: run.series.span_s, max, format, when: (at) => (at === 0 ? "0" : span(at)),
      label: text(index === 0 ? "whatif.before" : "whatif.after"),
      series: all[index].length > 0 ? all[index] : [{ label: text("whatif.unset"), kind: "muted", values: padded([]) }],
    })),
  };
}
