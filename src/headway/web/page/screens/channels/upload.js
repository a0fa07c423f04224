// A new batch: a file is chosen and looked at, uploaded, and the batch is started.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { formField, openDialog } from "../../dialogs.js";
import { bytes, count } from "../../format.js";
import { go, link } from "../../route.js";
import { say } from "../../toasts.js";

const ENDPOINTS = ["/v1/chat/completions", "/v1/embeddings"];
const WINDOWS = ["1h", "6h", "24h", "3d", "7d"];
const LOOKED_AT = 20_000_000; // bytes of a file that are looked at before it is sent
const PATIENCE_MS = 3_600_000; // for a long file on a slow line

export async function openUpload() {
  const state = { values: { file: null, endpoint: ENDPOINTS[0], window: "24h", name: "" }, found: null, step: null, error: null, uploaded: null };
  const batch = await openDialog({
    title: text("channels.upload"),
    content: (close, redraw) => form(state, close, redraw),
  });
  if (batch) {
    say(text("channels.did.upload"));
    go(link("channels", "batches", batch.id));
  } else if (state.uploaded) {
    // Nobody wants it any more.
    await call("deleteFile", { id: state.uploaded.id }).catch(() => {});
  }
}

function form(state, close, redraw) {
  const set = (changes) => {
    Object.assign(state, changes);
    redraw();
  };
  const change = (name, value) => {
    state.values[name] = value;
    set({ error: null, ...(name === "file" ? { found: null, uploaded: null } : {}) });
    if (name === "file" && value) look(value).then((found) => state.values.file === value && guess(state, found, set));
  };
  const send = async (event) => {
    event.preventDefault();
    if (state.step) return;
    try {
      if (!state.uploaded) {
        set({ step: "upload", error: null });
        state.uploaded = await upload(state.values.file);
      }
      set({ step: "start" });
      close(await start(state));
    } catch (error) {
      set({ error, step: null });
    }
  };
  const { file, endpoint, window, name } = state.values;
  return html`<form class="dialog-form" @submit=${send}>
    <div class="dialog-body">
      <p class="muted">${text("channels.upload.about")}</p>
      ${formField({ name: "file", label: text("channels.upload.file"), kind: "file", required: true, accept: ".jsonl,.ndjson,.json,.txt" }, file, change)}
      ${file && html`<div class="preview" role="status">${about(file, state.found)}</div>`}
      ${formField({ name: "endpoint", label: text("channels.endpoint"), kind: "select", options: ENDPOINTS.map((each) => [each, each]) }, endpoint, change)}
      ${formField({ name: "window", label: text("channels.window"), kind: "select", options: WINDOWS.map((each) => [each, text(`channels.window.${each}`)]), hint: text("channels.window.hint") }, window, change)}
      ${formField({ name: "name", label: text("channels.upload.name"), hint: text("channels.upload.name.hint") }, name, change)}
      ${state.step && html`<div class="upload-step" role="status"><span class="upload-bar"></span>${text(`channels.step.${state.step}`, { size: bytes(file.size) })}</div>`}
      ${state.error && html`<div class="notice bad" role="alert">${state.error.message}</div>`}
    </div>
    <div class="dialog-foot">
      <button type="button" class="quiet" @click=${() => close(null)}>${text("dialog.cancel")}</button>
      <button type="submit" aria-busy=${state.step ? "true" : null}>${text("channels.upload.do")}</button>
    </div>
  </form>`;
}

function upload(file) {
  const body = new FormData();
  body.append("purpose", "batch");
  body.append("file", file, file.name);
  return call("createFile", {}, { body, signal: AbortSignal.timeout(PATIENCE_MS) });
}

function start({ uploaded, values: { endpoint, window, name } }) {
  const metadata = name ? { name } : null;
  return call("createLlmBatch", {}, { body: { input_file_id: uploaded.id, endpoint, completion_window: window, metadata } });
}

// -------------------------------------------------------------------- what is in the file

/** How many lines, for which models and where; the server checks every line once more. */
async function look(file) {
  if (file.size > LOOKED_AT) return null;
  const lines = (await file.text()).split("\n").map((line) => line.trim()).filter(Boolean);
  const [models, endpoints] = [new Set(), new Set()];
  let wrong = 0;
  for (const line of lines) {
    try {
      const { url, body } = JSON.parse(line);
      models.add(body.model);
      endpoints.add(url);
    } catch {
      wrong += 1;
    }
  }
  return { lines: lines.length, models: [...models].filter(Boolean), endpoints: [...endpoints].filter(Boolean), wrong };
}

function guess(state, found, set) {
  const [endpoint] = found?.endpoints ?? [];
  if (ENDPOINTS.includes(endpoint)) state.values.endpoint = endpoint;
  set({ found });
}

function about(file, found) {
  if (!found) return bytes(file.size);
  const { lines, models, wrong } = found;
  return html`<p><b>${text("channels.upload.lines", { n: lines })}</b> · ${bytes(file.size)}${models.length > 0 && html` · <code>${models.slice(0, 3).join(", ")}</code>${models.length > 3 && ` +${count(models.length - 3)}`}`}</p>
    ${wrong > 0 && html`<p class="upload-wrong">${text("channels.upload.wrong", { n: wrong })}</p>`}`;
}
