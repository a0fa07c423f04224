// What an operator does to an upstream: close and open, pause and resume, caps with a preview, pins.

import { html } from "../../render.js";
import { text } from "../../text.js";
import { call } from "../api.js";
import { askForm, confirm } from "../dialogs.js";
import { count, duration } from "../format.js";
import { button } from "../parts.js";
import { seesAll } from "../session.js";
import { say } from "../toasts.js";
import { isClosed } from "./upstreams-lane.js";

const WAYS = [["", "none"], ["every", "every"], ["per_minute", "per_minute"], ["per_second", "per_second"]];
const FOR_S = [60, 300, 900, 3600, 21_600, 86_400];

export function laneButtons(gate, view) {
  return actionsOf(gate, view).map(({ label, icon, run }) => button({ label, icon, bare: true, run }));
}

export function detailButtons(gate, view) {
  return actionsOf(gate, view).map(({ label, icon, run }) => button({ label, icon, run }));
}

export function commandsFor(gate, view) {
  return seesAll() ? actionsOf(gate, view).map(({ label, run }) => ({ label: `${label}: ${gate.name}`, run })) : [];
}

function actionsOf(gate, view) {
  return [
    isClosed(gate)
      ? { label: text("upstreams.open"), icon: "unlock", run: () => open(gate, view) }
      : { label: text("upstreams.close"), icon: "lock", run: () => close(gate, view) },
    gate.paused
      ? { label: text("upstreams.resume"), icon: "play", run: () => resume(gate, view) }
      : { label: text("upstreams.pause"), icon: "pause", run: () => pause(gate, view) },
    { label: text("upstreams.change"), icon: "sliders", run: () => change(gate, view) },
  ];
}

async function done(view, message, undo = null) {
  say(message, { undo: undo && (async () => {
    await undo();
    view.refresh();
  }) });
  view.refresh();
}

async function pause({ name }, view) {
  await call("pauseUpstreams", { name });
  await done(view, text("upstreams.did.pause", { name }), () => call("resumeUpstreams", { name }));
}

async function resume({ name }, view) {
  await call("resumeUpstreams", { name });
  await done(view, text("upstreams.did.resume", { name }), () => call("pauseUpstreams", { name }));
}

async function close({ name, running }, view) {
  const closed = await askForm({
    title: text("upstreams.close.title", { name }),
    about: text("upstreams.close.about", { n: running }),
    submit: text("upstreams.close"),
    fields: [
      { name: "for_s", label: text("upstreams.close.for"), kind: "select", value: "300", options: FOR_S.map((seconds) => [String(seconds), duration(seconds)]) },
      { name: "why", label: text("upstreams.close.why"), placeholder: text("upstreams.close.why.hint") },
    ],
    send: ({ for_s, why }) => call("closeUpstreams", { name }, { body: { for_s: Number(for_s), why } }),
  });
  if (closed) await done(view, text("upstreams.did.close", { name }), () => call("openUpstreams", { name }));
}

async function open(gate, view) {
  const { name, closed_until: until, closed_why: why } = gate;
  const sure = await confirm({
    title: text("upstreams.open.title", { name }), about: text("upstreams.open.about", { why: why || gate.detail }),
    action: text("upstreams.open"), danger: false,
  });
  if (!sure) return;
  await call("openUpstreams", { name });
  const undo = until && (() => call("closeUpstreams", { name }, { body: { until, why } }));
  await done(view, text("upstreams.did.open", { name }), undo);
}

// -------------------------------------------------------------------- caps, with a preview

/** What an operator has set here so far; the rest comes from code, file and environment. */
function setByOperator({ settings }) {
  const from = settings?.from ?? {};
  return Object.fromEntries(Object.entries(settings?.value ?? {}).filter(([name]) => from[name] === "operator"));
}

function paceOf(value) {
  const [way = ""] = ["every", "per_minute", "per_second"].filter((each) => value[each] !== undefined);
  return { way, pace: way ? String(value[way]) : "" };
}

/** What the form says, on top of what was set before. Nothing typed: as it is declared. */
function asked(gate, { limit, way, pace, burst }) {
  const value = setByOperator(gate);
  for (const name of ["limit", "every", "per_minute", "per_second", "burst"]) delete value[name];
  if (limit !== "") value.limit = Number(limit);
  if (way && pace !== "") value[way] = way === "every" ? pace : Number(pace);
  if (burst !== "") value.burst = Number(burst);
  return value;
}

