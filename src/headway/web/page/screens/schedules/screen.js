// Schedules: jobs that come again and again. When the next one is due, and what became of the last.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { serverNow } from "../../clock.js";
import { askForm, confirm } from "../../dialogs.js";
import { count, duration } from "../../format.js";
import { bar, button, countdown, empty, when } from "../../parts.js";
import { go, link, sought } from "../../route.js";
import { may } from "../../session.js";
import { say } from "../../toasts.js";
import { SCHEDULE_WORDS } from "./words.js";

export const screen = {
  words: SCHEDULE_WORDS,
  restMs: 4_000,
  ask: () => ({ schedules: () => call("listSchedules") }),
  concerns: ({ subject, job }) => job === null || (subject ?? "").startsWith("schedule"),

  show(view) {
    const items = view.data.schedules?.items ?? [];
    const add = button({ label: text("schedules.new"), icon: "plus", kind: "", small: false, run: () => put(view) });
    if (items.length === 0) {
      return empty({ icon: "clock", title: text("schedules.none"), about: text("schedules.none.about"), code: "headway schedules put nightly --type report --cron '0 3 * * *'", action: add });
    }
    return html`<div class="row between"><p class="muted lead">${text("schedules.about")}</p>${add}</div>
      <div class="table-frame"><table>
        <thead><tr><th scope="col">${text("schedules.name")}</th><th scope="col">${text("schedules.rule")}</th><th scope="col">${text("schedules.next")}</th><th scope="col">${text("schedules.last")}</th>
          <th scope="col" class="number">${text("schedules.missed")}</th><th scope="col"><span class="visually-hidden">${text("schedules.actions")}</span></th></tr></thead>
        <tbody>${each(items, ({ name }) => name, (schedule) => row(schedule, view))}</tbody></table></div>`;
  },

  commands: (view) => (may("operate") ? [{ label: text("schedules.new"), run: () => put(view) }] : []),
};

function row(schedule, view) {
  const { name, type, lane, paused, source, missed, strikes } = schedule;
  return html`<tr data-row>
    <th scope="row"><a href=${link("requests", { q: sought({ schedule: name }) })}>${name}</a><span class="under muted">${type} · ${lane}${source === "code" ? html` · ${text("schedules.bycode")}` : null}</span></th>
    <td>${ruleWords(schedule.rule)}${strikes > 0 && html`<span class="under failing">${text("schedules.strikes", { n: strikes })}</span>`}</td>
    <td class="next">${nextOne(schedule)}</td>
    <td>${when(schedule.last_due_at)}</td>
    <td class="number ${missed ? "failing" : "muted"}">${count(missed)}</td>
    <td class="tight"><span class="row">
      ${button({ label: text("schedules.run", { name }), icon: "bolt", bare: true, needs: "submit", run: () => runNow(schedule) })}
      ${paused
        ? button({ label: text("schedules.resume", { name }), icon: "play", bare: true, run: () => steer("resumeSchedule", "pauseSchedule", name, view) })
        : button({ label: text("schedules.pause", { name }), icon: "pause", bare: true, run: () => steer("pauseSchedule", "resumeSchedule", name, view) })}
      ${button({ label: text("schedules.edit", { name }), icon: "edit", bare: true, unless: owned(source), run: () => put(view, schedule) })}
      ${button({ label: text("schedules.remove", { name }), icon: "trash", bare: true, unless: owned(source), run: () => remove(schedule, view) })}
    </span></td>
  </tr>`;
}

/** What code declares has more to it than a form could say, and would come back with the code. */
function owned(source) {
  return source === "code" ? text("schedules.owned") : null;
}

function ruleWords(rule) {
  if (rule.cron) return html`<code>${rule.cron}</code> <span class="muted">${rule.zone}</span>`;
  return text("schedules.every", { time: duration(rule.every_s) });
}

function nextOne({ paused, next_due_at: next, last_due_at: last, created_at: made }) {
  if (paused) return html`<span class="badge paused">${text("state.paused")}</span>`;
  if (!next) return html`<span class="muted">–</span>`;
  const from = Date.parse(last ?? made);
  const share = (serverNow() - from) / (Date.parse(next) - from);
  return html`<span class="until">${countdown(next)}${bar(share, text("schedules.until"), "blue")}</span>`;
}

