// Batches: how far each is, and when it should be done.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { serverNow } from "../../clock.js";
import { clockTime, count, percent } from "../../format.js";
import { badge, button, empty, problemNotice, when } from "../../parts.js";
import { adjust, link } from "../../route.js";
import { openUpload } from "./upload.js";

const SIZE = 20;
const KINDS = { validating: "queued", in_progress: "running", finalizing: "running", completed: "completed", failed: "failed", expired: "failed", cancelling: "paused", cancelled: "" };
const OPEN = new Set(["validating", "in_progress", "finalizing", "cancelling"]);
const ENOUGH = 5; // lines that have ended, before anybody can say how long the others take

export function askBatches({ after }) {
  return { batches: () => call("listLlmBatches", { limit: SIZE, after }) };
}

export function isOpen({ status }) {
  return OPEN.has(status);
}

export function batchBadge({ status }) {
  return badge(KINDS[status] ?? "", text(`channels.batch.${status}`));
}

export function at(seconds) {
  return seconds ? when(new Date(seconds * 1000).toISOString()) : html`<span class="muted">–</span>`;
}

export function endedAt(batch) {
  return batch.completed_at ?? batch.failed_at ?? batch.expired_at ?? batch.cancelled_at;
}

/** Seconds until the rest is done if it goes on as it went; null: nobody can tell. */
function leftOf({ status, in_progress_at: began, request_counts: { total, completed, failed } }) {
  const ended = completed + failed;
  if (status !== "in_progress" || ended < ENOUGH || !began) return null;
  const took = serverNow() / 1000 - began;
  return took > 0 ? ((total - ended) * took) / ended : null;
}

export function progress(batch) {
  const { total, completed, failed } = batch.request_counts;
  const share = total > 0 ? (completed + failed) / total : 0;
  const label = text("channels.batch.progress", { share: percent(share) });
  return html`<span class="batch-progress"><span class="batch-bar" role="progressbar" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(share * 100)}>
      <span class="batch-done" --size=${String(total > 0 ? completed / total : 0)}></span><span class="batch-failed" --size=${String(total > 0 ? failed / total : 0)}></span></span>
    <span class="numbers batch-count">${total > 0 ? `${count(completed + failed)} / ${count(total)}` : "–"}</span></span>`;
}

export function timeLeft(batch) {
  const left = leftOf(batch);
  return left === null ? html`<span class="muted">–</span>` : text("channels.batch.about", { time: clockTime(left) });
}

export function nameOf({ id, metadata }) {
  return metadata?.name || metadata?.description || id;
}

export function batches(view) {
  const { batches: found } = view.data;
  if (!found) return problemNotice(view.errors.batches ?? { status: 0, message: "" }, view.refresh);
  const { after } = view.route.params;
  if (found.data.length === 0 && !after) return first();
  return html`<div class="table-frame"><table class="batch-table">
      <thead><tr><th scope="col">${text("channels.batch")}</th><th scope="col">${text("channels.state")}</th><th scope="col">${text("channels.lines")}</th><th scope="col" class="number">${text("channels.failed")}</th>
        <th scope="col">${text("channels.made")}</th><th scope="col">${text("channels.left.or")}</th></tr></thead>
      <tbody>${each(found.data, ({ id }) => id, batchRow)}</tbody></table></div>
    <nav class="pager" aria-label=${text("pager.pages")}>
      ${after && button({ label: text("channels.newest"), icon: "left", needs: null, run: () => adjust({ after: null }) })}
      ${found.has_more && button({ label: text("channels.older"), icon: "right", needs: null, run: () => adjust({ after: found.last_id }) })}
    </nav>`;
}

function batchRow(batch) {
  const { id, request_counts: { failed }, created_at: made, metadata } = batch;
  return html`<tr data-row><th scope="row"><a class="batch-name" href=${link("channels", "batches", id)}>${nameOf(batch)}</a>${metadata?.name && html`<span class="muted batch-id">${id}</span>`}</th>
    <td class="tight">${batchBadge(batch)}</td><td>${progress(batch)}</td>
    <td class="number ${failed > 0 ? "batch-bad" : "muted"}">${count(failed)}</td><td class="tight">${at(made)}</td>
    <td class="tight numbers">${isOpen(batch) ? timeLeft(batch) : at(endedAt(batch))}</td></tr>`;
}

function first() {
  return empty({
    icon: "list", title: text("channels.batches.none"), about: text("channels.batches.none.about"),
    code: `client = OpenAI(base_url="${location.origin}/v1", api_key="unused")  # ${text("channels.batches.token")}
file = client.files.create(file=open("lines.jsonl", "rb"), purpose="batch")
client.batches.create(input_file_id=file.id,
    endpoint="/v1/chat/completions", completion_window="24h")`,
    action: button({ label: text("channels.upload"), icon: "upload", kind: "", small: false, needs: "submit", run: () => openUpload() }),
  });
}