async function change(gate, view) {
  const { name } = gate;
  const value = gate.settings?.value ?? {};
  const before = setByOperator(gate);
  const { way, pace } = paceOf(value);
  const changed = await askForm({
    title: text("upstreams.change.title", { name }),
    about: text("upstreams.change.about"),
    submit: text("upstreams.change.send"),
    fields: [
      { name: "limit", label: text("upstreams.set.limit"), kind: "number", min: 0, step: 1, value: value.limit ?? "", hint: text("upstreams.set.limit.hint") },
      { name: "way", label: text("upstreams.set.way"), kind: "select", value: way, options: WAYS.map(([each, key]) => [each, text(`upstreams.way.${key}`)]) },
      { name: "pace", label: text("upstreams.set.pace"), value: pace, placeholder: "1s", hint: text("upstreams.set.pace.hint"), unless: (values) => !values.way },
      { name: "burst", label: text("upstreams.set.burst"), kind: "number", min: 1, step: 1, value: value.burst ?? "", unless: (values) => !values.way },
    ],
    preview: async (values) => foreseen(await call("setUpstreams", { name, dry_run: true }, { body: asked(gate, values) })),
    send: (values) => call("setUpstreams", { name }, { body: asked(gate, values) }),
  });
  if (changed) await done(view, text("upstreams.did.change", { name }), () => backTo(name, before));
}

function backTo(name, before) {
  return Object.keys(before).length > 0 ? call("setUpstreams", { name }, { body: before }) : call("resetUpstreams", { name });
}

function foreseen({ changes, over, starts_now: starts, drains_in_s: drains, waiting }) {
  if (changes.length === 0) return html`<p class="muted">${text("upstreams.preview.same")}</p>`;
  const shown = (value) => (value === null ? text("upstreams.preview.unset") : typeof value === "object" ? JSON.stringify(value) : String(value));
  return html`<ul class="changes">${changes.map((each) => html`<li><code>${each.name}</code> <s class="muted">${shown(each.before)}</s> → <b>${shown(each.after)}</b></li>`)}</ul>
    ${starts > 0 && waiting !== 0 && html`<p>${text("upstreams.preview.starts", { n: starts })}</p>`}
    ${over > 0 && html`<p>${text("upstreams.preview.over", { n: over })}</p>`}
    ${drains.before !== drains.after && html`<p>${text("upstreams.preview.drains", { before: drains.before === null ? "–" : duration(drains.before), after: drains.after === null ? "–" : duration(drains.after) })}</p>`}`;
}

export async function resetSettings(gate, view) {
  const { name } = gate;
  const before = setByOperator(gate);
  const preview = await call("resetUpstreams", { name, dry_run: true });
  const sure = await confirm({ title: text("upstreams.reset.title", { name }), about: foreseen(preview), action: text("upstreams.reset"), danger: false });
  if (!sure) return;
  await call("resetUpstreams", { name });
  await done(view, text("upstreams.did.reset", { name }), () => call("setUpstreams", { name }, { body: before }));
}

// -------------------------------------------------------------------- what was learned

export async function pin({ name }, limit, view) {
  const before = limit.pins;
  const number = (value) => (value === "" ? null : Number(value));
  const units = ["rpm", "concurrency", "tpm"];
  const pinned = await askForm({
    title: text("upstreams.pin.title", { name }),
    about: text("upstreams.pin.about", { rpm: count(limit.limit_rpm) }),
    submit: text("upstreams.pin"),
    fields: units.map((unit) => ({
      name: unit, label: text(`upstreams.unit.${unit}`), kind: "number", min: 0, step: unit === "concurrency" ? 1 : "any",
      value: before[unit] ?? "", placeholder: limit.believed[unit] === null ? "" : String(Math.round(limit.believed[unit])),
    })),
    send: (values) => call("pinLearned", { name }, { body: Object.fromEntries(units.map((unit) => [unit, number(values[unit])])) }),
  });
  if (pinned) await done(view, text("upstreams.did.pin", { name }), () => call("pinLearned", { name }, { body: before }));
}

export async function forget({ name }, view) {
  const sure = await confirm({ title: text("upstreams.forget.title", { name }), about: text("upstreams.forget.about"), action: text("upstreams.forget") });
  if (!sure) return;
  await call("resetLearned", { name });
  await done(view, text("upstreams.did.forget", { name }));
}
