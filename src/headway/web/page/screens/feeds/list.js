// The pane of articles: newest first, with the words to find some of them, and what has come since.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { icon } from "../../icons.js";
import { button, empty, loading, problemNotice, when } from "../../parts.js";
import { adjust, go, link } from "../../route.js";
import { refusedBecause } from "../../session.js";
import { report, say } from "../../toasts.js";
import { addFeed } from "./add.js";
import { markAllRead } from "./manage.js";
import { here, keyOf, loadMore, mark, openId, placeOf, showFresh, state, viewOf } from "./state.js";

const TYPING_MS = 300;

export function listPane(view) {
  const { route } = view;
  const { list } = state;
  const ready = list.known && list.key === keyOf(route);
  return html`<section class="pane feeds-list" aria-label=${text("feeds.articles")}>
    <div class="feeds-bar">
      <div class="row">
        <a class="feeds-button narrow-only" href=${here(route, { pane: "feeds" })}>${icon("left")}<span>${text("feeds.side")}</span></a>
        <div class="segments" role="group" aria-label=${text("feeds.which")}>${["unread", "all", "starred"].map((which) => html`<a
          href=${link("feeds", ...route.path, { q: route.params.q, view: which })} aria-current=${viewOf(route) === which ? "true" : null}>${text(`feeds.view.${which}`)}</a>`)}</div>
        <span class="push row">
          ${button({ label: text("feeds.markAll"), icon: "check", bare: true, needs: "submit", keys: "Shift+A", title: `${text("feeds.markAll")} (Shift+A)`, run: () => markAllRead(view) })}
          <a class="feeds-button bare narrow-only" href=${here(route, { pane: "about" })} title=${text("feeds.about")} aria-label=${text("feeds.about")}>${icon("info")}</a>
        </span>
      </div>
      <label class="feeds-search">${icon("search")}<span class="visually-hidden">${text("feeds.search")}</span>
        <input type="search" data-filter placeholder=${text("feeds.search")} autocomplete="off" spellcheck="false" maxlength="500"
          .value=${state.typed ?? route.params.q ?? ""} @input=${typing(view)} /></label>
    </div>
    ${ready && list.fresh.length > 0 && html`<button type="button" class="feeds-fresh" @click=${() => renew(view)}>${icon("up")}<span>${text("feeds.fresh", { n: list.fresh.length })}${list.fresh.length >= 40 ? "+" : ""}</span></button>`}
    <p class="visually-hidden" role="status">${ready && list.fresh.length > 0 ? text("feeds.fresh", { n: list.fresh.length }) : ""}</p>
    ${view.errors.articles && !ready ? problemNotice(view.errors.articles, view.refresh) : !ready ? loading() : list.items.length === 0 ? nothing(view) : stories(view)}
  </section>`;
}

function renew(view) {
  showFresh();
  view.update();
  requestAnimationFrame(() => document.querySelector(".feeds-stories")?.scrollTo(0, 0));
}

function typing(view) {
  return ({ target }) => {
    state.typed = target.value;
    clearTimeout(state.timer);
    state.timer = setTimeout(() => {
      state.timer = 0;
      adjust({ q: state.typed?.trim() || null, article: null });
      view.update();
    }, TYPING_MS);
  };
}

function stories(view) {
  const { list } = state;
  const titles = new Map((view.data.feeds?.feeds ?? []).map(({ id, title }) => [id, title]));
  return html`<div class="feeds-stories" role="region" aria-label=${text("feeds.articles")}>
    <ol>${each(list.items, ({ id }) => id, (item) => story(item, titles.get(item.feed_id) ?? "", view))}</ol>
    ${list.next
      ? html`<button type="button" class="quiet small feeds-more" aria-busy=${list.loading ? "true" : null} ref=${watch(view)} @click=${() => loadMore(view)}>${text("feeds.older")}</button>`
      : html`<p class="feeds-end muted">${text("feeds.end", { n: list.items.length })}</p>`}
  </div>`;
}

/** More is asked for as soon as its button comes into sight. */
function watch(view) {
  return (element) => new IntersectionObserver((seen) => seen.some(({ isIntersecting }) => isIntersecting) && loadMore(view)).observe(element);
}

