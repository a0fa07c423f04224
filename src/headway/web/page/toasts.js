// Short messages at the edge: what was done, with a way back where there is one, and what failed.

import { each, html, render } from "../render.js";
import { text } from "../text.js";

const SHOWN_MS = 7_000;
const FAILED_MS = 12_000;
const MOST = 4;

let toasts = [];
let next = 1;

/** `undo` is a function: it is offered for as long as the message stands there. */
export function say(message, { kind = "good", undo = null } = {}) {
  const toast = { id: next++, message, kind, undo };
  toasts = [...toasts.slice(1 - MOST), toast];
  leave(toast);
  draw();
}

/** It goes after a while, but not while somebody points at it or has the focus in it. */
function leave(toast) {
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => dismiss(toast), toast.kind === "bad" ? FAILED_MS : SHOWN_MS);
}

function stay(toast) {
  clearTimeout(toast.timer);
}

/** A call has failed: what the server says about it. */
export function report(error) {
  if (error?.name === "AbortError") return;
  if (!("status" in (error ?? {}))) console.error(error);
  const message = error?.status === 0 ? text("problem.unreachable") : error?.message;
  say(message || text("problem.other"), { kind: "bad" });
}

function dismiss(toast) {
  clearTimeout(toast.timer);
  toasts = toasts.filter((other) => other !== toast);
  draw();
}

async function takeBack(toast) {
  dismiss(toast);
  try {
    await toast.undo();
    say(text("toast.undone"));
  } catch (error) {
    report(error);
  }
}

function draw() {
  render(
    each(toasts, ({ id }) => id, (toast) => html`<div class="toast ${toast.kind}" role=${toast.kind === "bad" ? "alert" : "status"}
      @pointerenter=${() => stay(toast)} @pointerleave=${() => leave(toast)} @focusin=${() => stay(toast)} @focusout=${() => leave(toast)}>
      <p>${toast.message}</p>
      ${toast.undo && html`<button type="button" class="link" @click=${() => takeBack(toast)}>${text("toast.undo")}</button>`}
      <button type="button" class="link" aria-label=${text("toast.dismiss")} @click=${() => dismiss(toast)}>×</button>
    </div>`),
    document.getElementById("page-toasts"),
  );
}
