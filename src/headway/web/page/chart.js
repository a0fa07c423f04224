// Charts over time: `<hw-chart .chart=${…}>`. Drawn again only when it gets another object.
//
//   { start, step,                 seconds since 1970 of the first value, and between two values
//     series: [{ label, values, kind, draw }],   draw: "line" (usual), "area", "bars", "step"
//     marks: [{ at, label }],      moments, such as refusals
//     bands: [{ from, to }],       times in which something was closed
//     format, label, max,          how a value reads; what the chart shows; the top of the scale
//     when }                       how a time reads, if it is no time of day
//
// `kind` is a colour: accent, blue, good, warn, bad, muted. Bars stand on top of each other.

import { html, render, svg } from "../render.js";
import { count, dayOf, timeOfDay } from "./format.js";

const WIDTH = 600;
const HEIGHT = 100;
const DAY_S = 86_400;

class Chart extends HTMLElement {
  #chart = null;
  #at = null; // the value that is pointed at
  #asked = false;

  set chart(chart) {
    if (chart === this.#chart) return;
    this.#chart = chart;
    if (chart && !this.ariaLabel) this.ariaLabel = chart.label ?? ""; // a name at once, its values with the drawing
    this.#drawSoon();
  }

  constructor() {
    super();
    this.addEventListener("pointermove", (event) => this.#point(event));
    this.addEventListener("pointerleave", () => this.#read(null));
    this.addEventListener("blur", () => this.#read(null));
    this.addEventListener("keydown", (event) => this.#step(event));
  }

  connectedCallback() {
    this.tabIndex = 0;
    this.setAttribute("role", "img");
  }

  #point(event) {
    const { left, width } = this.getBoundingClientRect();
    this.#read(Math.round(((event.clientX - left) / width) * (this.#length() - 1)));
  }

  #step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.#read((this.#at ?? this.#length()) + by);
  }

  #read(index) {
    this.#at = index === null ? null : Math.max(0, Math.min(this.#length() - 1, index));
    this.#drawSoon();
  }

  #length() {
    return this.#chart?.series[0]?.values.length ?? 0;
  }

  #drawSoon() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      if (this.#chart) this.#draw(this.#chart);
    });
  }

  #draw(chart) {
    const format = chart.format ?? count;
    const top = niceTop(chart.max ?? highest(chart.series));
    const length = this.#length();
    this.setAttribute("aria-label", summary(chart, format));
    render(
      html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">
          ${(chart.bands ?? []).map((band) => drawBand(chart, band, length))}
          ${svg`<path class="grid" d="M0 ${HEIGHT / 2}H${WIDTH}M0 0.5H${WIDTH}"></path>`}
          ${drawBars(chart.series, top, length)}
          ${chart.series.map((each) => (each.draw === "bars" ? null : drawLine(each, top, length)))}
          ${(chart.marks ?? []).map((mark) => drawMark(chart, mark, length))}
          ${this.#at !== null && svg`<path class="pointer" d="M${x(this.#at, length)} 0V${HEIGHT}"></path>`}
        </svg>
        <span class="chart-top">${format(top)}</span>
        <span class="chart-from">${moment(chart, 0, 10)}</span>
        <span class="chart-to">${moment(chart, length - 1, 10)}</span>
        ${this.#at !== null && readout(chart, this.#at, length, format)}`,
      this,
    );
  }
}

function x(index, length) {
  return length < 2 ? WIDTH : round((index / (length - 1)) * WIDTH);
}

function y(value, top) {
  return round(HEIGHT - (Math.min(value, top) / top) * (HEIGHT - 2) - 1);
}

