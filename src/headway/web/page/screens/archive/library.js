// The library: where it lies, whether there is room, and whether all of it is still there.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { confirm } from "../../dialogs.js";
import { bytes, count } from "../../format.js";
import { badge, bar, button, empty, figure, notice, problemNotice, when } from "../../parts.js";
import { link } from "../../route.js";
import { may, seesAll } from "../../session.js";
import { say } from "../../toasts.js";
import { state } from "./state.js";

const KINDS = { ok: "good", gone: "bad", full: "bad", readonly: "bad" };
const OPTIONS = ["dry_run", "import", "force"];
const WORDS = { dry_run: "dry", import: "import", force: "force" };

/** The last report, and the look that is under way. */
export async function askLibrary() {
  const found = await call("getReconciliation");
  return { ...found, running: found.job === null ? null : await call("getJob", { id: found.job }) };
}

export function library(view) {
  const found = view.data.library;
  if (!found) return problemNotice(view.errors.library ?? { status: 0, message: "" }, view.refresh);
  return html`<div class="archive-two">${place(view.data.archive)}${comparison(found, view)}</div>${report(found.report)}`;
}

function place({ library: shelf, items, bytes: size, yt_dlp: program, ffmpeg }) {
  return html`<section class="card" aria-labelledby="archive-place">
    <div class="card-head"><h2 id="archive-place">${text("archive.lib.place")}</h2>
      <span class="push">${badge(KINDS[shelf.status], text(`archive.lib.status.${shelf.status}`))}</span></div>
    <div class="card-body archive-account">
      ${shelf.reason && notice("bad", shelf.reason)}
      <dl class="pairs numbers">
        <dt>${text("archive.lib.path")}</dt><dd>${shelf.path ? html`<code>${shelf.path}</code>` : html`<span class="muted">${text("archive.lib.path.hidden")}</span>`}</dd>
        <dt>${text("archive.lib.free")}</dt><dd>${bytes(shelf.free_bytes)} <span class="muted">· ${text("archive.figure.free.least", { least: bytes(shelf.min_free_bytes) })}</span></dd>
        <dt>${text("archive.lib.videos")}</dt><dd>${count(items.done)} <span class="muted">· ${bytes(size)}</span></dd>
        <dt>${text("archive.lib.missing")}</dt><dd class=${items.missing ? "archive-warn" : ""}>${count(items.missing)}</dd>
        <dt>${text("archive.lib.ytdlp")}</dt><dd>${program.version ?? html`<span class="archive-bad">${text("archive.lib.ytdlp.none")}</span>`}</dd>
        <dt>${text("archive.lib.ffmpeg")}</dt><dd>${text(ffmpeg ? "archive.lib.ffmpeg.yes" : "archive.lib.ffmpeg.no")}</dd>
      </dl>
    </div>
  </section>`;
}

function comparison({ job, running }, view) {
  const choice = (name) => html`<label class="check"><input type="checkbox" name=${name} .checked=${state.look[name]} @change=${(event) => {
    state.look[name] = event.target.checked;
    view.update();
  }} /> <span>${text(`archive.lib.${WORDS[name]}`)}</span></label>`;
  const isKeeper = seesAll() && may("operate");
  return html`<section class="card" aria-labelledby="archive-check">
    <div class="card-head"><h2 id="archive-check">${text("archive.lib.check")}</h2></div>
    <div class="card-body archive-account">
      <p class="muted archive-small">${text("archive.lib.check.about")}</p>
      ${OPTIONS.filter((name) => name !== "force" || isKeeper).map(choice)}
      <div class="row">${button({
        label: text("archive.lib.start"), icon: "search", kind: "", needs: "submit", small: false,
        unless: job === null ? null : text("archive.lib.under.way", { id: String(job) }), run: () => start(view),
      })}
      ${job !== null && html`<span class="archive-looking" role="status"><span class="archive-spin" aria-hidden="true"></span>
        <span>${running?.progress?.note || running?.wait_reason || text("archive.lib.looking")}</span>
        <a class="archive-small" href=${link("requests", job)}>${text("archive.now.request", { id: String(job) })}</a></span>`}</div>
      ${running?.progress?.percent !== null && running?.progress ? bar(running.progress.percent / 100, text("archive.lib.looking")) : null}
    </div>
  </section>`;
}

async function start(view) {
  const body = { ...state.look };
  if (body.force && !body.dry_run) {
    const sure = await confirm({
      title: text("archive.lib.force.title"), about: text("archive.lib.force.about", { n: view.data.archive.items.done }), action: text("archive.lib.start"),
    });
    if (!sure) return;
  }
  await call("reconcileArchive", {}, { body });
  state.look.force = false;
  say(text("archive.lib.said"));
  view.refresh();
}

function report(found) {
  if (!found) return empty({ icon: "search", title: text("archive.lib.never"), about: text("archive.lib.never.about"), code: "headway archive check" });
  const numbers = [
    ["lost", found.lost.count, "bad"], ["found", found.found_again.count, ""], ["resized", found.resized.count, "warn"],
    ["orphans", found.orphans.count, "warn"], ["unfinished", found.unfinished.count, ""], ["unreadable", found.unreadable, "bad"],
    ["matched", found.imported.matched, ""], ["added", found.imported.added, ""],
  ];
  return html`<section aria-labelledby="archive-report">
    <div class="row"><h2 id="archive-report">${text("archive.lib.report")}</h2><span class="muted numbers">${when(found.at)}</span>
      <span class="push muted archive-small">${!found.refused && (found.dry_run ? text("archive.lib.dry.was") : text("archive.lib.changed", { n: found.changed }))}</span></div>
    ${found.refused && notice("bad", text("archive.lib.refused", { why: found.refused }))}
    <div class="figures archive-report">${numbers.map(([key, value, kind]) => figure({ label: text(`archive.lib.${key}`), value: count(value), kind: value ? kind : "none" }))}</div>
    ${paths("lost", found.lost, ({ path }) => path)}
    ${paths("found", found.found_again, ({ path }) => path)}
    ${paths("resized", found.resized, ({ path, was_bytes: was, size_bytes: size }) => `${path} (${bytes(was)} → ${bytes(size)})`)}
    ${paths("orphans", found.orphans, (path) => path)}
    ${paths("unfinished", found.unfinished, (id) => text("archive.lib.item", { id: String(id) }))}
    ${paths("left", found.imported.left, (path) => path)}
  </section>`;
}

function paths(key, { count: many, items }, words) {
  if (many === 0) return null;
  return html`<details class="card archive-paths"><summary>${text(`archive.lib.${key}`)} <span class="muted numbers">${count(many)}${many > items.length ? ` · ${text("archive.lib.first", { n: items.length })}` : ""}</span></summary>
    <ul>${items.map((each) => html`<li><code>${words(each)}</code></li>`)}</ul></details>`;
}
