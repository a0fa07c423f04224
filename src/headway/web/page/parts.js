// Small parts that all screens share: buttons that say why they cannot be pressed, badges, notices,
// tables that turn pages, and what is shown where nothing is yet.

import { html } from "../render.js";
import { isKnown, text } from "../text.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { adjust } from "./route.js";
import { refusedBecause } from "./session.js";
import { report, say } from "./toasts.js";

/**
 * `run` may return a promise: the button is busy until it ends, and a failure is reported. `unless`
 * is the reason why it cannot be pressed now; `needs` the scope that it takes. It stays in the
 * order of the keyboard, so that everybody can find the reason.
 */
export function button({ label, run, icon: name, kind = "quiet", needs = "operate", unless = null, title = null, small = true, bare = false, pressed = null, keys = null }) {
  const reason = (needs && refusedBecause(needs)) || unless || null;
  const press = async (event) => {
    event.stopPropagation();
    const element = event.currentTarget;
    if (reason) return say(reason, { kind: "warn" });
    if (element.getAttribute("aria-busy") === "true") return;
    element.setAttribute("aria-busy", "true");
    try {
      await run(event);
    } catch (error) {
      report(error);
    } finally {
      element.removeAttribute("aria-busy");
    }
  };
  return html`<button
    type="button" class="${kind} ${small ? "small" : ""} ${bare ? "bare" : ""}"
    aria-disabled=${reason ? "true" : null} title=${reason ?? title ?? (bare ? label : null)}
    aria-label=${bare ? label : null} aria-pressed=${pressed === null ? null : String(pressed)}
    aria-keyshortcuts=${keys} @click=${press}
  >${name && icon(name)}${bare ? null : html`<span>${label}</span>`}</button>`;
}

/** The state of a job or the like, in words and colour. */
export function badge(state, label = stateText(state)) {
  return html`<span class="badge ${state}">${label}</span>`;
}

export function stateText(state) {
  return isKnown(`state.${state}`) ? text(`state.${state}`) : state;
}

export function notice(kind, content) {
  return html`<div class="notice ${kind}" role=${kind === "bad" ? "alert" : "status"}>${content}</div>`;
}

/** Nothing is here yet: what it is for, and how it comes to be. */
export function empty({ title, about, code = null, action = null, icon: name = "empty" }) {
  return html`<div class="empty">
    ${icon(name)}
    <p class="empty-title">${title}</p>
    <p class="muted">${about}</p>
    ${code && html`<pre class="code" tabindex="0"><code>${code}</code></pre>`}
    ${action}
  </div>`;
}

export function loading() {
  return html`<div class="loading" role="status"><span class="visually-hidden">${text("frame.loading")}</span>
    <span class="bone"></span><span class="bone"></span><span class="bone"></span></div>`;
}

/** Why something cannot be shown, in words that say what to do. */
export function problemNotice(error, again = null) {
  const known = { 0: "unreachable", 403: "forbidden", 404: "missing" }[error.status];
  return html`<div class="notice bad" role="alert">
    <p><strong>${known ? text(`problem.${known}`) : text("problem.other")}</strong></p>
    <p class="muted">${error.message}</p>
    ${again && html`<button type="button" class="quiet small" @click=${again}>${text("frame.again")}</button>`}
  </div>`;
}

/** A share as a bar; `label` is what it says to those who cannot see it. */
export function bar(share, label, kind = "") {
  const known = Number.isFinite(share);
  const width = known ? Math.max(0, Math.min(1, share)) : 0;
  return html`<span class="bar ${kind}" role="progressbar" aria-label=${label} aria-valuemin="0"
    aria-valuemax="100" aria-valuenow=${known ? Math.round(width * 100) : null}
    ><span class="bar-fill" --share=${String(width)}></span></span>`;
}

/** `page`, `size` and `total` as the server says them; other pages are other addresses. */
export function pager({ page, size, total }, turn = (number) => adjust({ page: number === 1 ? null : number })) {
  const last = Math.max(1, Math.ceil(total / size));
  if (last === 1 && page === 1) return null;
  const from = page > last ? 0 : (page - 1) * size + 1; // rows may have gone since it was opened
  return html`<nav class="pager" aria-label=${text("pager.pages")}>
    ${button({ label: text("pager.previous"), icon: "left", bare: true, needs: null, unless: page > 1 ? null : text("pager.first"), run: () => turn(Math.min(page - 1, last)) })}
    <span class="numbers">${text("pager.range", { from, to: from && Math.min(total, page * size), total: count(total) })}</span>
    ${button({ label: text("pager.next"), icon: "right", bare: true, needs: null, unless: page < last ? null : text("pager.last"), run: () => turn(page + 1) })}
  </nav>`;
}

/** A time that ticks, relative to now; the exact one is in its tooltip. */
export function when(at) {
  return at ? html`<hw-time at=${at}></hw-time>` : html`<span class="muted">–</span>`;
}

/** What is left until then, counted down. */
export function countdown(at) {
  return html`<hw-countdown at=${at}></hw-countdown>`;
}

/** One number with its name, as on the overview. */
export function figure({ label, value, kind = "", href = null, about = null }) {
  const content = html`<span class="figure-value">${value}</span><span class="figure-label">${label}</span>
    ${about && html`<span class="figure-about">${about}</span>`}`;
  return href
    ? html`<a class="figure ${kind}" href=${href}>${content}</a>`
    : html`<div class="figure ${kind}">${content}</div>`;
}
