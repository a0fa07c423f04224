// What is beside the list while no article is open: how the feed, the folder or all of them do.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { count, duration } from "../../format.js";
import { icon } from "../../icons.js";
import { badge, button, countdown, notice, problemNotice, when } from "../../parts.js";
import { link } from "../../route.js";
import { changeFeed, feedBusy, feedHere, feedsOf, intervalText, markAllRead, refreshFeed, refreshHere, refreshUnless, removeFeed, removeFolder, renameFolder, togglePaused } from "./manage.js";
import { here, placeOf } from "./state.js";
import { byTitle, foldersOf, isBelow, isInTrouble, unreadOf } from "./tree.js";

const KEYS = [["j", "k", "feeds.key.move"], ["n", "p", "feeds.key.pass"], ["m", "feeds.key.read"], ["s", "feeds.key.star"], ["o", "feeds.key.open"], ["r", "feeds.key.refresh"], ["a", "feeds.key.add"], ["Shift A", "feeds.key.all"], ["/", "feeds.key.search"]];
const KINDS = { ok: "good", new: "blue", error: "bad", gone: "bad", moved: "warn", paused: "paused" };

export function aboutPane(view) {
  const { kind, name } = placeOf(view.route);
  const feed = feedHere(view);
  return html`<section class="pane feeds-reader feeds-about" aria-label=${text("feeds.about")}>
    <div class="feeds-bar row narrow-only"><a class="feeds-button" href=${here(view.route)}>${icon("left")}<span>${text("feeds.back")}</span></a></div>
    <div class="feeds-page">${kind === "feed" ? (feed ? aboutFeed(view, feed) : problemNotice({ status: 404, message: text("feeds.feed.gone") })) : kind === "folder" ? aboutFolder(view, name) : aboutAll(view)}</div>
  </section>`;
}

function aboutFeed(view, feed) {
  return html`<header><p class="feeds-from">${feed.site_url && html`<a href=${feed.site_url} target="_blank" rel="noopener noreferrer">${hostOf(feed.site_url)}</a>`}</p>
      <h2>${feed.title} ${badge(KINDS[feed.status], text(`feeds.status.${feed.status}`))}</h2>
      ${feed.description && html`<p class="muted">${feed.description}</p>`}</header>
    <div class="row">
      ${button({ label: text("feeds.refresh"), icon: "retry", needs: "submit", keys: "r", unless: feedBusy(feed), run: () => refreshFeed(view, feed) })}
      ${button({ label: text("feeds.settings"), icon: "edit", needs: "submit", run: () => changeFeed(view, feed) })}
      ${button({ label: text(feed.paused ? "feeds.resume" : "feeds.pause"), icon: feed.paused ? "play" : "pause", needs: "submit", run: () => togglePaused(view, feed) })}
      ${button({ label: text("feeds.markAll"), icon: "check", needs: "submit", unless: feed.unread_count > 0 ? null : text("feeds.read.none"), run: () => markAllRead(view) })}
      ${button({ label: text("feeds.remove"), icon: "trash", kind: "quiet danger", needs: "submit", run: () => removeFeed(view, feed) })}
    </div>
    ${(feed.error || feed.status === "gone" || feed.status === "moved") && trouble(feed)}
    ${feed.note && notice("", feed.note)}
    <dl class="pairs">
      <dt>${text("feeds.nextRefresh")}</dt><dd class="numbers">${feed.refreshing ? text("feeds.refreshing") : feed.next_refresh_at ? countdown(feed.next_refresh_at) : html`<span class="muted">${text(feed.paused ? "feeds.next.paused" : "feeds.next.none")}</span>`}</dd>
      <dt>${text("feeds.lastFetched")}</dt><dd>${when(feed.last_fetched)}</dd>
      <dt>${text("feeds.field.interval")}</dt><dd>${intervalText(feed.refresh_interval)}${feed.adaptive && ` · ${text("feeds.adaptive.now", { time: duration(feed.effective_interval * 60) })}`}</dd>
      <dt>${text("feeds.articles")}</dt><dd class="numbers">${text("feeds.counts", { n: feed.article_count, unread: count(feed.unread_count) })}</dd>
      <dt>${text("feeds.field.folder")}</dt><dd>${feed.folder ? html`<a href=${link("feeds", "folder", feed.folder)}>${feed.folder}</a>` : html`<span class="muted">${text("feeds.add.noFolder")}</span>`}</dd>
      <dt>${text("feeds.field.url")}</dt><dd><a href=${feed.url} target="_blank" rel="noopener noreferrer">${feed.url}</a></dd>
    </dl>`;
}