function story(item, feed, view) {
  const current = openId(view.route) === item.id;
  const title = item.title || item.summary || text("feeds.untitled");
  return html`<li class="story ${item.is_read ? "" : "unread"} ${current ? "current" : ""}" data-row data-article=${item.id}>
    <a href=${here(view.route, { article: item.id })} aria-current=${current ? "true" : null}>
      <span class="story-top"><span class="story-dot">${!item.is_read && html`<span class="visually-hidden">${text("feeds.unread")}</span>`}</span><span class="clip">${feed}</span><span class="story-time">${when(item.at)}</span></span>
      <span class="story-title">${title}</span>
      ${item.title && item.summary && html`<span class="story-excerpt">${item.summary}</span>`}
    </a>
    <button type="button" class="bare small story-star" aria-pressed=${String(item.is_starred)} aria-label=${text("feeds.star.of", { title })} title=${text(item.is_starred ? "feeds.unstar" : "feeds.star")}
      aria-disabled=${refusedBecause("submit") ? "true" : null} @click=${() => toggleStar(view, item)}>${icon("star")}</button>
  </li>`;
}

export async function toggleStar(view, item) {
  const refused = refusedBecause("submit");
  if (refused) return say(refused, { kind: "warn" });
  await mark(view, item.id, { is_starred: !item.is_starred }).catch(report);
}

export async function toggleRead(view, item) {
  const refused = refusedBecause("submit");
  if (refused) return say(refused, { kind: "warn" });
  await mark(view, item.id, { is_read: !item.is_read }).catch(report);
}

/** The next or previous one is opened; at the end of what is here, more is fetched. */
export async function step(view, by) {
  const at = state.list.items.findIndex(({ id }) => id === openId(view.route));
  if (by > 0 && at === state.list.items.length - 1) await loadMore(view);
  const item = state.list.items[at < 0 ? 0 : at + by];
  if (!item) return;
  // Going back leads to the list, and not through everything that was read.
  if (openId(view.route) === null) go(here(view.route, { article: item.id }));
  else adjust({ article: item.id });
  requestAnimationFrame(() => document.querySelector(`[data-article="${item.id}"]`)?.scrollIntoView({ block: "nearest" }));
}

/** The focus moves along the list; nothing is opened. */
export function pass(by) {
  const rows = [...document.querySelectorAll(".story")];
  const focused = rows.findIndex((row) => row.contains(document.activeElement));
  const at = focused < 0 ? rows.findIndex((row) => row.matches(".current")) : focused;
  const row = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  row?.querySelector("a").focus();
  row?.scrollIntoView({ block: "nearest" });
}

function nothing(view) {
  const { route } = view;
  const waits = (view.data.feeds?.feeds ?? []).some(({ status }) => status === "new");
  if (route.params.q) {
    return empty({ icon: "search", title: text("feeds.none.search"), about: text("feeds.none.search.about"), action: html`<a class="feeds-button" href=${link("feeds", { q: route.params.q, view: "all" })}>${text("feeds.none.everywhere")}</a>` });
  }
  if (waits && placeOf(route).kind !== "folder") return empty({ icon: "retry", title: text("feeds.none.waits"), about: text("feeds.none.waits.about") });
  const kind = viewOf(route);
  return empty({
    icon: kind === "starred" ? "star" : "check",
    title: text(`feeds.none.${kind}`),
    about: text(`feeds.none.${kind}.about`),
    action: kind === "unread" ? html`<a class="feeds-button" href=${link("feeds", ...route.path, { view: "all" })}>${text("feeds.none.showAll")}</a>` : null,
  });
}

/** Nobody has subscribed to anything yet. */
export function firstSteps(view, importList) {
  return empty({
    icon: "feed",
    title: text("feeds.first"),
    about: text("feeds.first.about"),
    code: "headway feeds add blog.example.com --folder News",
    action: html`<div class="row">
      ${button({ label: text("feeds.add"), icon: "plus", kind: "", small: false, needs: "submit", run: () => addFeed(view) })}
      ${button({ label: text("feeds.import.long"), icon: "upload", small: false, needs: "submit", run: () => importList(view) })}
    </div>`,
  });
}
