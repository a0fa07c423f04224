// Channels as cards: what each bears against what goes there now, and why queued work waits.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { serverNow } from "../../clock.js";
import { count, money } from "../../format.js";
import { icon } from "../../icons.js";
import { button, empty, notice, pager, problemNotice } from "../../parts.js";
import { adjust, link } from "../../route.js";
import { seesAll } from "../../session.js";
import { idleLine, keyState, limitWords, shares, stateBadge, stateOf } from "./capacity.js";
import { add, change, switchIt } from "./forms.js";

const SIZE = 12;
const FILTER_ABOVE = 4;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** The date that many days before today, in UTC as the bills have it. */
export function daysAgo(days) {
  return new Date(serverNow() - days * DAY_MS).toISOString().slice(0, 10);
}

export function askChannels(params) {
  return {
    channels: () => withCapacity(params),
    today: () => call("getCosts", { group: "channel", from: daysAgo(0) }),
  };
}

/** Capacity is asked for those only that are shown. */
async function withCapacity({ q = "", page = 1 }) {
  const { items: all } = await call("listChannels");
  const sought = q.toLowerCase();
  const found = all.filter(({ code, model }) => code.toLowerCase().includes(sought) || model.toLowerCase().includes(sought));
  const last = Math.max(1, Math.ceil(found.length / SIZE));
  const at = Math.min(Math.max(1, Number(page) || 1), last);
  const shown = found.slice((at - 1) * SIZE, at * SIZE);
  const items = await Promise.all(shown.map(async (channel) => ({ channel, capacity: await capacityOf(channel) })));
  return { all, items, page: at, size: SIZE, total: found.length };
}

/** One that was removed a moment ago has none. */
async function capacityOf({ code }) {
  try {
    return await call("getChannelCapacity", { code });
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

export function channels(view) {
  if (!seesAll()) return notice("warn", text("channels.tenant"));
  const { channels: found, today } = view.data;
  if (!found) return problemNotice(view.errors.channels ?? { status: 0, message: "" }, view.refresh);
  if (found.all.length === 0) return first(view);
  const q = view.route.params.q ?? "";
  return html`<div class="row between">
      ${found.all.length > FILTER_ABOVE || q ? html`<input type="search" class="channel-filter" data-filter aria-label=${text("channels.filter")} placeholder=${text("channels.filter")}
        autocomplete="off" spellcheck="false" .value=${q} @input=${(event) => adjust({ q: event.target.value, page: null })} />` : html`<span></span>`}
      ${keyToShares(found.items.some(({ capacity }) => capacity?.threshold > 0))}
    </div>
    <div class="channel-cards">${each(found.items, ({ channel }) => channel.code, (one) => card(one, today, view))}</div>
    ${found.total === 0 && html`<p class="muted" role="status">${text("channels.nomatch", { q })}</p>`}
    ${pager(found)}`;
}

function first(view) {
  return empty({
    icon: "spark", title: text("channels.none"), about: text("channels.none.about"),
    code: "headway channels add main --model gpt-large \\\n  --base-url https://api.example.com/v1 --key-env PROVIDER_KEY",
    action: button({ label: text("channels.add"), icon: "plus", kind: "", small: false, run: () => add(view) }),
  });
}

/** `kept`: some of it is kept free, which has a mark of its own. */
export function keyToShares(kept) {
  return html`<ul class="legend">${["online", "queued", "free", ...(kept ? ["threshold"] : [])].map((kind) => html`<li><i class="share-key ${kind}"></i>${text(`channels.share.${kind}`)}</li>`)}</ul>`;
}

function card({ channel, capacity }, today, view) {
  const { code, model, upstream_model: called } = channel;
  return html`<article class="channel card ${stateOf(channel, capacity)}" data-row aria-label=${code}>
    <header class="channel-head">
      <a class="channel-name" href=${link("channels", "channel", code)}>${code}</a>
      ${stateBadge(channel, capacity)}
      <span class="push row">
        ${switchButton(channel, view)}
        ${button({ label: text("channels.change", { code }), icon: "edit", bare: true, unless: declared(channel), run: () => change(channel, view) })}
      </span>
    </header>
    <p class="channel-model"><span class="muted">${text("channels.model")}</span> <code>${model}</code>${called && html` <span class="muted">→ <code>${called}</code></span>`}</p>
    ${capacity && html`<div class="channel-capacity">
      <div class="row between"><span class="channel-limit">${limitWords(capacity)}</span><span class="muted">${text(`upstreams.phase.${capacity.phase}`)}</span></div>
      ${shares(capacity)}
      ${idleLine(channel, capacity)}
    </div>
    <dl class="channel-facts">
      <div><dt>${text("channels.waiting")}</dt><dd>${count(capacity.waiting)}</dd></div>
      <div><dt>${text("channels.refused")}</dt><dd class=${lately(capacity) > 0 ? "some" : ""}>${count(lately(capacity))}</dd></div>
      <div><dt>${text("channels.today")}</dt><dd>${spentToday(today, code)}</dd></div>
    </dl>`}
    <footer class="channel-foot">${keyState(channel, capacity)}<a class="push" href=${link("upstreams", code)}>${icon("lanes")}${text("channels.upstream")}</a></footer>
  </article>`;
}

export function switchButton(channel, view, bare = true) {
  const { code, enabled } = channel;
  const label = enabled ? "channels.disable" : "channels.enable";
  return button({ label: bare ? text(`${label}.named`, { code }) : text(label), icon: enabled ? "pause" : "play", bare, unless: declared(channel), run: () => switchIt(channel, view) });
}

/** Why it cannot be changed here; null: it can. */
export function declared({ source, code }) {
  return source === "file" ? text("channels.declared", { code }) : null;
}

/** Refusals within the last hour. */
export function lately({ samples }) {
  return samples.filter(({ ts }) => serverNow() - Date.parse(ts) < HOUR_MS).length;
}

function spentToday(today, code) {
  if (!today) return "–";
  const spent = today.items.filter(({ channel }) => channel === code);
  return spent.length === 0 ? html`<span class="muted">–</span>` : spent.map(({ cost, currency }) => html`<span title=${`${cost} ${currency}`}>${money(Number(cost), currency)}</span> `);
}
