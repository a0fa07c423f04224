// The list of requests: searched, paged, live, and still under the pointer.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { update, view } from "../../frame.js";
import { count } from "../../format.js";
import { icon } from "../../icons.js";
import { button, empty, pager, problemNotice } from "../../parts.js";
import { adjust, link } from "../../route.js";
import { ICONS, VERBS, actOnAll, verbText } from "./actions.js";
import { newRequest } from "./forms.js";
import { requestRow } from "./row.js";
import { search, searchField } from "./search.js";
import { apartFromStatus } from "./suggest.js";

const SIZE = 50;
const POINTED_MS = 5_000; // who has not moved for so long only left the pointer there
const EVERYTHING = "status:open,ended";
const MAX_Q = 1_000;
const CHIPS = {
  all: ["", ({ total }) => total],
  open: ["open", ({ queued, running, paused }) => queued + running + paused],
  running: ["running", ({ running }) => running],
  waiting: ["waiting", ({ queued }) => queued],
  failed: ["failed", ({ failed }) => failed],
  paused: ["paused", ({ paused }) => paused],
};

const state = { q: "", selected: new Set(), all: false, pointedAt: -Infinity, refused: null };

export function placeIn({ params }) {
  return { q: params.q ?? "", page: Math.max(1, Math.trunc(Number(params.page ?? 1)) || 1) };
}

/**
 * The page of the list. While somebody points at the rows or has selected some, the same requests are
 * asked for again, as they are now: nobody should press a button that has just moved away.
 */
export async function askForList(route, { jobs: before } = {}) {
  const { q, page } = placeIn(route);
  const of = `${page} ${q}`;
  const same = before?.of === of && isHeld() ? `id:${before.items.map(({ id }) => id).join(",")}` : "";
  if (same.length > "id:".length && same.length <= MAX_Q) {
    const [kept, now] = await Promise.all([call("listJobs", { q: same, size: SIZE }), call("listJobs", { q, page, size: 1 })]);
    return { ...before, items: kept.items, total: now.total, held: true };
  }
  return { ...(await listed(q, page)), of, held: false };
}

/** A search that cannot be understood is not asked again and again. */
async function listed(q, page) {
  if (state.refused?.q === q) throw state.refused.error;
  try {
    return await call("listJobs", { q, page, size: SIZE });
  } catch (error) {
    if (error.status === 422) state.refused = { q, error };
    throw error;
  }
}

function isHeld() {
  const focused = document.activeElement?.closest("[data-row]") && document.activeElement.matches(":focus-visible");
  return state.selected.size > 0 || Boolean(focused) || performance.now() - state.pointedAt < POINTED_MS;
}

export function requestList({ data: { jobs, stats }, errors, route, refresh }) {
  const place = placeIn(route);
  const refusal = errors.jobs;
  const bad = refusal?.status === 422 ? refusal : null;
  if (place.q !== state.q) Object.assign(state, { q: place.q, selected: new Set(), all: false });
  return html`<div class="request-tools">
      ${searchField(place.q, bad, jobs?.items ?? [])}
      ${button({ label: text("requests.new"), icon: "plus", kind: "", small: false, needs: "submit", run: newRequest })}
    </div>
    ${chips(place.q, stats)}
    ${refusal && !bad && problemNotice(refusal, refresh)}
    ${jobs && (jobs.items.length > 0 ? found(jobs, place) : nothing(jobs, place, stats))}`;
}

function chips(q, stats) {
  const { status, rest } = apartFromStatus(q);
  return html`<nav class="chips" aria-label=${text("requests.chips")}>${Object.entries(CHIPS).map(([name, [wanted, number]]) => html`<a class="chip ${name} ${stats && number(stats.counts) > 0 ? "some" : ""}"
    href=${link("requests", { q: [wanted && `status:${wanted}`, rest].filter(Boolean).join(" ") })} aria-current=${status === wanted ? "true" : null}
    >${text(`requests.chip.${name}`)}<span class="numbers chip-count" data-known=${String(rest === "" && Boolean(stats))}>${stats ? count(number(stats.counts)) : "–"}</span></a>`)}</nav>`;
}

