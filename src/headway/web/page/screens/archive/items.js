// One subscription: its numbers, what can be done for it, and its videos.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { addressOfCall } from "../../api.js";
import { bytes, clockTime, count, percent } from "../../format.js";
import { icon } from "../../icons.js";
import { badge, bar, button, empty, loading, pager, problemNotice, when } from "../../parts.js";
import { adjust, link } from "../../route.js";
import { actionsOf } from "./actions.js";
import { actionsOfItem } from "./item-actions.js";
import { progressOf } from "./running.js";
import { learnNames } from "./state.js";
import { numbers, states } from "./subscriptions.js";

const STATES = ["found", "queued", "done", "failed", "missing", "skipped"];
const KINDS = { done: "good", queued: "queued", failed: "failed", missing: "warn", running: "running" };

export function subscriptionPage(view) {
  const { subscription, items } = view.data;
  const back = html`<p class="archive-back"><a href=${link("archive")}>${icon("left")}${text("archive.back")}</a></p>`;
  if (!subscription) {
    const error = view.errors.subscription;
    return html`${back}${error ? problemNotice(error, error.status === 404 ? null : view.refresh) : loading()}`;
  }
  learnNames([subscription]);
  return html`${back}${head(subscription, view)}${items ? list(subscription, items, view) : null}`;
}

function head(subscription, view) {
  const { site, url, listed_at: listed, next_refresh_at: next, counts, paused, tenant } = subscription;
  return html`<section class="card">
    <div class="card-body archive-head">
      <div class="archive-what">
        <a class="clip" href=${url} target="_blank" rel="noreferrer noopener">${url}</a>
        <span class="row archive-states"><a class="archive-small" href=${link("upstreams", site)}>${site}</a>${tenant ? html`<span class="muted archive-small">${text("archive.tenant", { name: tenant })}</span>` : null}${states(subscription, view)}</span>
      </div>
      ${numbers(subscription)}
      <dl class="pairs archive-small numbers">
        <dt>${text("archive.read")}</dt><dd>${listed ? when(listed) : text("archive.never")}</dd>
        <dt>${text("archive.next")}</dt><dd>${paused ? text("archive.paused") : next ? when(next) : text("archive.next.hand")}</dd>
        <dt>${text("archive.listed")}</dt><dd>${count(counts.listed)}${counts.gone > 0 ? html` <span class="muted">· ${count(counts.gone)} ${text("archive.gone")}</span>` : null}</dd>
        <dt>${text("archive.room")}</dt><dd>${bytes(counts.bytes)}</dd>
      </dl>
    </div>
    <div class="card-body row archive-toolbar">${actionsOf(subscription, view).map(({ label, about, icon: drawing, run, unless, danger }) =>
      button({ label, run, unless, icon: drawing, title: about, needs: "submit", kind: danger ? "quiet danger" : "quiet" }))}</div>
  </section>`;
}

function list(subscription, found, view) {
  const { state = null, q = "" } = view.route.params;
  const { counts } = subscription;
  const many = { found: counts.pending - counts.queued, queued: counts.queued, done: counts.on_disk, failed: counts.failed, missing: counts.missing, skipped: counts.skipped };
  if (found.total === 0 && !state && q === "") {
    return empty({ icon: "film", title: text("archive.items.none"), about: text("archive.items.none.about") });
  }
  const choice = (name, number) => html`<a href=${link("archive", "subscription", subscription.id, { q, state: name })} aria-current=${name === state ? "true" : null}
    >${text(`archive.state.${name ?? "all"}`)} <span class="numbers">${count(number)}</span></a>`;
  return html`<section aria-labelledby="archive-items">
    <div class="row"><h2 id="archive-items">${text("archive.items")}</h2>
      <nav class="segments archive-choices" aria-label=${text("archive.items.states")}>${choice(null, counts.listed + counts.gone)}${STATES.map((name) => choice(name, many[name]))}</nav>
      <label class="push archive-filter"><span class="visually-hidden">${text("archive.items.filter")}</span>
        <input type="search" data-filter name="q" placeholder=${text("archive.items.filter.hint")} .value=${q}
          @input=${(event) => adjust({ q: event.target.value.trim() || null, page: null })} /></label></div>
    ${found.items.length === 0 ? html`<p class="muted">${text("archive.items.no.match")}</p>` : table(found.items, view)}
  </section>${pager(found)}`;
}

