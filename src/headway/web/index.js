// The landing page: the queue's numbers, asked for again and again while somebody looks.

import { html, replaceContent } from "./dom.js";
import { HOME_WORDS } from "./text-home.js";
import { offerLanguages, word } from "./text.js";

const EVERY_MS = 2000;
const PATIENCE_MS = 5000;
const SHOWN_COUNTS = ["queued", "running", "paused", "done", "failed", "canceled"];
const STATES = [
  "pending", "queued", "running", "paused", "done", "completed", "failed", "canceled", "cancelled",
];

const byId = (id) => document.getElementById(id);
const exact = new Intl.NumberFormat("en");
const rough = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const MAX_EXACT = 9_999_999;
let timer = 0;

offerLanguages(HOME_WORDS);
showConnection("connecting");
showNumbers(null);
look();

// Nobody reads a hidden page; when it is shown again, old numbers give way before new ones come.
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (document.hidden) return;
  lose("connecting");
  look();
});

async function look() {
  clearTimeout(timer);
  try {
    const response = await fetch("/api/queue/stats", {
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (response.status === 401) return location.assign("/login");
    if (response.status === 403) return lose("forbidden");
    if (!response.ok) throw new Error(`status ${response.status}`);
    showNumbers(await response.json());
    showConnection("live");
  } catch {
    lose("reconnecting");
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(look, EVERY_MS);
}

/** What was true a moment ago is not shown as if it were true now. */
function lose(why) {
  showNumbers(null);
  showConnection(why);
}

function showConnection(state) {
  const place = byId("page-connection");
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  replaceContent(place, word(`home.${state}`));
}

function showNumbers(stats) {
  const counts = stats?.counts ?? {};
  replaceContent(byId("page-counts"), SHOWN_COUNTS.map((state) => tile(state, counts[state])));
  replaceContent(byId("page-total"), stats && [shown(counts.total), " ", word("home.total")]);
  byId("page-paused").hidden = stats?.paused?.all !== true;
  replaceContent(byId("page-lanes"), stats && [capacity(stats.capacity ?? {}), lanes(stats.lanes ?? {})]);
}

function tile(state, count) {
  return html`<div class="count ${count ? state : "none"}">
    <dt>${word(`state.${state}`)}</dt><dd>${shown(count)}</dd>
  </div>`;
}

function shown(count) {
  if (typeof count !== "number") return "–";
  return (count > MAX_EXACT ? rough : exact).format(count);
}

function capacity(numbers) {
  const pools = [
    ["home.cookie", numbers.running_cookie, numbers.requires_cookie],
    ["home.nocookie", numbers.running_nocookie, numbers.no_cookie],
  ].filter(([, , most]) => typeof most === "number");
  if (pools.length === 0) return null;
  return html`<h3>${word("home.capacity")}</h3>
    <ul class="pools">${pools.map(([name, running, most]) => pool(name, running ?? 0, most))}</ul>`;
}

function pool(name, running, most) {
  return html`<li>
    <span>${word(name)}</span>
    <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
      <rect width="${Math.min(100, (100 * running) / Math.max(most, 1))}" height="1"></rect>
    </svg>
    <span class="muted">${shown(running)} / ${shown(most)} ${word("home.in_use")}</span>
  </li>`;
}

function lanes(byName) {
  const entries = Object.entries(byName);
  if (entries.length === 0) {
    return html`<h3>${word("home.lanes")}</h3><p class="muted">${word("home.nolanes")}</p>`;
  }
  const states = STATES.filter((state) => entries.some(([, counts]) => state in counts));
  return html`<h3>${word("home.lanes")}</h3>
    <div class="frame table-frame" tabindex="0"><table class="lanes">
      <thead><tr>
        <th scope="col">${word("home.lane")}</th>
        ${states.map((state) => html`<th scope="col">${word(`state.${state}`)}</th>`)}
      </tr></thead>
      <tbody>${entries.map(([name, counts]) => lane(name, counts, states))}</tbody>
    </table></div>`;
}

function lane(name, counts, states) {
  return html`<tr>
    <th scope="row"><code>${name}</code></th>
    ${states.map((state) => html`<td class="${counts[state] ? state : "none"}">${shown(counts[state])}</td>`)}
  </tr>`;
}
