// What is done with feeds and folders: refreshed, changed, paused, moved, removed, read.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm, confirm } from "../../dialogs.js";
import { count, duration } from "../../format.js";
import { go, link } from "../../route.js";
import { say } from "../../toasts.js";
import { refreshMany } from "./rounds.js";
import { filtersOf, placeOf, renew, state } from "./state.js";
import { foldersOf, isBelow } from "./tree.js";

const MINUTES = [5, 15, 30, 60, 180, 360, 720, 1440, 10_080];
const AT_ONCE = 200; // articles of a page
const MOST_TAKEN_BACK = 1_000; // marks that one call can change

export function feedsOf(view) {
  return view.data.feeds?.feeds ?? [];
}

export function feedHere(view) {
  const { kind, name } = placeOf(view.route);
  return kind === "feed" ? (feedsOf(view).find(({ id }) => id === name) ?? null) : null;
}

/** What the place is called where somebody is. */
export function nameOf(view) {
  const { kind, name } = placeOf(view.route);
  if (kind === "feed") return feedHere(view)?.title ?? name;
  return kind === "folder" ? name : text("feeds.everything");
}

export function intervalText(minutes) {
  return text("feeds.every", { time: duration(minutes * 60) });
}

export function intervals(now = 30) {
  const offered = [...new Set([...MINUTES, now])].toSorted((one, other) => one - other);
  return offered.map((minutes) => [String(minutes), intervalText(minutes)]);
}

export function folderNames(view) {
  return foldersOf(feedsOf(view)).map(({ path }) => path);
}

// ------------------------------------------------------------------------------------- refreshing

/** Why it cannot be refreshed now. */
export function feedBusy(feed) {
  return feed.refreshing ? text("feeds.refreshing.why") : null;
}

export function refreshUnless(view) {
  const feed = feedHere(view);
  if (feed) return feedBusy(feed);
  if (placeOf(view.route).kind === "feed") return text("feeds.feed.gone");
  if (feedsOf(view).length === 0) return text("feeds.refresh.none");
  return view.data.rounds?.items.some(({ status, kind }) => status === "running" && kind === "refresh") ? text("feeds.round.running") : null;
}

export async function refreshFeed(view, feed) {
  const said = await call("scheduleFeed", {}, { body: { feed_id: feed.id, force_immediate: true } });
  say(said.reason ?? text(`feeds.asked.${said.status}`, { name: feed.title }), { kind: said.reason ? "warn" : "good" });
  renew(view);
}

export function refreshHere(view) {
  const feed = feedHere(view);
  const { kind, name } = placeOf(view.route);
  return feed ? refreshFeed(view, feed) : refreshMany(view, kind === "folder" ? { folder: name } : {});
}

// ------------------------------------------------------------------------------------- one feed

function changeable({ url, own_title, folder, refresh_interval, adaptive, paused }) {
  return { url, title: own_title, folder, refresh_interval: Math.max(1, Math.round(refresh_interval)), adaptive, paused };
}

async function change(view, feed, changes, said) {
  const before = changeable(feed);
  await call("changeFeed", { id: feed.id }, { body: changes });
  const back = Object.fromEntries(Object.keys(changes).map((name) => [name, before[name]]));
  const undo = async () => {
    await call("changeFeed", { id: feed.id }, { body: back });
    renew(view);
  };
  say(said, { undo });
  renew(view);
}

export function togglePaused(view, feed) {
  const said = text(feed.paused ? "feeds.resumed" : "feeds.paused", { name: feed.title });
  return change(view, feed, { paused: !feed.paused }, said);
}

export function changeFeed(view, feed) {
  const before = changeable(feed);
  return askForm({
    title: text("feeds.settings.of", { name: feed.title }),
    submit: text("feeds.save"),
    fields: [
      { name: "title", label: text("feeds.field.title"), value: feed.own_title ?? "", placeholder: feed.own_title ? "" : feed.title, hint: text("feeds.field.title.hint") },
      { name: "folder", label: text("feeds.field.folder"), value: feed.folder, suggest: folderNames(view), hint: text("feeds.field.folder.hint") },
      { name: "refresh_interval", label: text("feeds.field.interval"), kind: "select", value: String(before.refresh_interval), options: intervals(before.refresh_interval) },
      { name: "adaptive", label: text("feeds.field.adaptive"), kind: "checkbox", value: feed.adaptive, hint: text("feeds.field.adaptive.hint") },
      { name: "paused", label: text("feeds.field.paused"), kind: "checkbox", value: feed.paused },
      { name: "url", label: text("feeds.field.url"), kind: "url", value: feed.url, required: true, hint: text("feeds.field.url.hint") },
    ],
    send: async (values) => {
      const wanted = { ...values, title: values.title.trim() || null, refresh_interval: Number(values.refresh_interval) };
      const changed = Object.fromEntries(Object.entries(wanted).filter(([name, value]) => value !== before[name]));
      if (Object.keys(changed).length > 0) await change(view, feed, changed, text("feeds.changed", { name: wanted.title ?? feed.title }));
    },
  });
}

