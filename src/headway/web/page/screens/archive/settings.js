// The settings of a subscription as a form, for a new one and for changing one.

import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm } from "../../dialogs.js";
import { duration } from "../../format.js";
import { say } from "../../toasts.js";

const QUALITIES = ["best", "2160p", "1440p", "1080p", "720p", "480p", "360p", "audio"];
const INTERVALS = [0, 1800, 3600, 21_600, 43_200, 86_400, 604_800];
export const USUAL = {
  title: null, quality: "best", interval_s: 21_600, depth: 0, download: true, template: "", nfo: "movie",
  filters: { title_any: [], title_none: [], after: null, before: null, min_duration_s: null, max_duration_s: null, min_views: null, max_views: null },
};

export function fieldsOf({ title, quality, interval_s, depth, download, template, nfo, filters }) {
  const field = (name, label, value, more = {}) => ({ name, label: text(`archive.set.${label}`), value: value ?? "", ...more });
  const whole = { kind: "number", min: 0, step: 1 };
  const words = { hint: text("archive.set.words.hint") };
  return [
    field("title", "name", title, { hint: text("archive.set.name.hint") }),
    field("quality", "quality", quality, { kind: "select", options: QUALITIES.map((each) => [each, qualityText(each)]) }),
    field("interval_s", "interval", String(interval_s), { kind: "select", options: intervals(interval_s) }),
    field("download", "download", download, { kind: "checkbox" }),
    field("depth", "depth", String(depth), { ...whole, hint: text("archive.set.depth.hint") }),
    field("title_any", "any", filters.title_any.join(", "), words),
    field("title_none", "none", filters.title_none.join(", "), words),
    field("after", "after", dayOf(filters.after), { kind: "date" }),
    field("before", "before", dayOf(filters.before), { kind: "date" }),
    field("min_duration_s", "mind", minutes(filters.min_duration_s), { kind: "number", min: 0, step: "any" }),
    field("max_duration_s", "maxd", minutes(filters.max_duration_s), { kind: "number", min: 0, step: "any" }),
    field("min_views", "minv", filters.min_views, whole),
    field("max_views", "maxv", filters.max_views, whole),
    field("template", "template", template, { hint: text("archive.set.template.hint") }),
    field("nfo", "nfo", nfo, { kind: "select", options: ["movie", "episode"].map((each) => [each, text(`archive.nfo.${each}`)]) }),
  ];
}

/** What is sent, of what was typed. */
export function bodyOf(values) {
  const number = (said) => (said === "" ? null : Number(said));
  const seconds = (said) => (said === "" ? null : Math.round(Number(said) * 60));
  return {
    title: values.title.trim() || null,
    quality: values.quality,
    interval_s: Number(values.interval_s),
    depth: Number(values.depth || 0),
    download: values.download,
    template: values.template.trim(),
    nfo: values.nfo,
    filters: {
      title_any: wordsOf(values.title_any),
      title_none: wordsOf(values.title_none),
      after: momentOf(values.after),
      before: momentOf(values.before),
      min_duration_s: seconds(values.min_duration_s),
      max_duration_s: seconds(values.max_duration_s),
      min_views: number(values.min_views),
      max_views: number(values.max_views),
    },
  };
}

export async function openSettings(subscription, view) {
  const { id, name, site, preset } = subscription;
  const before = bodyOf(valuesOf(subscription));
  await askForm({
    title: text("archive.set.title", { name }),
    about: text("archive.set.about", { site, preset }),
    fields: fieldsOf(subscription),
    submit: text("archive.set.save"),
    send: async (values) => {
      const changes = changed(before, bodyOf(values));
      if (Object.keys(changes).length === 0) return say(text("archive.said.same"));
      await call("changeSubscription", { id }, { body: changes });
      say(text("archive.said.saved", { name: changes.title ?? name }), { undo: () => undo(id, before, changes, view) });
      view.refresh();
    },
  });
}

async function undo(id, before, changes, view) {
  const body = Object.fromEntries(Object.keys(changes).map((key) => [key, before[key]]));
  await call("changeSubscription", { id }, { body });
  view.refresh();
}

function changed(before, after) {
  return Object.fromEntries(Object.entries(after).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key])));
}

export function valuesOf(subscription) {
  return Object.fromEntries(fieldsOf(subscription).map(({ name, value }) => [name, value]));
}

function qualityText(quality) {
  return quality.endsWith("p") ? text("archive.quality.most", { q: quality }) : text(`archive.quality.${quality}`);
}

function intervals(now) {
  const known = INTERVALS.map((each) => [String(each), text(`archive.interval.${each}`)]);
  return INTERVALS.includes(now) ? known : [[String(now), text("archive.interval.other", { time: duration(now) })], ...known];
}

function wordsOf(said) {
  return said.split(/[,，]/).map((each) => each.trim()).filter(Boolean);
}

/** Days are those of whoever looks. */
function dayOf(moment) {
  if (!moment) return "";
  const at = new Date(moment);
  const pad = (value) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

function momentOf(day) {
  return day ? new Date(`${day}T00:00:00`).toISOString() : null;
}

function minutes(seconds) {
  return seconds === null ? null : Math.round((seconds / 60) * 100) / 100;
}
