// What can be done for a subscription. Each action says what it does, and why it cannot be done now.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm, openDialog } from "../../dialogs.js";
import { bytes, count } from "../../format.js";
import { button } from "../../parts.js";
import { go, link } from "../../route.js";
import { report, say } from "../../toasts.js";
import { openPodcast } from "./podcast.js";
import { openSettings } from "./settings.js";
import { state } from "./state.js";

/** Why nothing can be asked for it now; null: it can. */
function busyBecause({ busy, paused }) {
  if (busy.listing) return text("archive.busy.list.why", { id: String(busy.listing) });
  if (busy.counting) return text("archive.busy.count.why", { id: String(busy.counting) });
  return paused ? text("archive.paused.why") : null;
}

/** [{ key, label, about, icon, run, unless, danger }] */
export function actionsOf(subscription, view) {
  const unless = busyBecause(subscription);
  const { paused } = subscription;
  const action = (key, icon, run, more = {}) => ({
    key, icon, run: () => run(subscription, view), label: text(`archive.do.${key}`), about: text(`archive.do.${key}.about`), unless: null, ...more,
  });
  return [
    action("refresh", "retry", (one, at) => refresh(one, at, false), { unless }),
    action("full", "list", (one, at) => refresh(one, at, true), { unless }),
    action("count", "cells", countAgain, { unless }),
    action("download", "download", (one, at) => download(one, at, false), { unless }),
    action("cached", "folder", (one, at) => download(one, at, true), { unless }),
    paused
      ? action("resume", "play", (one, at) => setPaused(one, at, false))
      : action("pause", "pause", (one, at) => setPaused(one, at, true)),
    action("settings", "edit", openSettings),
    action("podcast", "feed", openPodcast),
    action("remove", "trash", remove, { danger: true }),
  ];
}

/** All of them, with what they do. */
export async function openMore(subscription, view) {
  const chosen = await openDialog({
    title: subscription.name,
    content: (close) => html`<ul class="archive-more">
      ${actionsOf(subscription, view).map((each) => html`<li>
        <div><strong>${each.label}</strong><p class="muted archive-small">${each.unless ?? each.about}</p></div>
        ${button({ label: each.label, icon: each.icon, bare: true, kind: each.danger ? "quiet danger" : "quiet", needs: "submit", unless: each.unless, run: () => close(each) })}
      </li>`)}
    </ul>`,
  });
  // The dialog is gone by then, so what goes wrong is said at the edge of the page.
  if (chosen) await Promise.resolve(chosen.run()).catch(report);
}

async function refresh({ id, name }, view, full) {
  await call("refreshList", { id }, { body: { full } });
  say(text("archive.said.refresh", { name }));
  view.refresh();
}

async function countAgain({ id, name }, view) {
  await call("getExpectedTotal", { id, refresh: true });
  say(text("archive.said.count", { name }));
  view.refresh();
}

async function download({ id, name }, view, cached) {
  const { queued } = await call("downloadSubscription", { id }, { body: { use_cache_only: cached } });
  if (!cached) say(text("archive.said.download", { name }));
  else say(text(queued ? "archive.said.cached" : "archive.said.cached.none", { name, n: queued }));
  view.refresh();
}

async function setPaused({ id, name }, view, paused) {
  const put = async (value) => {
    await call("changeSubscription", { id }, { body: { paused: value } });
    view.refresh();
  };
  await put(paused);
  say(text(paused ? "archive.said.paused" : "archive.said.resumed", { name }), { undo: () => put(!paused) });
}

async function remove({ id, name, counts, busy }, view) {
  const { on_disk: n } = counts;
  const gone = await askForm({
    title: text("archive.remove.title", { name }),
    about: text("archive.remove.about", { listed: count(counts.listed + counts.gone), open: count(busy.downloads_open) }),
    fields: [{ name: "files", label: text("archive.remove.files"), kind: "checkbox" }],
    preview: ({ files }) => html`<p>${text(files ? "archive.remove.deletes" : "archive.remove.keeps", { n, size: bytes(counts.bytes) })}</p>`,
    submit: text("archive.remove.do"),
    danger: true,
    send: async ({ files }) => {
      state.removing = id;
      try {
        return await call("removeSubscription", { id, files });
      } catch (error) {
        state.removing = null;
        throw error;
      }
    },
  });
  if (!gone) return;
  say(text("archive.said.removed", { name, items: count(gone.items_deleted), files: count(gone.files_deleted) }));
  if (view.route.path[0] === "subscription") go(link("archive"));
  else view.refresh();
}