// -------------------------------------------------------------------- actions

/** What makes the same schedule again. */
function bodyOf({ name, type, args, rule, lane, tenant, key, upstreams, priority }) {
  const times = rule.cron ? { cron: rule.cron, zone: rule.zone } : { every: `${rule.every_s}s` };
  return { name, ...times, job: jobOf({ type, args, lane, tenant, key, upstreams, priority }) };
}

function jobOf({ type, args, lane, tenant, key, upstreams, priority }) {
  const job = { type, args, lane, priority };
  if (tenant) job.tenant = tenant;
  if (key) job.key = key;
  if (upstreams.length > 0) job.upstream = upstreams.length === 1 ? upstreams[0] : upstreams;
  return job;
}

async function steer(does, undoes, name, view) {
  await call(does, { name });
  say(text(`schedules.did.${does}`, { name }), { undo: async () => {
    await call(undoes, { name });
    view.refresh();
  } });
  view.refresh();
}

async function runNow(schedule) {
  const { id } = await call("enqueueJob", {}, { body: { ...jobOf(schedule), labels: { schedule: schedule.name } } });
  say(text("schedules.did.run", { name: schedule.name, id: String(id) }));
  go(link("requests", id));
}

async function remove(schedule, view) {
  const { name } = schedule;
  const sure = await confirm({ title: text("schedules.remove.title", { name }), about: text("schedules.remove.about"), action: text("schedules.remove.do") });
  if (!sure) return;
  await call("deleteSchedule", { name });
  say(text("schedules.did.remove", { name }), { undo: async () => {
    await call("putSchedule", {}, { body: bodyOf(schedule) });
    view.refresh();
  } });
  view.refresh();
}

async function put(view, schedule = null) {
  const before = schedule && bodyOf(schedule);
  const saved = await askForm({
    title: schedule ? text("schedules.edit.title", { name: schedule.name }) : text("schedules.new"),
    about: text("schedules.form.about"),
    submit: text("schedules.save"),
    fields: [
      ...(schedule ? [] : [{ name: "name", label: text("schedules.name"), required: true }]),
      { name: "type", label: text("schedules.type"), required: true, value: schedule?.type ?? "" },
      { name: "way", label: text("schedules.rule"), kind: "select", value: before?.cron ? "cron" : "every", options: [["every", text("schedules.way.every")], ["cron", text("schedules.way.cron")]] },
      { name: "every", label: text("schedules.every.label"), value: before?.every ?? "", placeholder: "30m", required: true, unless: ({ way }) => way !== "every" },
      { name: "cron", label: text("schedules.cron.label"), value: before?.cron ?? "", placeholder: "0 3 * * *", required: true, unless: ({ way }) => way !== "cron" },
      { name: "zone", label: text("schedules.zone"), value: before?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone, unless: ({ way }) => way !== "cron" },
      { name: "lane", label: text("schedules.lane"), value: schedule?.lane ?? "default" },
      { name: "upstream", label: text("schedules.upstream"), value: (schedule?.upstreams ?? []).join(", ") },
      { name: "args", label: text("schedules.args"), kind: "textarea", value: JSON.stringify(schedule?.args ?? {}, null, 2) },
    ],
    send: (values) => call("putSchedule", {}, { body: asked(values, schedule) }),
  });
  if (!saved) return;
  const { name } = saved;
  say(text("schedules.did.save", { name }), { undo: async () => {
    await (before ? call("putSchedule", {}, { body: before }) : call("deleteSchedule", { name }));
    view.refresh();
  } });
  view.refresh();
}

function asked({ name, type, way, every, cron, zone, lane, upstream, args }, schedule) {
  let parsed;
  try {
    parsed = JSON.parse(args || "{}");
  } catch {
    throw new Error(text("schedules.args.bad"));
  }
  const upstreams = upstream.split(",").map((part) => part.trim()).filter(Boolean);
  const job = jobOf({ type, args: parsed, lane: lane || "default", tenant: schedule?.tenant, key: schedule?.key, upstreams, priority: schedule?.priority ?? 5 });
  return { name: schedule?.name ?? name, ...(way === "cron" ? { cron, zone } : { every }), job };
}
