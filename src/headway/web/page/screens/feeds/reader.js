// The pane for reading one article.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { bytes, exactTime } from "../../format.js";
import { icon } from "../../icons.js";
import { button, loading, problemNotice, when } from "../../parts.js";
import { link } from "../../route.js";
import { say } from "../../toasts.js";
import "./article.js";
import { step, toggleRead, toggleStar } from "./list.js";
import { here, known, openId } from "./state.js";

export function readerPane(view) {
  const id = openId(view.route);
  const whole = view.data.article?.id === id ? view.data.article : null;
  const failed = !whole && !view.loading ? view.errors.article : null;
  // A pane for each article, so that each begins at its top.
  return html`${each([id], (key) => key, () => html`<section class="pane feeds-reader" aria-label=${text("feeds.reader")}>
    ${tools(view, whole ?? known(id))}
    <div class="feeds-page">${failed ? problemNotice(failed, view.refresh) : article(view, whole ?? known(id), whole)}</div>
  </section>`)}`;
}

/** The article as it is known: its text, or else what the list has of it. */
export function openArticle(view) {
  const id = openId(view.route);
  return view.data.article?.id === id ? view.data.article : known(id);
}

function tools(view, item) {
  return html`<div class="feeds-bar row">
    <a class="feeds-button" href=${here(view.route)}>${icon("left")}<span>${text("feeds.back")}</span></a>
    <span class="row push">
      ${button({ label: text("feeds.previous"), icon: "up", bare: true, needs: null, keys: "k", title: `${text("feeds.previous")} (k)`, run: () => step(view, -1) })}
      ${button({ label: text("feeds.next"), icon: "down", bare: true, needs: null, keys: "j", title: `${text("feeds.next")} (j)`, run: () => step(view, 1) })}
      ${item && html`${button({ label: text("feeds.read"), icon: "check", needs: "submit", keys: "m", pressed: item.is_read, title: `${text(item.is_read ? "feeds.markUnread" : "feeds.markRead")} (m)`, run: () => toggleRead(view, item) })}
        ${button({ label: text("feeds.star"), icon: "star", needs: "submit", keys: "s", pressed: item.is_starred, title: `${text(item.is_starred ? "feeds.unstar" : "feeds.star")} (s)`, run: () => toggleStar(view, item) })}
        ${button({ label: text("feeds.archive"), icon: "film", bare: true, needs: "submit", run: () => archive(item) })}`}
    </span>
  </div>`;
}

function article(view, item, whole) {
  if (!item) return loading();
  const feed = view.data.feeds?.feeds.find(({ id }) => id === item.feed_id);
  const title = item.title || text("feeds.untitled");
  return html`<article lang=${feed?.language ?? null}>
    <header>
      <p class="feeds-from"><a href=${link("feeds", "feed", item.feed_id)}>${feed?.title ?? item.feed_id}</a>${item.author && html`<span>${item.author}</span>`}<span title=${exactTime(Date.parse(item.at))}>${when(item.at)}</span></p>
      <h2>${item.link ? html`<a href=${item.link} target="_blank" rel="noopener noreferrer">${title}</a>` : title}</h2>
      ${item.categories.length > 0 && html`<p class="feeds-tags">${item.categories.slice(0, 8).map((name) => html`<span class="mark">${name}</span> `)}</p>`}
    </header>
    ${!whole ? loading() : whole.content ? html`<hw-article class="article-text" .base=${item.link} .content=${whole.content}></hw-article>` : html`<p class="muted">${item.summary ?? text("feeds.noText")}</p>`}
    ${item.enclosures.length > 0 && files(item)}
    ${item.link && html`<p class="feeds-original"><a href=${item.link} target="_blank" rel="noopener noreferrer">${icon("link")} ${text("feeds.original")}</a> <kbd>o</kbd></p>`}
  </article>`;
}

function files(item) {
  return html`<section class="feeds-files"><h3>${text("feeds.files")}</h3>
    <ul>${item.enclosures.map((file) => html`<li>${icon("download")}<a class="clip" href=${file.url} target="_blank" rel="noopener noreferrer">${nameOfFile(file.url)}</a>
      <span class="muted">${[file.type, file.length ? bytes(file.length) : null].filter(Boolean).join(" · ")}</span>
      ${button({ label: text("feeds.archive"), needs: "submit", run: () => archive(item, file.url) })}</li>`)}</ul></section>`;
}

function nameOfFile(address) {
  try {
    const { pathname, host } = new URL(address);
    return decodeURIComponent(pathname.split("/").pop()) || host;
  } catch {
    return address;
  }
}

async function archive(item, url = null) {
  try {
    const sent = await call("archiveArticle", { id: item.id }, { body: { url } });
    say(text("feeds.archive.sent", { id: sent.id }));
  } catch (error) {
    const why = { "no-archive": "feeds.archive.off", "unknown-article": "feeds.archive.gone", "bad-link": "feeds.archive.noLink" }[error.kind];
    if (!why) throw error;
    say(text(why), { kind: "warn" });
  }
}
