// What needs attention, in words. The server says it in English; other languages say it by its kind.

import { each, html } from "../../../render.js";
import { isKnown, language, text } from "../../../text.js";
import { icon } from "../../icons.js";
import { countdown, when } from "../../parts.js";
import { link, sought } from "../../route.js";

const ICONS = { bad: "warn", warn: "warn", info: "info" };
const SHOWN = 5;
const PLACES = {
  upstream: ({ name }) => (name ? link("upstreams", name) : link("upstreams")),
  lane: ({ name }) => link("requests", name ? { q: sought({ lane: name }) } : {}),
  type: ({ name }) => link("requests", name ? { q: sought({ type: name, status: "failed" }) } : {}),
  jobs: () => link("requests", { q: "status:failed" }),
  job: ({ name }) => link("requests", name),
  schedule: () => link("schedules"),
  slots: () => link("slots"),
  channel: ({ name }) => (name ? link("channels", "channel", name) : link("channels")),
  budget: () => link("channels", "costs"),
  tenant: () => link("channels", "costs"),
  feed: ({ name }) => (/^\d+$/.test(name) ? link("feeds", "feed", name) : link("feeds")),
  feeds: () => link("feeds"),
  account: () => link("archive", "accounts"),
  library: () => link("archive", "library"),
  archive: () => link("archive"),
};

export function attentionList({ items, more }) {
  if (items.length === 0) {
    return html`<p class="well" role="status">${icon("check")} ${text("attention.none")}</p>`;
  }
  const hidden = items.length - SHOWN + more;
  return html`<section aria-label=${text("attention.title")}>
    <ul class="attention">${each(items.slice(0, SHOWN), keyOf, line)}</ul>
    ${hidden > 0 && html`<details class="attention-more"><summary>${text("attention.more", { n: hidden })}</summary>
      <ul class="attention">${each(items.slice(SHOWN), keyOf, line)}</ul></details>`}
  </section>`;
}

function keyOf({ kind, subject }) {
  return `${kind} ${subject.kind} ${subject.name}`;
}

function line(item) {
  const place = PLACES[item.subject.kind]?.(item.subject);
  return html`<li class=${item.level}>${icon(ICONS[item.level] ?? "info")}
    <span class="attention-text">${place ? html`<a href=${place}>${sentence(item)}</a>` : sentence(item)}</span>
    <span class="attention-time muted">${item.until ? countdown(item.until) : item.since ? when(item.since) : null}</span>
  </li>`;
}

function sentence({ kind, values, subject, text: english }) {
  const key = `attention.${kind}`;
  if (language() === "en" || !isKnown(key)) return english;
  return text(key, { name: subject.name, ...values, names: (values.names ?? []).join("、") });
}