function hostOf(address) {
  try {
    return new URL(address).host;
  } catch {
    return address;
  }
}

function trouble(feed) {
  return html`<div class="notice ${feed.status === "moved" ? "" : "bad"}" role="status">
    <p><strong>${text(`feeds.trouble.${feed.status}`, { n: feed.failures })}</strong></p>
    ${feed.error && html`<p>${feed.error}</p>`}
    <p class="muted">${text(`feeds.trouble.${feed.status}.do`)}${feed.last_tried && html` (${when(feed.last_tried)})`}</p></div>`;
}

function aboutFolder(view, path) {
  const inside = feedsOf(view).filter(({ folder }) => isBelow(folder, path));
  if (inside.length === 0) return problemNotice({ status: 404, message: text("feeds.folder.gone") });
  return html`<header><h2>${icon("folder")} ${path}</h2>
      <p class="muted">${text("feeds.folder.counts", { n: inside.length, unread: count(unreadOf(inside)) })}</p></header>
    <div class="row">
      ${button({ label: text("feeds.refresh"), icon: "retry", needs: "submit", keys: "r", unless: refreshUnless(view), run: () => refreshHere(view) })}
      ${button({ label: text("feeds.markAll"), icon: "check", needs: "submit", run: () => markAllRead(view) })}
      ${button({ label: text("feeds.folder.rename"), icon: "edit", needs: "submit", run: () => renameFolder(view, path) })}
      ${button({ label: text("feeds.folder.remove"), icon: "trash", kind: "quiet danger", needs: "submit", run: () => removeFolder(view, path) })}
    </div>
    ${troubled(view, inside)}
    ${list(text("feeds.inside"), byTitle(inside), (feed) => text("feeds.counts", { n: feed.article_count, unread: count(feed.unread_count) }))}`;
}

function aboutAll(view) {
  const feeds = feedsOf(view);
  const health = view.data.health;
  return html`<header><h2>${text("feeds.welcome")}</h2>
      <p class="muted">${text("feeds.all.counts", { n: feeds.length, unread: count(unreadOf(feeds)), folders: count(foldersOf(feeds).length) })}</p></header>
    ${health && html`<p class="row">${badge(health.status === "healthy" ? "good" : "bad", text(`feeds.health.${health.status}`))}
      <span class="muted numbers">${text("feeds.health.counts", { running: count(health.queues.high.running + health.queues.default.running), waiting: count(health.total_pending) })}</span></p>`}
    ${troubled(view, feeds)}
    <section class="feeds-keys"><h3>${text("shell.help")}</h3>
      <dl class="feeds-shortcuts">${KEYS.map((row) => html`<dt>${row.slice(0, -1).map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${text(row.at(-1))}</dd>`)}</dl></section>`;
}

function troubled(view, feeds) {
  const bad = feeds.filter(isInTrouble);
  return bad.length > 0 && list(text("feeds.trouble.n", { n: bad.length }), bad, (feed) => html`${badge(KINDS[feed.status], text(`feeds.status.${feed.status}`))} ${feed.error ?? text(`feeds.trouble.${feed.status}.do`)}`);
}

function list(title, feeds, about) {
  return html`<section><h3>${title}</h3><dl class="feeds-lines">${each(feeds.slice(0, 100), ({ id }) => id, (feed) => html`<dt><a href=${link("feeds", "feed", feed.id)}>${feed.title}</a></dt><dd class="muted">${about(feed)}</dd>`)}</dl></section>`;
}
