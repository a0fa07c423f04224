// Questions to the person: confirmations and forms, in the browser's own dialogs, which keep the
// focus inside and close with Escape.

import { html, render } from "../render.js";
import { text } from "../text.js";
import { button } from "./parts.js";
import { report } from "./toasts.js";

let next = 1;

/** `content(close, redraw)` is the inside; the promise has what `close` was called with, or null. */
export function openDialog({ title, content, wide = false }) {
  return new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    const id = `page-dialog-${next++}`;
    dialog.setAttribute("aria-labelledby", id);
    if (wide) dialog.className = "wide";
    let answer = null;
    const close = (value) => {
      answer = value;
      dialog.close();
    };
    const redraw = () =>
      render(
        html`<div class="dialog-head"><h2 id=${id}>${title}</h2>
            ${button({ label: text("dialog.close"), icon: "close", bare: true, needs: null, run: () => close(null) })}</div>
          ${content(close, redraw)}`,
        dialog,
      );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    // A press beside it closes it, as people expect.
    dialog.addEventListener("click", (event) => event.target === dialog && close(null));
    redraw();
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** True if they said yes. `about` says what will happen, `action` is what the button does. */
export async function confirm({ title, about, action, danger = true }) {
  const answer = await openDialog({
    title,
    content: (close) => html`<div class="dialog-body">${typeof about === "string" ? html`<p>${about}</p>` : about}</div>
      <div class="dialog-foot">
        <button type="button" class="quiet" autofocus @click=${() => close(false)}>${text("dialog.cancel")}</button>
        <button type="button" class=${danger ? "danger" : ""} @click=${() => close(true)}>${action}</button>
      </div>`,
  });
  return answer === true;
}

/**
 * A form. `fields`: [{ name, label, kind, value, hint, required, options, min, max, step, placeholder,
 * unless, suggest }] where kind is text, number, password, textarea, select, checkbox, file or url,
 * options are [value, label], and `suggest` is what a text may be, but need not. `send(values)` does it; what it throws is shown in the form, which stays.
 * `preview(values)` gives a template about what would happen, asked again after each change.
 * The promise has what `send` returned, or null.
 */
export function askForm({ title, about = null, fields, submit, send, preview = null, danger = false, wide = false }) {
  const state = { values: valuesOf(fields), error: null, busy: false, preview: null };
  let timer = 0;
  let asked = 0;
  let sending = null;
  return openDialog({
    title,
    wide,
    content: (close, redraw) => {
      const foresee = async () => {
        if (!preview) return;
        const mine = (asked += 1);
        const foreseen = await said(preview, { ...state.values });
        if (mine !== asked) return; // something else was typed since
        state.preview = foreseen;
        redraw();
      };
      const change = (name, value) => {
        state.values[name] = value;
        state.error = null;
        clearTimeout(timer);
        timer = setTimeout(foresee, 250);
        redraw();
      };
      if (preview && asked === 0) foresee();
      const press = async (event) => {
        event.preventDefault();
        if (state.busy) return;
        state.busy = true;
        redraw();
        sending = (async () => (await send({ ...state.values })) ?? true)();
        try {
          close(await sending);
        } catch (error) {
          state.error = error;
        } finally {
          sending = null;
          state.busy = false;
          redraw();
        }
      };
      const shown = fields.filter((field) => !field.unless?.(state.values));
      const faults = faultsOf(state.error, shown);
      return html`<form class="dialog-form" @submit=${press}>
        <div class="dialog-body">
          ${about && html`<p class="muted">${about}</p>`}
          ${shown.map((field) => formField(field, state.values[field.name], change, faults.get(field.name)))}
          ${state.preview && html`<div class="preview" role="status">${state.preview}</div>`}
          ${state.error && faults.size === 0 && html`<div class="notice bad" role="alert">${state.error.message}</div>`}
        </div>
        <div class="dialog-foot">
          <button type="button" class="quiet" @click=${() => close(null)}>${text("dialog.cancel")}</button>
          <button type="submit" class=${danger ? "danger" : ""} aria-busy=${state.busy ? "true" : null}>${submit}</button>
        </div>
      </form>`;
    },
  }).then((answer) => {
    clearTimeout(timer);
    // Who closes it after they sent it is told what came of it all the same.
    return answer ?? sending?.catch(report) ?? null;
  });
}

/** What the preview says, be it that there is none. */
async function said(preview, values) {
  try {
    return await preview(values);
  } catch (error) {
    return html`<p class="muted">${error.message}</p>`;
  }
}

function valuesOf(fields) {
  return Object.fromEntries(fields.map(({ name, value, kind }) => [name, value ?? (kind === "checkbox" ? false : "")]));
}

/** What the server says about single fields, if all that it says is about fields that are shown. */
function faultsOf(error, fields) {
  const names = new Set(fields.map(({ name }) => name));
  const faults = (error?.errors ?? []).map(({ where, what }) => [String(where).split(".").pop(), what]);
  return new Map(faults.every(([name]) => names.has(name)) ? faults : []);
}

/** `fault` is what is wrong with the value, said beside it. */
export function formField(field, value, change, fault = null) {
  const { name, label, kind = "text", hint } = field;
  const input = (event) => change(name, kind === "checkbox" ? event.target.checked : kind === "file" ? event.target.files[0] : event.target.value);
  const about = hint && `page-hint-${name}`;
  const wrong = fault && `page-fault-${name}`;
  const described = [wrong, about].filter(Boolean).join(" ") || null;
  if (kind === "checkbox") {
    return html`<label class="check"><input type="checkbox" name=${name} .checked=${value} aria-describedby=${about} @change=${input} /> <span>${label}</span></label>
      ${hint && html`<p class="hint" id=${about}>${hint}</p>`}`;
  }
  return html`<label class="field"><span>${label}</span>${control(field, value, input, described, fault ? "true" : null)}</label>
    ${fault && html`<p class="hint fault" id=${wrong} role="alert">${fault}</p>`}
    ${hint && html`<p class="hint" id=${about}>${hint}</p>`}`;
}

function control({ name, kind = "text", required, options = [], min, max, step, placeholder, accept, suggest, rows = 5 }, value, input, about, invalid) {
  if (kind === "select") {
    return html`<select name=${name} aria-describedby=${about} aria-invalid=${invalid} @change=${input}>${options.map(([each, label]) => html`<option value=${each} selected=${each === value}>${label}</option>`)}</select>`;
  }
  if (kind === "textarea") {
    return html`<textarea name=${name} rows=${rows} spellcheck="false" required=${required} placeholder=${placeholder} aria-describedby=${about} aria-invalid=${invalid} .value=${value} @input=${input}></textarea>`;
  }
  if (kind === "file") {
    return html`<input type="file" name=${name} required=${required} accept=${accept} aria-describedby=${about} aria-invalid=${invalid} @change=${input} />`;
  }
  return html`<input type=${kind} name=${name} required=${required} min=${min} max=${max} step=${step} placeholder=${placeholder}
    autocomplete="off" spellcheck="false" aria-describedby=${about} aria-invalid=${invalid} list=${suggest && `page-list-${name}`} .value=${String(value)} @input=${input} />
    ${suggest && html`<datalist id=${`page-list-${name}`}>${suggest.map((each) => html`<option value=${each}></option>`)}</datalist>`}`;
}
