// The pane of folders and feeds: what is unread there, and what needs somebody to look.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { addressOfCall } from "../../api.js";
import { count } from "../../format.js";
import { icon } from "../../icons.js";
import { button } from "../../parts.js";
import { link } from "../../route.js";
import { importList } from "./rounds.js";
import { placeOf, state, viewOf } from "./state.js";
import { byTitle, foldersOf, isBelow, isInTrouble, unreadOf } from "./tree.js";

const MOST = 100; // feeds of a folder that are shown at once

export function sidePane(view) {
  const feeds = view.data.feeds?.feeds ?? [];
  const folders = foldersOf(feeds);
  const alone = byTitle(feeds.filter(({ folder }) => folder === ""));
  const here = placeAmong(feeds, placeOf(view.route));
  const starred = viewOf(view.route) === "starred" && here.kind === "all";
  return html`<nav class="pane feeds-side" aria-label=${text("feeds.side")}>
    <ul class="feeds-places">
      <li>${place({ href: link("feeds"), drawing: "feed", label: text("feeds.everything"), unread: unreadOf(feeds), current: here.kind === "all" && !starred })}</li>
      <li>${place({ href: link("feeds", { view: "starred" }), drawing: "star", label: text("feeds.view.starred"), current: starred })}</li>
    </ul>
    <ul class="feeds-places">
      ${each(visible(folders, here), ({ path }) => path, (folder) => folderItem(folder, here, view))}
      ${each(shown(alone, ""), ({ id }) => id, (feed) => html`<li>${feedLink(feed, here)}</li>`)}
      ${more(alone, "", view)}
    </ul>
    <div class="feeds-foot">
      ${button({ label: text("feeds.import"), icon: "upload", needs: "submit", run: () => importList(view) })}
      <a class="feeds-button" href=${addressOfCall("exportOpml")} download="feeds.opml">${icon("download")}<span>${text("feeds.export")}</span></a>
      <a class="feeds-button" href=${link("feeds", "rules")}>${icon("sliders")}<span>${text("feeds.rules")}</span></a>
    </div>
  </nav>`;
}

function place({ href, drawing, label, unread = 0, current }) {
  return html`<a class="feeds-place" href=${href} aria-current=${current ? "page" : null}>
    ${icon(drawing)}<span class="clip">${label}</span>${unreadCount(unread)}</a>`;
}

function unreadCount(unread) {
  return html`<span class="feeds-count">${unread > 0 ? html`<span class="visually-hidden">${text("feeds.view.unread")}: </span>${count(unread)}` : null}</span>`;
}

/** Folders whose way there is open; what is inside of one comes right after it. */
function visible(folders, at) {
  let shut = null;
  return folders.filter((folder) => {
    if (shut !== null && isBelow(folder.path, shut)) return false;
    shut = isShut(folder, at) ? folder.path : null;
    return true;
  });
}

/** Where there are many feeds, folders are shut until somebody opens them, or is inside. */
function isShut({ path }, at) {
  return state.shut.get(path) ?? (at.many && !isBelow(at.folder, path));
}

function placeAmong(feeds, { kind, name }) {
  const folder = kind === "feed" ? feeds.find(({ id }) => id === name)?.folder : name;
  return { kind, name, folder: folder ?? "", many: feeds.length > MOST };
}

function folderItem(folder, here, view) {
  const shut = isShut(folder, here);
  const toggle = () => {
    state.shut.set(folder.path, !shut);
    view.update();
  };
  const inside = shut ? [] : byTitle(folder.feeds);
  return html`<li class="feeds-folder depth-${Math.min(folder.depth, 4)}">
    <div class="feeds-folder-head">
      <button type="button" class="bare small feeds-toggle" aria-expanded=${String(!shut)} aria-label=${text("feeds.folder.toggle", { name: folder.path })} @click=${toggle}>${icon(shut ? "right" : "down")}</button>
      <a class="feeds-place" href=${link("feeds", "folder", folder.path)} title=${folder.path} aria-current=${here.kind === "folder" && here.name === folder.path ? "page" : null}>
        <span class="clip">${folder.name}</span>${shut && folder.trouble > 0 && warning(text("feeds.trouble.n", { n: folder.trouble }))}${unreadCount(folder.unread)}</a>
    </div>
    <ul>${each(shown(inside, folder.path), ({ id }) => id, (feed) => html`<li>${feedLink(feed, here)}</li>`)}${more(inside, folder.path, view)}</ul>
  </li>`;
}

function shown(feeds, path) {
  return state.whole.has(path) ? feeds : feeds.slice(0, MOST);
}

function more(feeds, path, view) {
  if (feeds.length <= MOST || state.whole.has(path)) return null;
  const show = () => {
    state.whole.add(path);
    view.update();
  };
  return html`<li><button type="button" class="link" @click=${show}>${text("feeds.more", { n: feeds.length - MOST })}</button></li>`;
}

function feedLink(feed, here) {
  const trouble = isInTrouble(feed);
  const said = trouble ? `${text(`feeds.status.${feed.status}`)}${feed.error ? `: ${feed.error}` : ""}` : feed.paused ? text("feeds.status.paused") : null;
  return html`<a class="feeds-place feed ${feed.unread_count > 0 ? "unread" : ""}" href=${link("feeds", "feed", feed.id)} title=${said ?? feed.title}
    aria-current=${here.kind === "feed" && here.name === feed.id ? "page" : null}>
    <span class="clip">${feed.title}</span>${trouble ? warning(said) : feed.paused ? sign("pause", said) : feed.refreshing ? sign("retry", text("feeds.refreshing"), "turning") : null}${unreadCount(feed.unread_count)}</a>`;
}

function warning(said) {
  return sign("warn", said, "trouble");
}

function sign(drawing, said, kind = "") {
  return html`<span class="feeds-sign ${kind}">${icon(drawing)}<span class="visually-hidden">${said}</span></span>`;
}