export async function removeFeed(view, feed) {
  const sure = await confirm({
    title: text("feeds.remove.title", { name: feed.title }),
    about: text("feeds.remove.about", { n: feed.article_count, unread: count(feed.unread_count) }),
    action: text("feeds.remove"),
  });
  if (!sure) return;
  const { articles_deleted } = await call("removeFeed", { id: feed.id });
  say(text("feeds.removed", { name: feed.title, n: articles_deleted }));
  if (placeOf(view.route).name === feed.id) go(link("feeds"));
  renew(view);
}

// ------------------------------------------------------------------------------------- folders

export function renameFolder(view, path) {
  const inside = feedsOf(view).filter(({ folder }) => isBelow(folder, path)).length;
  return askForm({
    title: text("feeds.folder.rename.title", { name: path }),
    about: text("feeds.folder.rename.about", { n: inside }),
    submit: text("feeds.folder.rename"),
    fields: [{ name: "to", label: text("feeds.field.folder"), value: path, required: true, suggest: folderNames(view), hint: text("feeds.field.folder.hint") }],
    send: async ({ to }) => {
      const merged = folderNames(view).includes(to.trim());
      const { name } = await call("renameFolder", {}, { body: { name: path, to } });
      const back = async () => {
        await call("renameFolder", {}, { body: { name, to: path } });
        go(link("feeds", "folder", path));
        renew(view);
      };
      // Two that have become one cannot be told apart again.
      say(text("feeds.folder.renamed", { name }), { undo: merged ? null : back });
      go(link("feeds", "folder", name));
      renew(view);
    },
  });
}

export async function removeFolder(view, path) {
  const inside = feedsOf(view).filter(({ folder }) => isBelow(folder, path));
  const parent = path.split("/").slice(0, -1).join("/");
  const sure = await confirm({
    title: text("feeds.folder.remove.title", { name: path }),
    about: parent ? text("feeds.folder.remove.into", { n: inside.length, parent }) : text("feeds.folder.remove.about", { n: inside.length }),
    action: text("feeds.folder.remove"),
  });
  if (!sure) return;
  const { feeds_moved } = await call("removeFolder", { name: path });
  say(text("feeds.folder.removed", { n: feeds_moved }));
  go(parent ? link("feeds", "folder", parent) : link("feeds"));
  renew(view);
}

// ------------------------------------------------------------------------------------- reading all

/** Everything of the list here; what has come since, and is not shown yet, stays unread. */
export async function markAllRead(view) {
  const filters = { ...filtersOf(view.route), unread: true };
  const first = await call("listArticles", { ...filters, size: AT_ONCE });
  const unseen = new Set(state.list.fresh.map(({ id }) => id));
  if (first.total > MOST_TAKEN_BACK && !filters.q && !filters.starred) return markMany(view, filters, first.total, unseen);
  const ids = (await idsFrom(first, filters)).filter((id) => !unseen.has(id));
  if (ids.length === 0) return say(text("feeds.read.none"));
  await call("markArticles", {}, { body: { ids, is_read: true } });
  const undo = async () => {
    await call("markArticles", {}, { body: { ids, is_read: false } });
    remark(ids, false);
    renew(view);
  };
  remark(ids, true);
  say(text("feeds.read.done", { n: ids.length }), { undo });
  renew(view);
}

function remark(ids, is_read) {
  const changed = new Set(ids);
  const changed_at = ""; // what the server says next is newer
  state.list.items = state.list.items.map((item) => (changed.has(item.id) ? { ...item, is_read, changed_at } : item));
}

async function idsFrom(first, filters) {
  const ids = first.items.map(({ id }) => id);
  let { next } = first;
  while (next && ids.length < MOST_TAKEN_BACK) {
    const page = await call("listArticles", { ...filters, cursor: next, size: AT_ONCE });
    ids.push(...page.items.map(({ id }) => id));
    next = page.next;
  }
  return ids.slice(0, MOST_TAKEN_BACK);
}

/** So many that they cannot be taken back: they are asked about instead. */
async function markMany(view, { feed, folder }, total, unseen) {
  const sure = await confirm({
    title: text("feeds.markAll"),
    about: html`<p>${text("feeds.read.many", { n: total, name: nameOf(view) })}</p>`,
    action: text("feeds.markAll"),
    danger: false,
  });
  if (!sure) return;
  const before = unseen.size > 0 ? Math.max(1, Math.min(...unseen) - 1) : null;
  const which = feed ? { feed } : folder ? { folder } : { all: true };
  const { changed } = await call("markRead", {}, { body: { ...which, before } });
  state.list.items = state.list.items.map((item) => ({ ...item, is_read: true, changed_at: "" }));
  say(text("feeds.read.done", { n: changed }));
  renew(view);
}
