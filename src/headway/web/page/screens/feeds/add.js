// Subscribing: an address is looked at, what is found there is shown, and one is chosen.

import { each, html } from "../../../render.js";
import { isKnown, text } from "../../../text.js";
import { call } from "../../api.js";
import { serverNow } from "../../clock.js";
import { openDialog } from "../../dialogs.js";
import { go, link } from "../../route.js";
import { say } from "../../toasts.js";
import { badge, when } from "../../parts.js";
import { feedsOf, folderNames, intervals } from "./manage.js";
import { placeOf, renew } from "./state.js";

const ITEMS = 5;

export function addFeed(view, url = "") {
  const { kind, name } = placeOf(view.route);
  const asked = {
    url, busy: null, since: null, error: null, candidates: null, chosen: null, preview: null,
    folder: kind === "folder" ? name : "", interval: "30", adaptive: false, redraw: () => {}, close: () => {}, view,
  };
  return openDialog({
    title: text("feeds.add"),
    content: (close, redraw) => {
      Object.assign(asked, { close, redraw });
      return form(asked);
    },
  });
}

function form(asked) {
  const send = (event) => {
    event.preventDefault();
    if (asked.busy) return;
    if (asked.chosen) subscribe(asked);
    else find(asked);
  };
  return html`<form class="dialog-form" @submit=${send}>
    <div class="dialog-body">
      <label class="field"><span>${text("feeds.add.address")}</span>
        <input type="text" name="url" inputmode="url" required maxlength="2000" autocomplete="off" spellcheck="false" placeholder="blog.example.com" aria-describedby="feeds-add-hint"
          .value=${asked.url} @input=${(event) => retype(asked, event.target.value)} /></label>
      <p class="hint" id="feeds-add-hint">${text("feeds.add.hint")}</p>
      ${asked.busy === "find" && html`<div class="feeds-finding" role="status"><span class="feeds-moving" aria-hidden="true"></span>
        <p>${text("feeds.add.finding")} <span class="numbers muted"><hw-elapsed at=${asked.since}></hw-elapsed></span></p></div>`}
      ${asked.candidates && found(asked)}
      ${asked.chosen && choices(asked)}
      ${asked.error && problem(asked.error)}
    </div>
    <div class="dialog-foot">
      <button type="button" class="quiet" @click=${() => asked.close(null)}>${text("dialog.cancel")}</button>
      <button type="submit" aria-busy=${asked.busy ? "true" : null}>${text(asked.chosen ? "feeds.subscribe" : "feeds.find")}</button>
    </div>
  </form>`;
}

function retype(asked, url) {
  Object.assign(asked, { url, candidates: null, chosen: null, preview: null, error: null });
  asked.redraw();
}

async function find(asked) {
  const { url } = asked;
  Object.assign(asked, { busy: "find", since: new Date(serverNow()).toISOString(), error: null, candidates: null, chosen: null });
  asked.redraw();
  try {
    const { candidates } = await call("discoverFeeds", {}, { body: { url: url.trim() } });
    if (asked.url === url) asked.candidates = candidates;
  } catch (error) {
    if (asked.url === url) asked.error = error;
  }
  asked.busy = null;
  const first = asked.candidates?.find(({ valid, url: address }) => valid !== false && !subscribed(asked, address));
  if (first) choose(asked, first.url);
  else asked.redraw();
}

function subscribed({ view }, url) {
  return feedsOf(view).find((feed) => feed.url === url) ?? null;
}

