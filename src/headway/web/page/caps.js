// The caps of a gate: how many at once, how often. Changed with a preview of what would follow, and
// taken back in one step. `noun` is how the calls are named: Upstreams or Lanes.

import { html } from "../render.js";
import { addWords, text } from "../text.js";
import { call } from "./api.js";
import { askForm, confirm } from "./dialogs.js";
import { duration } from "./format.js";
import { say } from "./toasts.js";

const WAYS = [["", "none"], ["every", "every"], ["per_minute", "per_minute"], ["per_second", "per_second"]];

addWords({
  "caps.reset": ["Reset", "重置"],
  "caps.change.title": ["Caps of {name}", "{name} 的上限"],
  "caps.change.about": [
    "Holds at once and after a restart, before what code and files say. Nothing that runs is stopped.",
    "立即生效，重启后仍有效，优先于代码与配置文件。不会中断正在运行的任务。",
  ],
  "caps.change.send": ["Apply", "应用"],
  "caps.set.limit": ["At once", "并发上限"],
  "caps.set.limit.hint": ["Empty: as declared.", "留空：按声明。"],
  "caps.set.way": ["Pace", "节奏"],
  "caps.way.none": ["as declared", "按声明"],
  "caps.way.every": ["one every …", "每隔……一个"],
  "caps.way.per_minute": ["so many a minute", "每分钟若干个"],
  "caps.way.per_second": ["so many a second", "每秒若干个"],
  "caps.set.pace": ["How often", "频率"],
  "caps.set.pace.hint": ["A duration such as 500ms, 2s, 1m; or a number.", "时长如 500ms、2s、1m；或数字。"],
  "caps.set.burst": ["At once at first", "起始突发数"],
  "caps.preview.same": ["Nothing would change.", "不会有变化。"],
  "caps.preview.unset": ["not set", "未设置"],
  "caps.preview.starts": ["{n} that waits can start at once.|{n} that wait can start at once.", "{n} 个等待者可立即启动。"],
  "caps.preview.over": ["{n} runs above the new limit and finishes.|{n} run above the new limit and finish.", "有 {n} 个超出新上限，将继续完成。"],
  "caps.preview.drains": ["All who wait now have started in about {after} (now {before}).", "当前等待者约在 {after} 内全部启动（现为 {before}）。"],
  "caps.reset.title": ["Back to what is declared for {name}?", "将 {name} 恢复为声明的设置？"],
  "caps.did.change": ["The caps of {name} are changed.", "{name} 的上限已调整。"],
  "caps.did.reset": ["{name} is as declared again.", "{name} 已恢复声明的设置。"],
});

/** What an operator has set here so far; the rest comes from code, file and environment. */
function setByOperator({ settings }) {
  const from = settings?.from ?? {};
  return Object.fromEntries(Object.entries(settings?.value ?? {}).filter(([name]) => from[name] === "operator"));
}

function paceOf(value) {
  const [way = ""] = ["every", "per_minute", "per_second"].filter((each) => value[each] !== undefined);
  return { way, pace: way ? String(value[way]) : "" };
}

/** What the form says, on top of what was set before. What is as declared is left to be declared. */
function asked(gate, { limit, way, pace, burst }) {
  const current = gate.settings?.value ?? {};
  const before = setByOperator(gate);
  const typed = { limit: limit === "" ? undefined : Number(limit) };
  if (way && pace !== "") typed[way] = way === "every" ? pace : Number(pace);
  if (way && burst !== "") typed.burst = Number(burst);
  const value = { ...before };
  for (const name of ["limit", "every", "per_minute", "per_second", "burst"]) {
    const kept = String(typed[name]) === String(current[name]) && !(name in before);
    if (typed[name] === undefined || kept) delete value[name];
    else value[name] = typed[name];
  }
  return value;
}

export async function changeCaps(noun, gate, view) {
  const { name } = gate;
  const value = gate.settings?.value ?? {};
  const before = setByOperator(gate);
  const { way, pace } = paceOf(value);
  const changed = await askForm({
    title: text("caps.change.title", { name }),
    about: text("caps.change.about"),
    submit: text("caps.change.send"),
    fields: [
      { name: "limit", label: text("caps.set.limit"), kind: "number", min: 0, step: 1, value: value.limit ?? "", hint: text("caps.set.limit.hint") },
      { name: "way", label: text("caps.set.way"), kind: "select", value: way, options: WAYS.map(([each, key]) => [each, text(`caps.way.${key}`)]) },
      { name: "pace", label: text("caps.set.pace"), value: pace, placeholder: "1s", hint: text("caps.set.pace.hint"), unless: (values) => !values.way },
      { name: "burst", label: text("caps.set.burst"), kind: "number", min: 1, step: 1, value: value.burst ?? "", unless: (values) => !values.way },
    ],
    preview: async (values) => foreseen(await call(`set${noun}`, { name, dry_run: true }, { body: asked(gate, values) })),
    send: (values) => call(`set${noun}`, { name }, { body: asked(gate, values) }),
  });
  if (changed) done(view, text("caps.did.change", { name }), () => backTo(noun, name, before));
}

function done(view, message, undo) {
  say(message, { undo: async () => {
    await undo();
    view.refresh();
  } });
  view.refresh();
}

function backTo(noun, name, before) {
  return Object.keys(before).length > 0 ? call(`set${noun}`, { name }, { body: before }) : call(`reset${noun}`, { name });
}

function foreseen({ changes, over, starts_now: starts, drains_in_s: drains, waiting }) {
  if (changes.length === 0) return html`<p class="muted">${text("caps.preview.same")}</p>`;
  const shown = (value) => (value === null ? text("caps.preview.unset") : typeof value === "object" ? JSON.stringify(value) : String(value));
  return html`<ul class="changes">${changes.map((each) => html`<li><code>${each.name}</code> <s class="muted">${shown(each.before)}</s> → <b>${shown(each.after)}</b></li>`)}</ul>
    ${starts > 0 && waiting !== 0 && html`<p>${text("caps.preview.starts", { n: starts })}</p>`}
    ${over > 0 && html`<p>${text("caps.preview.over", { n: over })}</p>`}
    ${drains.before !== drains.after && html`<p>${text("caps.preview.drains", { before: drains.before === null ? "–" : duration(drains.before), after: drains.after === null ? "–" : duration(drains.after) })}</p>`}`;
}

export async function resetCaps(noun, gate, view) {
  const { name } = gate;
  const before = setByOperator(gate);
  const preview = await call(`reset${noun}`, { name, dry_run: true });
  const sure = await confirm({ title: text("caps.reset.title", { name }), about: foreseen(preview), action: text("caps.reset"), danger: false });
  if (!sure) return;
  await call(`reset${noun}`, { name });
  done(view, text("caps.did.reset", { name }), () => call(`set${noun}`, { name }, { body: before }));
}

