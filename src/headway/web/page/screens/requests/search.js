// The field in which requests are searched, with completion (a combobox: arrows, Enter, Tab, Esc).

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { update } from "../../frame.js";
import { icon } from "../../icons.js";
import { button } from "../../parts.js";
import { go, link } from "../../route.js";
import { seesAll } from "../../session.js";
import { suggestions, valuesIn, wordAt } from "./suggest.js";

const FRESH_MS = 60_000;
const LISTED = { type: "listTypes", lane: "listLanes", upstream: "listUpstreams" };
const MOVES = { ArrowDown: 1, ArrowUp: -1 };

const state = { q: null, leaving: null, typed: "", caret: 0, open: false, chosen: -1, jobs: [], listed: {}, listedAt: -Infinity };

/** `q` is what is searched now, `refusal` why it cannot be, `jobs` what is shown. */
export function searchField(q, refusal, jobs) {
  follow(q);
  state.jobs = jobs;
  const { options, chosen } = found();
  const open = options.length > 0;
  return html`<form class="request-search" role="search" @submit=${submit}>
    <label class="visually-hidden" for="request-q">${text("requests.search")}</label>
    <div class="search-box">
      ${icon("search")}
      <input id="request-q" type="text" data-filter role="combobox" aria-autocomplete="list" aria-expanded=${String(open)} aria-controls="request-options"
        aria-activedescendant=${chosen >= 0 ? `request-option-${chosen}` : null} aria-invalid=${refusal ? "true" : null} aria-describedby=${refusal ? "request-refusal" : null}
        autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="1000" enterkeyhint="search" placeholder=${text("requests.search.example")} .value=${state.typed}
        @focus=${look} @input=${look} @click=${look} @blur=${close} @keydown=${pressed} />
      ${state.typed && button({ label: text("requests.search.clear"), icon: "close", bare: true, needs: null, run: () => search("") })}
      <ul id="request-options" role="listbox" aria-label=${text("requests.search.options")} hidden=${!open}>
        ${each(options, ({ label }) => label, (option, index) => html`<li id="request-option-${index}" role="option" aria-selected=${String(index === chosen)}
          @pointerdown=${(event) => event.preventDefault()} @click=${({ currentTarget }) => take(option, currentTarget)}><code>${option.label}</code><span class="muted">${option.about}</span></li>`)}
      </ul>
    </div>
    ${refusal && html`<p id="request-refusal" class="refusal" role="alert">${refusal.message}</p>`}
  </form>`;
}

/** The address has changed: by us, which takes a moment, or by somebody else. */
function follow(q) {
  if (q === state.q) state.leaving = null;
  else if (q !== state.leaving) Object.assign(state, { q, typed: q, caret: q.length, open: false, chosen: -1 });
}

export function search(typed) {
  const wanted = typed.trim();
  Object.assign(state, { leaving: state.q, q: wanted, typed, open: false, chosen: -1 });
  go(link("requests", { q: wanted }));
  update();
}

/** What could follow where the caret is now: who types fast is ahead of what is drawn. */
function found() {
  if (!state.open) return { options: [], word: "", chosen: -1 };
  const all = suggestions(state.typed, state.caret, offered());
  return { ...all, chosen: Math.min(state.chosen, all.options.length - 1) };
}

function offered() {
  const here = valuesIn(state.jobs);
  const all = {};
  for (const [name, values] of Object.entries(here)) all[name] = [...new Set([...(state.listed[name] ?? []), ...values])];
  return all;
}

/** Somebody types or comes here: look again at what could follow. */
function look({ target }) {
  Object.assign(state, { typed: target.value, caret: target.selectionStart, open: true, chosen: -1 });
  if (performance.now() - state.listedAt > FRESH_MS) list();
  update();
}

async function list() {
  state.listedAt = performance.now();
  // Gates are for those who see all tenants; the others complete from what they see.
  if (!seesAll()) return;
  await Promise.all(Object.entries(LISTED).map(async ([name, asked]) => {
    try {
      state.listed[name] = (await call(asked)).items.map((gate) => gate.name);
    } catch {
      // Completion is a courtesy: without it everything can still be typed.
    }
  }));
  update();
}

function close() {
  Object.assign(state, { open: false, chosen: -1 });
  update();
}

function submit(event) {
  event.preventDefault();
  search(state.typed);
}

function pressed(event) {
  const { options, word, chosen } = found();
  if (event.key === "Escape" && state.open && options.length > 0) {
    event.stopPropagation();
    close();
  } else if (MOVES[event.key]) {
    if (!state.open) return look(event);
    state.chosen = (Math.max(chosen, MOVES[event.key] > 0 ? -1 : 0) + MOVES[event.key] + options.length) % Math.max(1, options.length);
    update();
    requestAnimationFrame(() => document.getElementById(`request-option-${state.chosen}`)?.scrollIntoView({ block: "nearest" }));
  } else if ((event.key === "Enter" && chosen >= 0) || (event.key === "Tab" && !event.shiftKey && options.length > 0 && (chosen >= 0 || word))) {
    take(options[Math.max(0, chosen)], event.target);
  } else return;
  event.preventDefault();
}

/** A name waits for its value; with a value the search is complete. */
function take(option, near) {
  const { from, to } = wordAt(state.typed, state.caret);
  const typed = state.typed.slice(0, from) + option.insert + state.typed.slice(to).replace(/^\S+/, "").trimStart();
  const input = near.closest(".search-box").querySelector("input");
  const caret = from + option.insert.length;
  input.value = typed;
  input.focus();
  input.setSelectionRange(caret, caret);
  Object.assign(state, { typed, caret, open: !option.complete, chosen: -1 });
  if (option.complete) search(typed);
  else update();
}