function found(asked) {
  return html`<fieldset class="feeds-found"><legend>${text("feeds.add.found", { n: asked.candidates.length })}</legend>
    ${each(asked.candidates, ({ url }) => url, (candidate) => {
      const known = subscribed(asked, candidate.url);
      const bad = candidate.valid === false;
      return html`<label class="feeds-candidate"><input type="radio" name="candidate" .checked=${asked.chosen === candidate.url} disabled=${bad || Boolean(known)} @change=${() => choose(asked, candidate.url)} />
        <span><span class="row"><strong>${candidate.title ?? candidate.url}</strong>
          ${known ? badge("accent", text("feeds.add.known")) : bad ? badge("bad", text("feeds.add.unreadable")) : candidate.valid === null ? badge("", text("feeds.add.unchecked")) : null}</span>
          <span class="muted clip">${candidate.url}</span>
          <span class="muted">${bad ? candidate.error : candidate.article_count === null ? "" : `${text("feeds.n.articles", { n: candidate.article_count })} · ${candidate.format}`}</span></span></label>`;
    })}
  </fieldset>`;
}

async function choose(asked, url) {
  Object.assign(asked, { chosen: url, preview: null, error: null });
  asked.redraw();
  try {
    const parsed = await call("parseFeed", { limit: ITEMS }, { body: { url } });
    if (asked.chosen === url) asked.preview = parsed;
  } catch (error) {
    if (asked.chosen === url) asked.preview = { error };
  }
  asked.redraw();
}

function choices(asked) {
  const set = (name) => (event) => {
    asked[name] = event.target.type === "checkbox" ? event.target.checked : event.target.value;
    asked.redraw();
  };
  return html`<div class="preview feeds-preview" role="status">${preview(asked.preview)}</div>
    <label class="field"><span>${text("feeds.field.folder")}</span>
      <input type="text" name="folder" list="feeds-add-folders" autocomplete="off" maxlength="1000" placeholder=${text("feeds.add.noFolder")} .value=${asked.folder} @input=${set("folder")} /></label>
    <datalist id="feeds-add-folders">${folderNames(asked.view).map((name) => html`<option value=${name}></option>`)}</datalist>
    <label class="field"><span>${text("feeds.field.interval")}</span>
      <select name="interval" @change=${set("interval")}>${intervals().map(([value, label]) => html`<option value=${value} selected=${value === asked.interval}>${label}</option>`)}</select></label>
    <label class="check"><input type="checkbox" name="adaptive" .checked=${asked.adaptive} @change=${set("adaptive")} /> <span>${text("feeds.field.adaptive")}</span></label>`;
}

function preview(seen) {
  if (!seen) return html`<p class="muted">${text("feeds.add.looking")}</p>`;
  if (seen.error) return html`<p class="muted">${seen.error.message}</p>`;
  return html`${seen.description && html`<p class="muted">${seen.description}</p>`}
    <ul>${seen.articles.map((item) => html`<li><span class="clip">${item.title ?? item.link ?? text("feeds.untitled")}</span><span class="muted">${item.published_at && when(item.published_at)}</span></li>`)}</ul>
    ${seen.problems.length > 0 && html`<p class="muted">${seen.problems[0]}</p>`}`;
}

/** What the server says, and what to do about it. */
function problem(error) {
  const advice = `feeds.kind.${error.kind}`;
  return html`<div class="notice bad" role="alert">${isKnown(advice) && html`<p><strong>${text(advice)}</strong></p>`}<p class=${isKnown(advice) ? "muted" : ""}>${error.message}</p></div>`;
}

async function subscribe(asked) {
  asked.busy = "subscribe";
  asked.error = null;
  asked.redraw();
  const body = { url: asked.chosen, folder: asked.folder.trim() || null, refresh_interval: Number(asked.interval), adaptive: asked.adaptive };
  try {
    const made = await call("addFeeds", {}, { body });
    asked.close(made);
    const undo = async () => {
      await call("removeFeed", { id: made.id });
      go(link("feeds"));
      renew(asked.view);
    };
    say(text("feeds.added", { name: asked.preview?.title ?? made.title }), { undo });
    go(link("feeds", "feed", made.id));
    renew(asked.view);
  } catch (error) {
    asked.error = error;
  }
  asked.busy = null;
  asked.redraw();
}
