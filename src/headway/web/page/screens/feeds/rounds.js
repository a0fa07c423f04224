// Many feeds at once: a refresh of all, and lists from other readers. Both are rounds, which go on in
// the server whoever looks.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm, openDialog } from "../../dialogs.js";
import { count } from "../../format.js";
import { icon } from "../../icons.js";
import { bar, button, problemNotice } from "../../parts.js";
import { link } from "../../route.js";
import { say } from "../../toasts.js";
import { folderNames, intervals } from "./manage.js";
import { renew, state } from "./state.js";

const LOOK_S = 1;
const SHOWN = 50;

export async function refreshMany(view, body) {
  const made = await call("scheduleAllFeeds", {}, { body });
  if (made.status === "nothing_to_do") return say(text("feeds.refresh.nothing", { n: made.skipped }), { kind: "warn" });
  state.round = made.round_id;
  renew(view);
}

/** `38 of 40, 12 new, 1 failed` in the language of the page. */
function inShort(round) {
  const done = round.total - round.waiting;
  const words = [text("feeds.round.of", { done, n: round.total })];
  if (round.kind === "import") words.push(text("feeds.round.added", { n: round.added ?? 0 }));
  else words.push(text("feeds.round.new", { n: round.new_count }));
  if (round.failed > 0) words.push(text("feeds.round.failed", { n: round.failed }));
  if (round.duplicates > 0) words.push(text("feeds.round.known", { n: round.duplicates }));
  if (round.invalid > 0) words.push(text("feeds.round.invalid", { n: round.invalid }));
  return words.join(text("feeds.comma"));
}

function share({ percent }) {
  return percent / 100;
}

/** The round that runs, or has just ended. */
export function roundBanner(view) {
  const round = view.data.rounds?.items.find(({ id, status }) => id !== state.dismissed && (status === "running" || id === state.round));
  if (!round) return null;
  const over = round.status === "finished";
  const dismiss = () => {
    state.dismissed = round.id;
    view.update();
  };
  return html`<div class="feeds-round" role="status">
    ${icon(over ? (round.failed > 0 || round.invalid > 0 ? "warn" : "check") : "retry", over ? "" : "turning")}
    <span class="feeds-round-name">${text(`feeds.round.${round.kind}${over ? ".over" : ""}`)}</span>
    <span class="feeds-round-text numbers" title=${inShort(round)}>${inShort(round)}</span>
    ${bar(share(round), text("feeds.round.progress"), round.failed > 0 ? "warn" : "")}
    ${button({ label: text("feeds.round.details"), needs: null, run: () => showRound(round.id) })}
    ${over && button({ label: text("toast.dismiss"), icon: "close", bare: true, needs: null, run: dismiss })}
  </div>`;
}

/** Follows a round for as long as somebody looks. */
function showRound(id, first = null) {
  const seen = { round: first, error: null, open: true, redraw: () => {} };
  const follow = async () => {
    seen.error = null;
    try {
      while (seen.open && seen.round?.status !== "finished") {
        seen.round = await call("getRound", { id, wait_s: seen.round ? LOOK_S : 0 });
        seen.redraw();
      }
    } catch (error) {
      seen.error = error;
      seen.redraw();
    }
  };
  const shown = openDialog({
    title: text("feeds.round.title"),
    wide: true,
    content: (close, redraw) => {
      seen.redraw = () => seen.open && redraw();
      const follows = ({ target }) => target.closest("a") && close(true); // a link leads elsewhere
      return html`<div class="dialog-body" @click=${follows}>${seen.error ? problemNotice(seen.error, follow) : seen.round ? details(seen.round) : html`<p role="status">${text("frame.loading")}</p>`}</div>
        <div class="dialog-foot"><button type="button" class="quiet" @click=${() => close(true)}>${text("dialog.close")}</button></div>`;
    },
  }).then(() => {
    seen.open = false;
  });
  follow();
  return shown;
}

function details(round) {
  const failed = round.items.filter((item) => item.state === "failed");
  const skipped = round.items.filter((item) => item.state === "skipped");
  const waiting = round.items.filter((item) => item.state === "waiting");
  return html`<p class="row between" role="status"><strong>${text(`feeds.round.${round.kind}${round.status === "finished" ? ".over" : ""}`)}</strong><span class="numbers">${inShort(round)}</span></p>
    ${bar(share(round), text("feeds.round.progress"), round.failed > 0 ? "warn" : "")}
    ${lines(text("feeds.round.waiting"), waiting, (item) => [feedOf(item), item.wait_reason])}
    ${lines(text("feeds.round.failures"), failed, (item) => [feedOf(item), item.error])}
    ${lines(text("feeds.round.invalids"), round.invalid_feeds, (item) => [item.url, item.why])}
    ${lines(text("feeds.round.duplicates"), round.duplicate_feeds, (item) => [feedOf({ ...item, title: item.url }), text("feeds.round.duplicate")])}
    ${lines(text("feeds.round.skipped"), skipped, (item) => [feedOf(item), item.error])}
    ${round.status === "finished" && round.failed + (round.invalid ?? 0) === 0 && html`<p class="muted">${text("feeds.round.well")}</p>`}
    ${round.status === "running" && html`<p class="muted">${text("feeds.round.leave")}</p>`}`;
}

function feedOf({ feed_id, title }) {
  return html`<a href=${link("feeds", "feed", feed_id)}>${title ?? feed_id}</a>`;
}

function lines(title, items, line) {
  if (items.length === 0) return null;
  return html`<section class="feeds-part"><h3>${title} <span class="muted numbers">${count(items.length)}</span></h3>
    <dl class="feeds-lines">${each(items.slice(0, SHOWN), (_, at) => at, (item) => {
      const [name, why] = line(item);
      return html`<dt>${name}</dt><dd class="muted">${why ?? ""}</dd>`;
    })}</dl></section>`;
}

// ------------------------------------------------------------------------------------- lists

export async function importList(view) {
  const round = await askForm({
    title: text("feeds.import.title"),
    about: text("feeds.import.about"),
    submit: text("feeds.import"),
    fields: [
      { name: "file", label: text("feeds.import.file"), kind: "file", required: true, accept: ".opml,.xml,text/x-opml,text/xml,application/xml" },
      { name: "folder", label: text("feeds.import.folder"), suggest: folderNames(view), hint: text("feeds.import.folder.hint") },
      { name: "refresh_interval", label: text("feeds.field.interval"), kind: "select", value: "30", options: intervals() },
      { name: "adaptive", label: text("feeds.field.adaptive"), kind: "checkbox", hint: text("feeds.field.adaptive.hint") },
    ],
    send: ({ file, folder, refresh_interval, adaptive }) =>
      call("importOpml", { folder, refresh_interval, adaptive }, { body: file, type: "text/x-opml" }),
  });
  if (!round) return;
  state.round = round.id;
  renew(view);
  await showRound(round.id, round);
  renew(view);
}
