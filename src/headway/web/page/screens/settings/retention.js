// How long ended jobs are kept, and cleaning up before its time.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm, confirm } from "../../dialogs.js";
import { count } from "../../format.js";
import { button, problemNotice, when } from "../../parts.js";
import { boundToOne } from "../../session.js";
import { say } from "../../toasts.js";

export function retention(view) {
  const kept = view.data.retention;
  if (!kept) return problemNotice(view.errors.retention, view.refresh);
  const bound = boundToOne();
  const days = (name) => html`<dt>${text(`settings.keep.${name}`)}</dt><dd><b class="numbers">${text("settings.days", { n: kept[name] })}</b>
    <span class="muted">${text(`settings.layer.${kept.from[name]}`)}</span></dd>`;
  return html`<p class="muted lead">${text("settings.retention.about")}</p>
    <div class="card"><div class="card-body"><dl class="pairs">${days("completed_days")}${days("failed_days")}
      <dt>${text("settings.purge")}</dt><dd>${text("settings.purge.at", { time: kept.purge_at })} <span class="muted">${when(kept.next_purge_at)}</span></dd></dl></div>
      <div class="card-head row">
        ${button({ label: text("settings.retention.change"), icon: "edit", unless: bound, run: () => change(kept, view) })}
        ${button({ label: text("settings.retention.reset"), icon: "retry", unless: bound ?? (kept.overridden ? null : text("settings.notset")), run: () => reset(kept, view) })}
        ${button({ label: text("settings.clean"), icon: "trash", kind: "quiet danger", unless: bound, run: () => clean(kept, view) })}
      </div></div>`;
}

async function change(kept, view) {
  const before = kept.overridden ? { completed_days: kept.completed_days, failed_days: kept.failed_days } : null;
  const changed = await askForm({
    title: text("settings.retention.change"),
    about: text("settings.retention.changeabout"),
    submit: text("settings.save"),
    fields: ["completed_days", "failed_days"].map((name) => ({ name, label: text(`settings.keep.${name}`), kind: "number", min: 0, step: "any", required: true, value: kept[name] })),
    send: ({ completed_days: completed, failed_days: failed }) => call("setRetention", {}, { body: { completed_days: Number(completed), failed_days: Number(failed) } }),
  });
  if (!changed) return;
  say(text("settings.did.keep"), { undo: async () => {
    await (before ? call("setRetention", {}, { body: before }) : call("resetRetention"));
    view.refresh();
  } });
  view.refresh();
}

async function reset({ completed_days: completed, failed_days: failed }, view) {
  await call("resetRetention");
  say(text("settings.did.keep"), { undo: async () => {
    await call("setRetention", {}, { body: { completed_days: completed, failed_days: failed } });
    view.refresh();
  } });
  view.refresh();
}

async function clean(kept, view) {
  const sure = await confirm({ title: text("settings.clean.title"), about: text("settings.clean.about", { done: kept.completed_days, failed: kept.failed_days }), action: text("settings.clean") });
  if (!sure) return;
  const { jobs, events } = await call("cleanUpTasks");
  say(text("settings.did.clean", { jobs: count(jobs), events: count(events) }));
  view.refresh();
}
