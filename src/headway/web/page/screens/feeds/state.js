// What somebody has opened in the reader, and the list of articles as it stands there: it does not
// move while somebody reads. What is new is counted, and what was read stays until they look anew.

import { call } from "../../api.js";
import { link } from "../../route.js";
import { may } from "../../session.js";
import { report } from "../../toasts.js";

const PAGE = 40;
const SHARE = 10;

export const state = {
  list: emptyList(""),
  shut: new Map(), // folder → whether somebody has shut it
  whole: new Set(), // folders of which all feeds are shown, however many they are
  read: null, // the article that was marked as it was opened, and is not again
  typed: null, // into the search, and not yet asked
  timer: 0,
  round: null, // the one that was begun here
  dismissed: null, // a round that nobody wants to see any more
  listing: null, // the feeds as they were last listed
  reached: null, // how far down the list was when an article took its place
  shown: undefined, // the article that is shown
  busy: { feeds: false, round: false }, // whether something is being refreshed
  applying: null, // the job that applies a rule
};

function emptyList(key) {
  return { key, items: [], next: null, total: 0, fresh: [], newest: null, loading: false, known: false };
}

// ------------------------------------------------------------------------------------- where

/** { kind: "all" | "folder" | "feed" | "rules", name } */
export function placeOf({ path }) {
  const [kind, name] = path;
  if (kind === "rules") return { kind, name: "" };
  return (kind === "folder" || kind === "feed") && name ? { kind, name } : { kind: "all", name: "" };
}

/** A search looks through everything, unless it is told otherwise. */
export function viewOf({ params }) {
  if (["all", "unread", "starred"].includes(params.view)) return params.view;
  return params.q ? "all" : "unread";
}

export function openId({ params }) {
  return /^[1-9]\d{0,14}$/.test(params.article ?? "") ? Number(params.article) : null;
}

/** The same list with or without an article beside it. */
export function here(route, params = {}) {
  const { view, q, article, pane } = { ...route.params, article: null, pane: null, ...params };
  return link("feeds", ...route.path, { view, q, article, pane });
}

export function filtersOf(route) {
  const { kind, name } = placeOf(route);
  const view = viewOf(route);
  return {
    feed: kind === "feed" ? name : null,
    folder: kind === "folder" ? name : null,
    unread: view === "unread" ? true : null,
    starred: view === "starred" ? true : null,
    q: route.params.q ?? "",
  };
}

export function keyOf(route) {
  return JSON.stringify(filtersOf(route));
}

// ------------------------------------------------------------------------------------- the feeds

/** Who has thousands of them is not asked for all of them each time: for a tenth of the time at most. */
export async function askFeeds() {
  const { listing } = state;
  if (listing && performance.now() < listing.until) return listing.answer;
  const startedAt = performance.now();
  const answer = await call("listFeeds");
  const now = performance.now();
  state.listing = { answer, until: now + (now - startedAt) * SHARE };
  state.busy.feeds = answer.feeds.some(({ refreshing, status }) => refreshing || status === "new");
  return answer;
}

/** Something was changed here: all of it is asked again. */
export function renew(view) {
  state.listing = null;
  view.refresh();
}

/** What is unread, until the feeds are asked again. */
function recount({ feed_id }, by) {
  const feed = state.listing?.answer.feeds.find(({ id }) => id === feed_id);
  if (feed) feed.unread_count = Math.max(0, feed.unread_count + by);
}

// ------------------------------------------------------------------------------------- the list

export async function askArticles(route) {
  const key = keyOf(route);
  const page = await call("listArticles", { ...filtersOf(route), size: PAGE });
  takeIn(key, viewOf(route), page);
  return page;
}

/** The first page, as it is now, beside the list as it stands. */
function takeIn(key, view, page) {
  const { list } = state;
  if (list.key !== key || list.items.length === 0) {
    state.list = { ...emptyList(key), items: page.items, next: page.next, total: page.total, known: true };
    return;
  }
  const answered = new Map(page.items.map((each) => [each.id, each]));
  const standing = new Set(list.items.map(({ id }) => id));
  const last = list.items.at(-1);
  const lastAnswered = page.next === null ? null : page.items.at(-1);
  list.items = list.items
    .map((item) => latest(item, answered.get(item.id) ?? missing(item, view, lastAnswered)))
    .filter((item) => item !== null);
  list.fresh = page.items.filter((item) => !standing.has(item.id) && (list.next === null || isBefore(item, last)));
  list.newest = page;
  list.total = page.total;
}

/** It is not on a page where it should be: its mark was changed elsewhere, or it is gone. */
function missing(item, view, last) {
  if (last !== null && !isBefore(item, last)) return item; // it is on a later page
  if (view === "unread") return { ...item, is_read: true };
  return view === "starred" ? { ...item, is_starred: false } : null;
}

/** An answer that is older than what was done here since does not count. */
function latest(item, answer) {
  return answer && answer.changed_at < item.changed_at ? item : answer;
}

function isBefore(one, other) {
  return one.at === other.at ? one.id > other.id : one.at > other.at;
}

export function showFresh() {
  const { newest, key } = state.list;
  if (newest) state.list = { ...emptyList(key), items: newest.items, next: newest.next, total: newest.total, known: true };
}

export async function loadMore(view) {
  const { list } = state;
  if (!list.next || list.loading) return;
  list.loading = true;
  view.update();
  try {
    const page = await call("listArticles", { ...JSON.parse(list.key), cursor: list.next, size: PAGE });
    const standing = new Set(list.items.map(({ id }) => id));
    list.items = [...list.items, ...page.items.filter(({ id }) => !standing.has(id))];
    list.next = page.next;
  } catch (error) {
    report(error);
  } finally {
    list.loading = false;
    view.update();
  }
}

export function known(id) {
  return state.list.items.find((item) => item.id === id) ?? null;
}

function hold(article) {
  const { content, ...item } = article;
  state.list.items = state.list.items.map((each) => (each.id === item.id ? { ...each, ...item } : each));
}

// ------------------------------------------------------------------------------------- one article

/** With all of its text. To open it is to have read it. */
export async function askArticle(id) {
  let article = await call("getArticle", { id });
  if (article.is_read) state.read = id;
  else if (state.read !== id && may("submit")) {
    state.read = id;
    try {
      article = { ...(await call("markArticle", { id }, { body: { is_read: true } })), content: article.content };
      recount(article, -1);
    } catch (error) {
      report(error); // it can be read all the same
    }
  }
  hold(article);
  return article;
}

export async function mark(view, id, marks) {
  const marked = await call("markArticle", { id }, { body: marks });
  state.read = id;
  if (marks.is_read !== undefined) recount(marked, marks.is_read ? -1 : 1);
  hold(marked);
  if (view.data.article?.id === id) view.data.article = { ...marked, content: view.data.article.content };
  view.update();
  view.refresh();
}
