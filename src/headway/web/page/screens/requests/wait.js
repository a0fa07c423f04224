// Why a request waits, as a sentence that ticks: "waits at bilibili.com: 412 cool-down, opens in
// 3:12, 4th in line". What has a code is said in the language of the page; what an operator or a
// site has said stays as it is.

import { html } from "../../../render.js";
import { isKnown, language, text } from "../../../text.js";
import { serverNow } from "../../clock.js";
import { Ticking } from "../../elements.js";
import { clockTime, count } from "../../format.js";
import { when } from "../../parts.js";
import { link } from "../../route.js";
import { seesAll } from "../../session.js";

const SENTENCE = /^waits at (.+?): (\w+)(?: \((.*)\))?$/s;
const AFTER = /^waits for jobs (.*)$/s;
const CLOSED_BY_ANSWER = /^(\d{3}|None) (ban|pushback)\b/;
const IN_USE = /^(\S+) in use(?: of |, )(\S+)/;
const WORTH_SAYING_MS = 2_000;
const MARK = "\u0001";
const SHORT_CHARS = 28;

/** The text with nodes in the places of values: `phrase("requests.wait.at", { it, why })`. */
export function phrase(key, nodes) {
  const marks = Object.fromEntries(Object.keys(nodes).map((name) => [name, MARK + name + MARK]));
  return text(key, marks).split(MARK).map((part, index) => (index % 2 ? nodes[part] : part));
}

/** "opens in 3:12", and "opens now" when that is over. */
class Until extends Ticking {
  words() {
    const left = (this.at - serverNow()) / 1000;
    const key = `requests.wait.${this.getAttribute("what")}`;
    return left > 0 ? text(key, { it: clockTime(Math.ceil(left)) }) : text(`${key}.now`);
  }
}

customElements.define("hw-until", Until);

function until(what, at) {
  return html`<hw-until what=${what} at=${at}></hw-until>`;
}

/** { gate, reason, detail } of the server's words. */
function readReason(words) {
  if (words === "not due yet") return { gate: "", reason: "not_due", detail: "" };
  const [, others] = words.match(AFTER) ?? [];
  if (others !== undefined) return { gate: "", reason: "after", detail: others };
  const [, gate, reason, detail = ""] = words.match(SENTENCE) ?? [];
  return reason ? { gate, reason, detail } : { gate: "", reason: words, detail: "" };
}

/** `job` as the list has it, or what explains it; `whole`: with everything that is known. */
export function waitSentence(job, { whole = false } = {}) {
  const { gate, reason, detail } = job.reason ? job : readReason(job.wait_reason ?? "");
  if (reason === "after") return html`<span class="wait">${text("requests.wait.after", { ids: detail.replace(/^jobs /, "") })}</span>`;
  const told = whole ? detail : cut(detail);
  const parts = gate
    ? [phrase("requests.wait.at", { it: gateName(gate), why: whyNode(reason, told) })]
    : [whyText(reason, told)];
  parts.push(...timeParts(job, reason, whole));
  return html`<span class="wait" title=${told === detail ? null : detail}>${joined(parts)}</span>`;
}

/** In a row the time until it opens is worth more than the end of a long explanation. */
function cut(detail) {
  return detail.length > SHORT_CHARS && !CLOSED_BY_ANSWER.test(detail) ? `${detail.slice(0, SHORT_CHARS - 4).trimEnd()}…` : detail;
}

function timeParts({ opens_at: opensAt, eta, position }, reason, whole) {
  const parts = [];
  if (opensAt) parts.push(until(reason === "not_due" ? "due" : "opens", opensAt));
  if (position) parts.push(text("requests.wait.place", { place: ordinal(position) }));
  const later = eta && Date.parse(eta) - Date.parse(opensAt ?? 0) > WORTH_SAYING_MS;
  if (later && (whole || !opensAt)) parts.push(until("starts", eta));
  return parts;
}

function joined(parts) {
  const comma = language() === "zh" ? "，" : ", ";
  return parts.map((part, index) => html`${index > 0 && comma}<span class=${index > 0 ? "piece" : ""}>${part}</span>`);
}

/** What is short stays in one piece. */
function whyNode(reason, detail) {
  const said = whyText(reason, detail);
  return html`<span class=${language() === "en" && said.length <= SHORT_CHARS ? "piece" : ""}>${said}</span>`;
}

/** Whether an upstream's own answer has closed it: the sentence has the answer, not the rest. */
export function isAnswer({ reason, detail }) {
  return reason === "closed" && CLOSED_BY_ANSWER.test(detail);
}

function whyText(reason, detail) {
  const [, status, kind] = (reason === "closed" && detail.match(CLOSED_BY_ANSWER)) || [];
  if (kind) return text(`requests.why.${kind}`, { status: status === "None" ? "" : status }).trim();
  if (detail === "closed by an operator") return text("requests.why.operator");
  if (detail === "no worker knows this type") return text("requests.why.unknown");
  const [, held, most] = (reason === "full" && detail.match(IN_USE)) || [];
  if (held) return text("requests.why.full", { held, most });
  const said = isKnown(`requests.why.${reason}`) ? text(reason === "full" ? "requests.why.full.plain" : `requests.why.${reason}`) : reason;
  return detail && detail !== "its workers are busy" && reason !== "reserve" ? `${said} (${detail})` : said;
}

/** What holds it back: upstreams have a screen of their own. */
function gateName(label) {
  const [, kind, name = ""] = label.match(/^(\w+):?(.*)$/s) ?? [];
  if (kind === "upstream") return upstreamLink(name);
  const said = isKnown(`requests.gate.${kind}`) ? text(`requests.gate.${kind}`, { name }) : label;
  return html`<b>${said}</b>`;
}

export function upstreamLink(name) {
  return seesAll() ? html`<a href=${link("upstreams", name)}>${name}</a>` : html`<b>${name}</b>`;
}

const ENDINGS = { one: "st", two: "nd", few: "rd", other: "th" };
const ORDINALS = new Intl.PluralRules("en", { type: "ordinal" });

function ordinal(place) {
  if (language() === "zh") return count(place);
  return `${count(place)}${ENDINGS[ORDINALS.select(place)]}`;
}

export function since(key, at) {
  return phrase(key, { it: when(at) });
}
