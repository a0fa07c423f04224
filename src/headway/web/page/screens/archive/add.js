// Subscribing: an address is looked at first, then it is shown what is there, and how it is wanted.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { formField, openDialog } from "../../dialogs.js";
import { clockTime } from "../../format.js";
import { go, link } from "../../route.js";
import { say } from "../../toasts.js";
import { bodyOf, fieldsOf, USUAL, valuesOf } from "./settings.js";

const AGAIN_MS = 500;
const SHOWN = 5;

export async function openAdd(view) {
  const adding = {
    url: "", cookie: false, job: null, isLooking: false, isSending: false, found: null, error: null, refusal: null,
    isOpen: true, values: valuesOf(USUAL),
  };
  const made = await openDialog({ title: text("archive.add.title"), content: (close, redraw) => form(adding, close, redraw) });
  adding.isOpen = false;
  if (!made) return;
  say(text("archive.said.added", { name: made.name }));
  view.refresh();
  go(link("archive", "subscription", made.id));
}

function form(adding, close, redraw) {
  const step = async (event) => {
    event.preventDefault();
    if (adding.isLooking || adding.isSending) return;
    if (adding.found || adding.error) await subscribe(adding, close, redraw);
    else await look(adding, redraw);
  };
  const isSingle = adding.found?.kind === "video";
  const isKnown = Boolean(adding.found || adding.error);
  return html`<form class="dialog-form" @submit=${step}>
    <div class="dialog-body">
      ${address(adding, redraw)}
      ${adding.isLooking && progress(adding.job)}
      ${adding.error && html`<div class="notice bad" role="alert">${text("archive.add.failed", { error: adding.error })}</div>`}
      ${adding.found && preview(adding.found)}
      ${isKnown && !isSingle && options(adding, redraw)}
      ${adding.refusal && html`<div class="notice bad" role="alert">${adding.refusal}</div>`}
    </div>
    <div class="dialog-foot">
      <button type="button" class="quiet" @click=${() => close(null)}>${text("dialog.cancel")}</button>
      <button type="submit" aria-busy=${adding.isLooking || adding.isSending ? "true" : null} aria-disabled=${isSingle ? "true" : null}
        title=${isSingle ? text("archive.add.single") : null}>${text(adding.found ? "archive.add.do" : adding.error ? "archive.add.anyway" : "archive.add.look")}</button>
    </div>
  </form>`;
}

function address(adding, redraw) {
  const change = (name, value) => {
    // Another address is another list.
    Object.assign(adding, { [name]: value, found: null, error: null, refusal: null });
    redraw();
  };
  return html`${formField({ name: "url", label: text("archive.add.url"), kind: "url", required: true, placeholder: "https://", hint: text("archive.add.url.hint") }, adding.url, change)}
    ${formField({ name: "cookie", label: text("archive.add.cookie"), kind: "checkbox" }, adding.cookie, change)}`;
}

function progress(job) {
  const waits = job && job.status !== "running";
  return html`<div class="archive-looking" role="status"><span class="archive-spin" aria-hidden="true"></span>
    <span>${waits ? text("archive.add.looking.wait", { why: job.wait_reason ?? text("archive.add.looking.turn") }) : text("archive.add.looking")}</span>
    ${job && html`<a class="push archive-small" href=${link("requests", job.id)}>${text("archive.now.request", { id: String(job.id) })}</a>`}</div>`;
}

function preview({ title, uploader, total, entries = [], kind, url, site }) {
  const some = entries.slice(0, SHOWN);
  return html`<div class="preview archive-preview" role="status">
    <p><strong>${title ?? url}</strong></p>
    <p class="muted">${[site, uploader, kind === "video" ? null : total === null || total === undefined ? text("archive.add.found.some") : text("archive.add.found", { n: total })].filter(Boolean).join(" · ")}</p>
    ${kind === "video" && html`<p>${text("archive.add.single")}</p>`}
    ${some.length > 0 && html`<p class="label">${text("archive.add.first")}</p>
      <ol>${some.map((each) => html`<li><span class="clip">${each.title ?? each.url}</span><span class="muted numbers">${each.duration_s ? clockTime(each.duration_s) : null}</span></li>`)}</ol>`}
  </div>`;
}

function options(adding, redraw) {
  const change = (name, value) => {
    adding.values[name] = value;
    adding.refusal = null;
    redraw();
  };
  return html`<details class="archive-options"><summary>${text("archive.add.options")}</summary>
    <div>${fieldsOf(USUAL).map((field) => formField(field, adding.values[field.name], change))}</div></details>
    <p class="muted archive-small">${text("archive.add.begins")}</p>`;
}

async function look(adding, redraw) {
  Object.assign(adding, { isLooking: true, job: null, found: null, error: null, refusal: null });
  redraw();
  const { url, cookie } = adding;
  try {
    const { id } = await call("parseCollection", {}, { body: { url: url.trim(), requires_cookie: cookie } });
    const found = await resultOf(id, adding, redraw);
    if (adding.url === url) adding.found = found;
  } catch (error) {
    // What the server refuses to look at cannot be subscribed to either.
    adding[error.status ? "refusal" : "error"] = error.message;
  } finally {
    adding.isLooking = false;
    redraw();
  }
}

/** What the request has found, once it has; it stands in line like all others. */
async function resultOf(id, adding, redraw) {
  while (adding.isOpen) {
    adding.job = await call("getJob", { id });
    redraw();
    const { status, last_error: why } = adding.job;
    if (status === "completed") return (await call("getJobResult", { id })).value;
    if (status === "failed") throw new Error(why);
    if (status === "cancelled") throw new Error(text("archive.add.cancelled"));
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
  return null;
}

async function subscribe(adding, close, redraw) {
  if (adding.found?.kind === "video") return;
  adding.isSending = true;
  redraw();
  try {
    close(await call("addSubscription", {}, { body: { url: adding.url.trim(), ...bodyOf(adding.values) } }));
  } catch (error) {
    adding.refusal = error.message;
  } finally {
    adding.isSending = false;
    redraw();
  }
}