function table(items, view) {
  const running = new Map((view.data.running ?? []).filter(({ labels }) => labels.item).map((job) => [Number(job.labels.item), job]));
  return html`<div class="table-frame"><table class="archive-items">
    <thead><tr><th scope="col">${text("archive.item")}</th><th scope="col">${text("archive.item.state")}</th>
      <th scope="col" class="number">${text("archive.item.size")}</th><th scope="col" class="number">${text("archive.item.duration")}</th>
      <th scope="col">${text("archive.item.date")}</th><th scope="col"><span class="visually-hidden">${text("archive.item.actions")}</span></th></tr></thead>
    <tbody>${each(items, ({ id }) => id, (item) => row(item, running.get(item.id), view))}</tbody>
  </table></div>`;
}

function row(item, job, view) {
  const { id, title, uploader, state, size_bytes: size, duration_s: length, published_at: at, url, files, gone_at: gone } = item;
  const name = title ?? text("archive.item.untitled");
  return html`<tr data-row>
    <th scope="row" class="archive-item"><div>
      ${thumbnail(id, files, view.data.archive.library)}
      <span class="archive-what"><a class="clip archive-name" href=${url} target="_blank" rel="noreferrer noopener" title=${name}>${name}</a>
        <span class="clip muted archive-small">${[uploader, gone && text("archive.item.gone")].filter(Boolean).join(" · ")}</span>
        ${job ? progress(name, job) : why(item)}</span>
    </div></th>
    <td class="tight">${badge(KINDS[job ? "running" : state] ?? "", text(`archive.state.${job ? "running" : state}`))}</td>
    <td class="number tight">${size === null ? "–" : bytes(size)}</td>
    <td class="number tight">${length === null ? "–" : clockTime(length)}</td>
    <td class="tight numbers">${when(at)}</td>
    <td class="tight"><div class="row">${actionsOfItem(item, view)}</div></td>
  </tr>`;
}

/** A library that is away has none to show. */
function thumbnail(id, files, { status, free_bytes: free }) {
  const isThere = files?.thumbnail && status !== "gone" && free !== null;
  const hide = (event) => event.target.classList.add("broken");
  return html`<span class="archive-thumb">${icon("film")}${isThere
    ? html`<img alt="" loading="lazy" decoding="async" src=${addressOfCall("getItemFile", { id, kind: "thumbnail" })} @error=${hide} />`
    : null}</span>`;
}

function progress(title, job) {
  const { share, speed, left } = progressOf(job);
  return html`<span class="archive-progress numbers archive-small">${bar(share, text("archive.now.progress", { title }))}
    <span>${share === null ? null : percent(share)}</span>
    <span class="muted">${[speed, left && text("archive.now.left", { time: left })].filter(Boolean).join(" · ")}</span></span>`;
}

const SAID = { "left out by hand": "archive.why.left", "deleted by hand": "archive.why.deleted" };

/** Why it is not here, in words. */
function why({ state, reason, failure }) {
  if (!["failed", "skipped", "missing"].includes(state) || !reason) return null;
  const words = SAID[reason] ? text(SAID[reason]) : failure === "depth" ? text("archive.why.depth") : reason;
  const kind = state === "failed" && failure ? `${text(`archive.class.${failure}`)}: ` : "";
  return html`<span class="clip archive-small ${state === "failed" ? "archive-bad" : "muted"}" title=${reason}>${kind}${words}</span>`;
}
