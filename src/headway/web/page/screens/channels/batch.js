// One batch: its counts and times, what went wrong with its lines, its files.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { addressOfCall, call } from "../../api.js";
import { confirm } from "../../dialogs.js";
import { bytes, count } from "../../format.js";
import { icon } from "../../icons.js";
import { button, figure, problemNotice } from "../../parts.js";
import { link } from "../../route.js";
import { say } from "../../toasts.js";
import { at, batchBadge, endedAt, isOpen, nameOf, progress, timeLeft } from "./batches.js";

const SHOWN = 50; // lines that went wrong
const MOST_BYTES = 500_000; // of a file that is read here; a longer one is downloaded
const TIMES = ["created_at", "in_progress_at", "finalizing_at", "completed_at", "failed_at", "expired_at", "cancelling_at", "cancelled_at"];
const files = new Map(); // by id: what is in them never changes

export function askBatch(id) {
  return { batch: () => withFiles(id) };
}

async function withFiles(id) {
  const batch = await call("getLlmBatch", { id });
  const [input, output, wrong] = await Promise.all([fileOf(batch.input_file_id), fileOf(batch.output_file_id), fileOf(batch.error_file_id)]);
  if (wrong && !wrong.lines && wrong.bytes <= MOST_BYTES) wrong.lines = await linesOf(wrong);
  return { ...batch, input, output, wrong };
}

/** Files are kept for a while only: one that is gone is not there. */
async function fileOf(id) {
  if (!id) return null;
  try {
    if (!files.has(id)) files.set(id, await call("getFile", { id }));
    return files.get(id);
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

async function linesOf({ id }) {
  const content = await call("getFileContent", { id }, { as: "text" });
  return content.split("\n").filter(Boolean).slice(0, SHOWN).map((line) => {
    const { custom_id: name, response, error } = JSON.parse(line);
    return { name, code: response?.status_code ?? error?.code, message: response?.body?.error?.message ?? error?.message ?? "" };
  });
}

export function batchPage(view) {
  const { batch } = view.data;
  if (!batch) return problemNotice(view.errors.batch ?? { status: 404, message: "" }, view.refresh);
  const { total, completed, failed } = batch.request_counts;
  return html`<div class="row channel-top"><strong class="batch-title">${nameOf(batch)}</strong> ${batchBadge(batch)}
      <span class="push row">${button({ label: text("channels.batch.cancel"), icon: "stop", kind: "quiet danger", needs: "submit", unless: cannotCancel(batch), run: () => cancel(batch, view) })}</span></div>
    <nav class="row channel-links" aria-label=${text("channels.elsewhere")}><a href=${link("channels", "batches")}>${icon("left")}${text("channels.tab.batches")}</a>
      <a href=${link("requests", { q: "type:llm.line status:open" })}>${icon("list")}${text("channels.batch.requests")}</a></nav>
    <div class="card card-body batch-whole">${progress(batch)}</div>
    <div class="figures">
      ${figure({ label: text("channels.lines"), value: count(total) })}
      ${figure({ label: text("channels.answered"), value: count(completed) })}
      ${figure({ label: text("channels.failed"), value: count(failed), kind: failed > 0 ? "bad" : "none" })}
      ${isOpen(batch) ? figure({ label: text("channels.left"), value: timeLeft(batch) }) : figure({ label: text("channels.ended"), value: at(endedAt(batch)) })}
    </div>
    ${faults(batch)}
    <div class="channel-halves">${fileSection(batch)}${timeSection(batch)}</div>
    ${batch.wrong && wrongLines(batch.wrong, failed)}`;
}

function cannotCancel({ status }) {
  return ["validating", "in_progress", "finalizing"].includes(status) ? null : text("channels.batch.over", { state: text(`channels.batch.${status}`) });
}

async function cancel(batch, view) {
  const { id, request_counts: { total, completed, failed } } = batch;
  const sure = await confirm({
    title: text("channels.batch.cancel.title", { name: nameOf(batch) }),
    about: text("channels.batch.cancel.about", { n: Math.max(0, total - completed - failed), kept: count(completed) }),
    action: text("channels.batch.cancel"),
  });
  if (!sure) return;
  await call("cancelLlmBatch", { id });
  say(text("channels.did.cancel", { name: nameOf(batch) }));
  view.refresh();
}

/** What is wrong with the file, so that nothing of it ran. */
function faults({ errors }) {
  const found = errors?.data ?? [];
  if (found.length === 0) return null;
  return html`<section><h2>${text("channels.faults")}</h2><div class="table-frame"><table>
    <thead><tr><th scope="col" class="number">${text("channels.line")}</th><th scope="col">${text("channels.fault")}</th><th scope="col">${text("channels.code")}</th></tr></thead>
    <tbody>${each(found.slice(0, SHOWN), (fault, index) => index, ({ line, message, code }) => html`<tr><td class="number">${count(line)}</td><td>${message}</td><td><code>${code}</code></td></tr>`)}</tbody></table></div></section>`;
}

function fileSection(batch) {
  const kinds = [["output", batch.output, batch.output_file_id], ["wrong", batch.wrong, batch.error_file_id], ["input", batch.input, batch.input_file_id]];
  return html`<section><h2>${text("channels.files")}</h2><ul class="batch-files card">${kinds.map(([kind, file, id]) => html`<li><span>${text(`channels.file.${kind}`)}</span>
    ${file
      ? html`<span class="batch-file"><a class="channel-save" download=${file.filename} href=${addressOfCall("getFileContent", { id: file.id })}>${icon("download")}${file.filename}</a><span class="muted numbers">${bytes(file.bytes)}</span></span>`
      : html`<span class="muted">${text(id ? "channels.file.gone" : isOpen(batch) ? "channels.file.notyet" : "channels.file.none")}</span>`}</li>`)}</ul></section>`;
}

function timeSection(batch) {
  const happened = TIMES.filter((name) => batch[name]);
  return html`<section><h2>${text("channels.times")}</h2><div class="card card-body"><dl class="pairs">
    ${happened.map((name) => html`<dt>${text(`channels.time.${name}`)}</dt><dd>${at(batch[name])}</dd>`)}
    ${isOpen(batch) && html`<dt>${text("channels.time.expires_at")}</dt><dd>${at(batch.expires_at)}</dd>`}
    <dt>${text("channels.window")}</dt><dd>${batch.completion_window}</dd>
    <dt>${text("channels.endpoint")}</dt><dd><code>${batch.endpoint}</code></dd>
    <dt>${text("channels.id")}</dt><dd><code>${batch.id}</code></dd>
  </dl></div></section>`;
}

function wrongLines({ lines, bytes: size }, failed) {
  if (!lines) return html`<p class="muted">${text("channels.wrong.long", { size: bytes(size) })}</p>`;
  return html`<section><h2>${text("channels.wrong")}</h2><div class="table-frame"><table>
    <thead><tr><th scope="col"><code>custom_id</code></th><th scope="col">${text("channels.code")}</th><th scope="col">${text("channels.fault")}</th></tr></thead>
    <tbody>${each(lines, (line, index) => index, ({ name, code, message }) => html`<tr data-row><th scope="row"><code>${name}</code></th><td class="tight"><code>${code}</code></td><td>${message}</td></tr>`)}</tbody></table></div>
    ${failed > lines.length && html`<p class="muted">${text("channels.wrong.more", { n: failed - lines.length })}</p>`}</section>`;
}
