// What can be done with one video: getting it, giving it up, looking at it.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { addressOfCall, call } from "../../api.js";
import { confirm, openDialog } from "../../dialogs.js";
import { bytes } from "../../format.js";
import { icon } from "../../icons.js";
import { button } from "../../parts.js";
import { link } from "../../route.js";
import { say } from "../../toasts.js";

const RETRIED = ["failed", "missing"]; // it was tried, or was here
const GOT = ["found", "skipped"];
const UNBLOCKED = ["failed", "skipped"];
const LEFT_OUT = ["found", "failed", "missing", "queued"];
const SOUND = /\.(m4a|mp3|opus|ogg|oga|flac|wav|aac)$/i;

export function actionsOfItem(item, view) {
  const { state, job } = item;
  const act = (key, name, run, more = {}) =>
    button({ label: text(`archive.item.${key}`), icon: name, bare: true, needs: "submit", run: () => run(item, view), ...more });
  return html`
    ${state === "done" && act("play", "play", play, { needs: null })}
    ${state === "done" && html`<a class="archive-bare" download href=${addressOfCall("getItemFile", { id: item.id })} title=${text("archive.item.save")} aria-label=${text("archive.item.save")}>${icon("download")}</a>`}
    ${job && html`<a class="archive-bare" href=${link("requests", job)} title=${text("archive.item.request")} aria-label=${text("archive.item.request")}>${icon("list")}</a>`}
    ${RETRIED.includes(state) && act("retry", "retry", retry)}
    ${GOT.includes(state) && act("get", "download", retry)}
    ${UNBLOCKED.includes(state) && act("unblock", "unlock", unblock, { title: `${text("archive.item.unblock")}: ${text("archive.item.unblock.about")}` })}
    ${LEFT_OUT.includes(state) && act("skip", "close", skip, { title: `${text("archive.item.skip")}: ${text("archive.item.skip.about")}` })}
    ${["done", "missing"].includes(state) && act("delete", "trash", remove)}`;
}

function titled({ title }) {
  return title ?? text("archive.item.untitled");
}

async function retry(item, view) {
  await call("retryItem", { id: item.id });
  say(text("archive.item.said.retry", { title: titled(item) }));
  view.refresh();
}

async function unblock(item, view) {
  await call("unblockItem", { id: item.id });
  // What was left out can be left out again; what has failed cannot be made to have failed.
  const undo = item.state === "skipped" ? () => call("skipItem", { id: item.id }).then(view.refresh) : null;
  say(text("archive.item.said.unblock", { title: titled(item) }), { undo });
  view.refresh();
}

async function skip(item, view) {
  await call("skipItem", { id: item.id });
  const back = item.state === "queued" ? "retryItem" : "unblockItem";
  const undo = ["queued", "found"].includes(item.state) ? () => call(back, { id: item.id }).then(view.refresh) : null;
  say(text("archive.item.said.skip", { title: titled(item) }), { undo });
  view.refresh();
}

async function remove(item, view) {
  const sure = await confirm({
    title: text("archive.item.delete.title"),
    about: text("archive.item.delete.about", { title: titled(item), n: Object.keys(item.files ?? {}).length, size: bytes(item.size_bytes) }),
    action: text("archive.item.delete"),
  });
  if (!sure) return;
  const { files_deleted: n } = await call("removeItem", { id: item.id, files: true });
  say(text("archive.item.said.delete", { title: titled(item), n }));
  view.refresh();
}

/** In the browser's own player, which asks for the parts that it needs. */
function play(item) {
  const src = addressOfCall("getItemFile", { id: item.id });
  const poster = item.files?.thumbnail ? addressOfCall("getItemFile", { id: item.id, kind: "thumbnail" }) : null;
  let isBroken = false;
  return openDialog({
    title: titled(item),
    wide: true,
    content: (close, redraw) => {
      const broken = () => {
        isBroken = true;
        redraw();
      };
      return html`<div class="dialog-body archive-player">
        ${SOUND.test(item.files?.video ?? "")
          ? html`<audio controls preload="metadata" src=${src} @error=${broken} aria-label=${titled(item)}></audio>`
          : html`<video controls playsinline preload="metadata" src=${src} poster=${poster} @error=${broken} aria-label=${titled(item)}></video>`}
        ${isBroken && html`<p class="notice" role="status">${text("archive.play.cannot")}</p>`}
      </div>
      <div class="dialog-foot"><a class="archive-save" download href=${src}>${icon("download")}${text("archive.item.save")} (${bytes(item.size_bytes)})</a></div>`;
    },
  });
}
