// Numbers, times and sizes as people read them, in the language of the page.

import { language, text } from "../text.js";
import { serverNow } from "./clock.js";

const MAX_EXACT = 999_999;
const made = new Map();

function formatter(kind, options) {
  const key = `${kind.name} ${language()} ${JSON.stringify(options)}`;
  if (!made.has(key)) made.set(key, new kind(language() === "zh" ? "zh-CN" : "en", options));
  return made.get(key);
}

/** Whatever is sent for a number that nobody knows, the rest of the screen is shown. */
function isKnown(value) {
  return value !== null && value !== undefined && Number.isFinite(Number(value));
}

/** A count; nothing known is a dash. Very large ones are rounded, so that they keep their place. */
export function count(value) {
  if (!isKnown(value)) return "–";
  if (Math.abs(value) <= MAX_EXACT) return formatter(Intl.NumberFormat, { maximumFractionDigits: 1 }).format(value);
  return formatter(Intl.NumberFormat, { notation: "compact", maximumSignificantDigits: 4 }).format(value);
}

export function percent(share, digits = 0) {
  if (!isKnown(share)) return "–";
  return formatter(Intl.NumberFormat, { style: "percent", maximumFractionDigits: digits }).format(share);
}

export function money(amount, currency) {
  if (!isKnown(amount)) return "–";
  const digits = Math.abs(amount) < 1 ? 4 : 2;
  try {
    return formatter(Intl.NumberFormat, { style: "currency", currency, maximumFractionDigits: digits }).format(amount);
  } catch {
    return `${count(amount)} ${currency ?? ""}`;
  }
}

export function bytes(value) {
  if (!isKnown(value)) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

/** `3:12`, `1:03:12`, `2 d 4 h`: what is left, or what it took. */
export function clockTime(seconds) {
  if (!isKnown(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const days = Math.floor(whole / 86_400);
  if (days > 0) return text("time.days", { n: days, h: Math.floor((whole % 86_400) / 3600) });
  const pad = (value) => String(value).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

/** `12 ms`, `3.2 s`, `4 min`, `2 h`: how long something took, in two digits or so. */
export function duration(seconds) {
  if (!isKnown(seconds)) return "–";
  if (seconds < 0.001) return text("time.ms", { v: "0" });
  if (seconds < 1) return text("time.ms", { v: String(Math.round(seconds * 1000)) });
  if (seconds < 10) return text("time.s", { v: String(Math.round(seconds * 10) / 10) });
  if (seconds < 90) return text("time.s", { v: String(Math.round(seconds)) });
  if (seconds < 5400) return text("time.min", { v: String(Math.round(seconds / 60)) });
  if (seconds < 129_600) return text("time.h", { v: String(Math.round(seconds / 3600)) });
  return text("time.d", { v: String(Math.round(seconds / 86_400)) });
}

/** `4 minutes ago`, `in 3 hours`. */
export function relative(at) {
  const seconds = (at - serverNow()) / 1000;
  const size = Math.abs(seconds);
  const { format } = { format: (value, unit) => formatter(Intl.RelativeTimeFormat, { numeric: "auto", style: "short" }).format(value, unit) };
  if (size < 1) return text("time.now");
  if (size < 60) return format(Math.trunc(seconds), "second");
  if (size < 3600) return format(Math.trunc(seconds / 60), "minute");
  if (size < 86_400) return format(Math.trunc(seconds / 3600), "hour");
  return format(Math.trunc(seconds / 86_400), "day");
}

function moment(at, options) {
  return isKnown(new Date(at)) ? formatter(Intl.DateTimeFormat, options).format(new Date(at)) : "–";
}

export function exactTime(at) {
  return moment(at, {
    year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
    second: "2-digit", timeZoneName: "short", hourCycle: "h23",
  });
}

/** `14:05`, `14:05:12`: for the axis of a chart. */
export function timeOfDay(at, withSeconds = false) {
  return moment(at, {
    hour: "2-digit", minute: "2-digit", second: withSeconds ? "2-digit" : undefined, hourCycle: "h23",
  });
}

/** `16 Nov`: days are those of the server's books, which are kept in UTC. */
export function dayOf(at) {
  return moment(at, { month: "short", day: "numeric", timeZone: "UTC" });
}
