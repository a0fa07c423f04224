// The list of subscriptions: what each should have, has, waits for and could not get.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { count } from "../../format.js";
import { badge, button, empty, pager, problemNotice, when } from "../../parts.js";
import { adjust, link } from "../../route.js";
import { actionsOf, openMore } from "./actions.js";
import { openAdd } from "./add.js";
import { figures, warnings } from "./overview.js";
import { now, subscriptionOf } from "./running.js";
import { learnNames } from "./state.js";

export function subscriptions(view) {
  const { data, errors, route } = view;
  const { q = "" } = route.params;
  const found = data.subscriptions;
  if (found) learnNames(found.items);
  return html`${warnings(data)}
    ${figures(data)}
    ${now(view)}
    ${found ? list(found, q, view) : problemNotice(errors.subscriptions ?? { status: 0, message: "" }, view.refresh)}`;
}

function list(found, q, view) {
  if (found.total === 0 && q === "") {
    return empty({
      icon: "film", title: text("archive.none"), about: text("archive.none.about"),
      code: "headway archive add https://videos.example/playlist/42 --quality 1080p",
      action: button({ label: text("archive.add"), icon: "plus", kind: "", small: false, needs: "submit", run: () => openAdd(view) }),
    });
  }
  return html`<section class="card" aria-labelledby="archive-subscriptions">
    <div class="card-head"><h2 id="archive-subscriptions">${text("archive.tab.subscriptions")} <span class="muted numbers">${count(found.total)}</span></h2>
      <label class="push archive-filter"><span class="visually-hidden">${text("archive.filter")}</span>
        <input type="search" data-filter name="q" placeholder=${text("archive.filter.hint")} .value=${q}
          @input=${(event) => adjust({ q: event.target.value.trim() || null, page: null })} /></label>
    </div>
    ${found.items.length === 0
      ? html`<p class="card-body muted">${text("archive.none.match", { q })}</p>`
      : html`<ul class="archive-list">${each(found.items, ({ id }) => id, (subscription) => row(subscription, view))}</ul>`}
  </section>
  ${pager(found)}`;
}

function row(subscription, view) {
  const { id, name, site, tenant } = subscription;
  const actions = Object.fromEntries(actionsOf(subscription, view).map((action) => [action.key, action]));
  const small = ({ label, run, unless, icon: drawing }, bare = false) =>
    button({ label, run, unless, icon: drawing, bare, needs: "submit" });
  return html`<li class="archive-row" data-row>
    <div class="archive-what">
      <a class="archive-name clip" href=${link("archive", "subscription", id)} title=${name}>${name}</a>
      <span class="clip muted archive-small"><a href=${link("upstreams", site)}>${site}</a>${tenant ? html` · ${text("archive.tenant", { name: tenant })}` : null}</span>
      <span class="row archive-states">${states(subscription, view)}</span>
    </div>
    ${numbers(subscription)}
    ${times(subscription)}
    <div class="row archive-actions">
      ${small(actions.refresh)}
      ${small(actions.download)}
      ${small(actions.pause ?? actions.resume, true)}
      ${button({ label: text("archive.do.more", { name }), icon: "more", bare: true, needs: null, run: () => openMore(subscription, view) })}
    </div>
  </li>`;
}

/** What is done for it now, in badges that lead to the request. */
export function states({ id, busy, paused, error }, view) {
  const runs = new Set((view.data.running ?? []).filter((job) => subscriptionOf(job) === id).map(({ type }) => type));
  const led = (request, kind, words) => html`<a class="archive-led" href=${link("requests", request)}>${badge(kind, words)}</a>`;
  return html`${paused && badge("paused", text("archive.paused"))}
    ${busy.listing && led(busy.listing, runs.has("list_fetch") ? "running" : "queued", text("archive.busy.list"))}
    ${busy.counting && led(busy.counting, runs.has("expected_total") ? "running" : "queued", text("archive.busy.count"))}
    ${runs.has("download") && badge("running", text("archive.state.running"))}
    ${busy.downloads_open > 0 && badge("queued", text("archive.busy.down", { n: busy.downloads_open }))}
    ${error && html`<span class="badge bad archive-error" title=${error}><span class="clip">${text("archive.trouble", { error })}</span></span>`}`;
}

/** Expected, on disk, pending and failed, as numbers and as one bar. */
export function numbers({ id, counts, expected_total: counted, complete }) {
  const expected = counted.value ?? (complete ? counts.listed : null);
  const how = counted.how ? text("archive.counted", { how: counted.how }) : text(complete ? "archive.counted.list" : "archive.counted.not");
  const shown = [
    ["expected", expected, null, how],
    ["ondisk", counts.on_disk, null, null],
    ["pending", counts.pending, null, null],
    ["failed", counts.failed, counts.failed > 0 && link("archive", "failures", { subscription: id }), null],
  ];
  return html`<div class="archive-numbers">
    <dl class="numbers">${shown.map(([key, value, href, title]) => html`<div class=${value ? key : "none"} title=${title}>
      <dt>${text(`archive.${key}`)}</dt><dd>${href ? html`<a href=${href}>${count(value)}</a>` : count(value)}</dd></div>`)}</dl>
    ${stack(counts, expected)}
  </div>`;
}

function stack(counts, expected) {
  const parts = { done: counts.on_disk, missing: counts.missing, failed: counts.failed, pending: counts.pending, skipped: counts.skipped };
  const known = Object.values(parts).reduce((sum, number) => sum + number, 0);
  const all = Math.max(known, expected ?? 0);
  return html`<span class="archive-stack" role="img" aria-label=${text("archive.share", { ...parts, all })} title=${text("archive.share", { ...parts, all })}>
    ${Object.entries(parts).map(([name, many]) => html`<span class=${name} --share=${String(all > 0 ? many / all : 0)}></span>`)}
  </span>`;
}

function times({ listed_at: listed, next_refresh_at: next, paused }) {
  return html`<dl class="archive-times numbers archive-small">
    <div><dt class="muted">${text("archive.read")}</dt><dd>${listed ? when(listed) : text("archive.never")}</dd></div>
    <div><dt class="muted">${text("archive.next")}</dt><dd>${paused ? text("archive.paused") : next ? when(next) : text("archive.next.hand")}</dd></div>
  </dl>`;
}
