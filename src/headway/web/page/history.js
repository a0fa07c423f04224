// Answers of the history as charts that several screens show.

import { text } from "../text.js";
import { duration } from "./format.js";

export function perMinute(values, step) {
  return (values ?? []).map((value) => (value === null ? null : (value * 60) / step));
}

/** How long it took until something could start. */
export function waits({ start, step_s: step, series }, label) {
  return {
    start, step, label, format: duration,
    series: [
      { label: "p50", kind: "accent", draw: "area", values: series.wait_p50_s },
      { label: "p95", kind: "warn", values: series.wait_p95_s },
    ],
  };
}

/** How many ran, and how many stood in line. */
export function line({ start, step_s: step, series }, label) {
  return {
    start, step, label,
    series: [
      { label: text("state.running"), kind: "accent", values: series.running },
      { label: text("state.waiting"), kind: "blue", draw: "area", values: series.waiting },
    ],
  };
}
