// What an operator does to an upstream: close and open, pause and resume, caps with a preview, pins.

import { text } from "../../../text.js";
import { call } from "../../api.js";
import { changeCaps } from "../../caps.js";
import { askForm, confirm } from "../../dialogs.js";
import { count, duration } from "../../format.js";
import { button } from "../../parts.js";
import { may, seesAll } from "../../session.js";
import { say } from "../../toasts.js";
import { isClosed } from "./lane.js";

const FOR_S = [60, 300, 900, 3600, 21_600, 86_400];

export function laneButtons(gate, view) {
  return actionsOf(gate, view).map(({ label, icon, run }) => button({ label, icon, bare: true, run }));
}

export function detailButtons(gate, view) {
  return actionsOf(gate, view).map(({ label, icon, run }) => button({ label, icon, run }));
}

export function commandsFor(gate, view) {
  return seesAll() && may("operate") ? actionsOf(gate, view).map(({ label, run }) => ({ label: `${label}: ${gate.name}`, run })) : [];
}

function actionsOf(gate, view) {
  return [
    isClosed(gate)
      ? { label: text("upstreams.open"), icon: "unlock", run: () => open(gate, view) }
      : { label: text("upstreams.close"), icon: "lock", run: () => close(gate, view) },
    gate.paused
      ? { label: text("upstreams.resume"), icon: "play", run: () => resume(gate, view) }
      : { label: text("upstreams.pause"), icon: "pause", run: () => pause(gate, view) },
    { label: text("upstreams.change"), icon: "sliders", run: () => changeCaps("Upstreams", gate, view) },
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
