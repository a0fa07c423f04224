// What needs attention, in words. The server says it in English; other languages say it by its kind.

import { each, html } from "../../render.js";
import { isKnown, language, text } from "../../text.js";
import { icon } from "../icons.js";
import { countdown, when } from "../parts.js";
import { link } from "../route.js";

const ICONS = { bad: "warn", warn: "warn", info: "info" };
const SHOWN = 6;
const PLACES = {
  upstream: ({ name }) => (name ? link("upstreams", name) : link("upstreams")),
  lane: ({ name }) => link("requests", name ? { q: `lane:${name}` } : {}),
  type: ({ name }) => link("requests", name ? { q: `type:${name} status:failed` } : {}),
  jobs: () => link("requests", { q: "status:failed" }),
  job: ({ name }) => link("requests", name),
  schedule: () => link("schedules"),
  slots: () => link("slots"),
  channel: () => link("channels"),
  budget: () => link("channels"),
  tenant: () => link("channels"),
  feed: ({ name }) => (/^\d+$/.test(name) ? link("feeds", "feed", name) : link("feeds")),
  feeds: () => link("feeds"),
  account: () => link("archive", "accounts"),
  library: () => link("archive", "library"),
  archive: () => link("archive"),
};

let opened = false; // all of them are shown

export function attentionList({ items, more }) {
  if (items.length === 0) {
    return html`<p class="well" role="status">${icon("check")} ${text("attention.none")}</p>`;
  }
  const shown = opened ? items : items.slice(0, SHOWN);
  const hidden = items.length - shown.length + (more ?? 0);
  return html`<section aria-label=${text("attention.title")}>
    <ul class="attention">${each(shown, (item) => `${item.kind} ${item.subject.kind} ${item.subject.name}`, line)}</ul>
    ${hidden > 0 && html`<details class="attention-more" @toggle=${(event) => (opened = event.target.open)}><summary>${text("attention.more", { n: hidden })}</summary>
      <ul class="attention">${each(items.slice(SHOWN), (item) => `${item.kind} ${item.subject.kind} ${item.subject.name}`, line)}</ul></details>`}
  </section>`;
}

function line(item) {
  const place = PLACES[item.subject.kind]?.(item.subject);
  return html`<li class=${item.level}>${icon(ICONS[item.level] ?? "info")}
    <span class="attention-text">${place ? html`<a href=${place}>${sentence(item)}</a>` : sentence(item)}</span>
    <span class="attention-time muted">${item.until ? countdown(item.until) : item.since ? when(item.since) : null}</span>
  </li>`;
}

function sentence({ kind, values, subject, text: english }) {
  const key = `attention.${kind}${values.names ? ".many" : ""}`;
  if (language() === "en" || !isKnown(key)) return english;
  const said = { name: subject.name, n: values.count, ...values, names: (values.names ?? []).join("、") };
  return text(key, said);
}
