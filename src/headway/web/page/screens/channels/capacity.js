// What a channel bears in words and as shares, the state of its key, and why queued work waits.

import { html } from "../../../render.js";
import { isKnown, text } from "../../../text.js";
import { count, percent } from "../../format.js";
import { icon } from "../../icons.js";
import { badge, countdown } from "../../parts.js";

const KEY_REFUSED = /^(401|403)\b/;
const HELD = /^(?:held until (\S+)|no capacity now): (.*)$/s;
const REASON = /^([\w-]+)(?: \((.*)\))?$/s;

/** Of those who could use it: off, closed, bad (its key), or open. */
export function stateOf({ enabled, trouble }, capacity) {
  if (!enabled) return "off";
  if (trouble || isKeyRefused(capacity)) return "bad";
  return capacity?.closed_until ? "closed" : "open";
}

function isKeyRefused(capacity) {
  return Boolean(capacity?.closed_until) && KEY_REFUSED.test(capacity.closed_why);
}

export function stateBadge(channel, capacity) {
  const state = stateOf(channel, capacity);
  if (state === "off") return badge("off", text("channels.off"));
  if (state === "bad") return badge("bad", text("channels.badkey"));
  return state === "closed"
    ? html`<span class="badge closed">${text("state.closed")} ${countdown(capacity.closed_until)}</span>`
    : badge("open", text("channels.on"));
}

/** Whether there is a key, and whether it is any good; never the key. */
export function keyState({ has_key: has, key_ends_with: end, trouble }, capacity) {
  const [kind, words] = trouble ? ["bad", text("channels.key.unreadable")]
    : isKeyRefused(capacity) ? ["bad", text("channels.key.refused", { why: capacity.closed_why })]
    : has ? ["good", end ? text("channels.key.ends", { end }) : text("channels.key.there")]
    : ["none", text("channels.key.none")];
  return html`<span class="key-state ${kind}" title=${trouble}>${icon("key")}${words}</span>`;
}

// -------------------------------------------------------------------- shares

export function limitWords({ limit_rpm: limit, source }) {
  if (!limit) return html`<b>${text("channels.limit.unknown")}</b>`;
  return html`<b class="numbers">${text("upstreams.learned", { rpm: count(Math.round(limit)) })}</b> <span class="muted">${text(`upstreams.source.${source}`)}</span>`;
}

/** Online, queued and free, of what is believed to be borne. */
function partsOf({ limit_rpm: limit, online, queued }) {
  const top = limit || Math.max(1, online.rpm + queued.rpm);
  const onlineShare = Math.min(1, online.rpm / top);
  const queuedShare = Math.min(1 - onlineShare, queued.rpm / top);
  return { online: onlineShare, queued: queuedShare, free: limit ? Math.max(0, 1 - onlineShare - queuedShare) : null };
}

export function shares(capacity) {
  const { code, online, queued, threshold, limit_rpm: limit } = capacity;
  const parts = partsOf(capacity);
  const label = text("upstreams.shares", { name: code, online: percent(parts.online), queued: percent(parts.queued), free: percent(parts.free) });
  return html`<div class="channel-shares ${limit ? "" : "unknown"}" role="img" aria-label=${label}>
      <span class="channel-share online" --size=${String(parts.online)}></span><span class="channel-share queued" --size=${String(parts.queued)}></span>
      ${threshold > 0 && html`<span class="channel-mark" --at=${String(1 - threshold)}></span>`}
    </div>
    <p class="channel-split numbers">
      <span><b>${count(online.rpm)}</b> ${text("channels.share.online")}</span><span><b>${count(queued.rpm)}</b> ${text("channels.share.queued")}</span>
      <span><b>${parts.free === null ? "–" : percent(parts.free)}</b> ${text("channels.share.free")}</span>
      <span class="push muted">${text("channels.perminute")}</span>
    </p>`;
}

// -------------------------------------------------------------------- why queued work waits

export function idleLine(channel, capacity) {
  const { idle_because: why, waiting } = capacity;
  if (!why) return html`<p class="idle good">${icon("check")}<span>${text("channels.idle.none")}</span></p>`;
  return html`<p class="idle ${waiting > 0 ? "warn" : ""}">${icon(waiting > 0 ? "clock" : "info")}<span>${idleWords(channel, why)}</span></p>`;
}

function idleWords({ enabled, queue_mode: mode, model }, why) {
  if (!enabled) return text("channels.idle.off");
  if (mode === "none" || mode === "route") return text("channels.idle.mode", { mode: text(`channels.mode.${mode}`) });
  if (why.startsWith("nothing is queued")) return text("channels.idle.nothing", { model });
  const held = HELD.exec(why);
  if (!held) return why;
  const [, until, rest] = held;
  return until
    ? html`${text("channels.idle.held")} <span class="idle-until">${countdown(until)}</span> · ${reasonWords(rest)}`
    : html`${text("channels.idle.full")} · ${reasonWords(rest)}`;
}

/** `closed (429 pushback)`; the details are the provider's own words. */
function reasonWords(said) {
  const found = REASON.exec(said);
  const key = found && `channels.reason.${found[1]}`;
  if (!found || !isKnown(key)) return said;
  return found[2] ? `${text(key)} (${found[2]})` : text(key);
}