function found(jobs, place) {
  return html`<section class="request-list" aria-label=${text("requests.caption")}>
    <div class="list-head">${state.selected.size > 0 || state.all ? bulkBar(jobs, place) : summary(jobs)}</div>
    <div class="table-frame" @pointermove=${pointed} @pointerleave=${left} @focusout=${() => setTimeout(letGo)}>
      <table class="requests-table">
        <caption class="visually-hidden">${text("requests.caption")}</caption>
        <thead><tr>
          <th class="pick">${selectPage(jobs.items)}</th><th class="id number">${text("requests.col.id")}</th><th class="what">${text("requests.col.request")}</th>
          <th class="state">${text("requests.col.state")}</th><th class="now">${text("requests.col.now")}</th><th class="where">${text("requests.col.where")}</th>
          <th class="when">${text("requests.col.when")}</th><th class="acts"><span class="visually-hidden">${text("requests.col.actions")}</span></th>
        </tr></thead>
        <tbody>${each(jobs.items, ({ id }) => id, (job) => requestRow(job, { selected: state.selected.has(job.id), choose: () => select(job.id) }))}</tbody>
      </table>
    </div>
    ${pager(jobs)}
  </section>`;
}

function summary(jobs) {
  return html`<p class="muted numbers">${text("requests.match", { n: jobs.total })}</p>
    <p class="muted small held" data-held=${String(jobs.held)}>${icon("lock")} ${text("requests.held")}</p>
    <span class="push"></span>
    ${button({ label: text("requests.act.all", { n: jobs.total }), icon: "list", run: () => set({ all: true }) })}`;
}

/** The same for several: for those that are selected, or for all that match. */
function bulkBar(jobs, { q }) {
  const some = state.selected.size;
  const which = some > 0 ? { ids: [...state.selected] } : { q: q.trim() || EVERYTHING };
  return html`<div class="bulk" role="group" aria-label=${text("requests.act.bar")}>
    <strong class="numbers">${some > 0 ? text("requests.selected", { n: some }) : text("requests.all.match", { n: jobs.total })}</strong>
    ${some > 0 && jobs.total > some && html`<button type="button" class="link" @click=${() => set({ selected: new Set(), all: true })}>${text("requests.all.match", { n: jobs.total })}</button>`}
    <span class="row push">${VERBS.map((verb) => button({ label: verbText(verb), icon: ICONS[verb], kind: verb === "cancel" ? "quiet danger" : "quiet", run: () => forAll(verb, which) }))}
    ${button({ label: text("requests.unselect"), icon: "close", bare: true, needs: null, run: () => set({ selected: new Set(), all: false }) })}</span>
  </div>`;
}

async function forAll(verb, which) {
  if (await actOnAll(verb, which)) set({ selected: new Set(), all: false });
}

function nothing(jobs, { q }, stats) {
  if (jobs.total > 0) {
    const last = Math.ceil(jobs.total / SIZE);
    return empty({ title: text("requests.nothing"), about: text("requests.match", { n: jobs.total }), action: button({ label: text("requests.page.last"), needs: null, run: () => adjust({ page: last }) }) });
  }
  if (q.trim() !== "" || stats?.counts.total > 0) {
    return empty({ title: text("requests.nothing"), about: text("requests.nothing.about"), icon: "search", action: button({ label: text("requests.show.all"), needs: null, run: () => search("") }) });
  }
  return empty({
    title: text("requests.none"), about: text("requests.none.about"),
    code: "headway jobs add fetch url=https://example.com --upstream example.com",
    action: button({ label: text("requests.new"), icon: "plus", needs: "submit", run: newRequest }),
  });
}

// ---------------------------------------------------------------------- what is selected

function set(changes) {
  Object.assign(state, changes);
  update();
  letGo();
}

export function select(id) {
  const selected = new Set(state.selected);
  if (!selected.delete(id)) selected.add(id);
  set({ selected, all: false });
}

function selectPage(items) {
  const all = items.every(({ id }) => state.selected.has(id));
  const some = !all && items.some(({ id }) => state.selected.has(id));
  const toggle = () => {
    const selected = new Set(state.selected);
    for (const { id } of items) {
      if (all) selected.delete(id);
      else selected.add(id);
    }
    set({ selected, all: false });
  };
  return html`<label><input type="checkbox" aria-label=${text("requests.select.page")} .checked=${all} .indeterminate=${some} @change=${toggle} /><span aria-hidden="true">${text("requests.select.page")}</span></label>`;
}

export function actOnAllThatMatch() {
  set({ selected: new Set(), all: true });
}

export function clearSelection() {
  if (state.selected.size === 0 && !state.all) return false;
  set({ selected: new Set(), all: false });
  return true;
}

function pointed() {
  state.pointedAt = performance.now();
}

function left() {
  state.pointedAt = -Infinity;
  letGo();
}

/** Nothing keeps the order any more: what has come meanwhile is shown at once. */
function letGo() {
  const opened = view();
  if (opened?.data.jobs?.held && !isHeld()) opened.refresh();
}