/** Where values are days apart, the day; else the time, with seconds where they matter. */
function moment({ start, step, when }, index, secondsBelow) {
  const at = start + step * index;
  if (when) return when(at);
  return step >= DAY_S ? dayOf(at * 1000) : timeOfDay(at * 1000, step < secondsBelow);
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function highest(series) {
  let top = 0;
  const stacked = [];
  for (const { values, draw } of series) {
    values.forEach((value, index) => {
      if (value === null || value === undefined) return;
      if (draw === "bars") stacked[index] = (stacked[index] ?? 0) + value;
      top = Math.max(top, draw === "bars" ? stacked[index] : value);
    });
  }
  return top;
}

/** The next 1, 2 or 5 with zeros, so that the scale does not change with every value. */
function niceTop(top) {
  if (!(top > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(top));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= top * 1.02) ?? top;
}

/** Where nothing is known the line is broken. */
function drawLine({ values, kind = "accent", draw = "line" }, top, length) {
  let path = "";
  let area = "";
  let begun = null;
  const end = (last) => {
    if (begun !== null && draw === "area") area += `L${x(last, length)} ${HEIGHT}L${x(begun, length)} ${HEIGHT}Z`;
    begun = null;
  };
  values.forEach((value, index) => {
    if (value === null || value === undefined) return end(index - 1);
    const [across, up] = [x(index, length), y(value, top)];
    const piece = begun === null ? `M${across} ${up}` : draw === "step" ? `H${across}V${up}` : `L${across} ${up}`;
    begun ??= index;
    path += piece;
    if (draw === "area") area += piece;
  });
  end(values.length - 1);
  return svg`<g class="line ${kind} ${draw}"><path class="fill" d=${area || "M0 0"}></path><path class="stroke" d=${path || "M0 0"}></path></g>`;
}

function drawBars(series, top, length) {
  const below = Array.from({ length }, () => 0);
  const width = Math.max(1, (WIDTH / length) * 0.8);
  return series.filter(({ draw }) => draw === "bars").map(({ values, kind = "accent" }) => {
    let path = "";
    values.forEach((value, index) => {
      if (!value) return;
      const left = round((index / length) * WIDTH);
      const [base, up] = [y(below[index], top), y(below[index] + value, top)];
      below[index] += value;
      path += `M${left} ${base}H${round(left + width)}V${up}H${left}Z`;
    });
    return svg`<path class="bars ${kind}" d=${path || "M0 0"}></path>`;
  });
}

function drawMark(chart, { at }, length) {
  const across = x((at - chart.start) / chart.step, length);
  return across < 0 || across > WIDTH ? null : svg`<path class="mark-line" d="M${across} 0V${HEIGHT}"></path>`;
}

function drawBand(chart, { from, to }, length) {
  const left = Math.max(0, x((from - chart.start) / chart.step, length));
  const right = Math.min(WIDTH, x((to - chart.start) / chart.step, length));
  return right <= left ? null : svg`<path class="band" d="M${left} 0H${right}V${HEIGHT}H${left}Z"></path>`;
}

function readout(chart, index, length, format) {
  const at = chart.start + index * chart.step;
  const near = (chart.marks ?? []).filter((mark) => Math.abs(mark.at - at) <= chart.step);
  return html`<span class="readout ${index > length / 2 ? "left" : "right"}" --at=${String(index / Math.max(1, length - 1))}>
    <span class="readout-time">${moment(chart, index, 60)}</span>
    ${chart.series.map(({ label, values, kind = "accent" }) => html`<span class="readout-line"><i class="swatch ${kind}"></i>${label} <b>${values[index] === null || values[index] === undefined ? "–" : format(values[index])}</b></span>`)}
    ${near.map(({ label }) => html`<span class="readout-line"><i class="swatch bad"></i>${label}</span>`)}
  </span>`;
}

function summary(chart, format) {
  const last = chart.series.map(({ label, values }) => {
    const value = values.findLast((each) => each !== null && each !== undefined);
    return value === undefined ? null : `${label} ${format(value)}`;
  });
  return [chart.label, ...last.filter(Boolean)].join(", ");
}

/** What the colours of a chart mean. */
export function legend(series) {
  return html`<ul class="legend">${series.map(({ label, kind = "accent" }) => html`<li><i class="swatch ${kind}"></i>${label}</li>`)}</ul>`;
}

customElements.define("hw-chart", Chart);
