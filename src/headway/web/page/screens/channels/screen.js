// Channels: language models behind keys, what they bear and who uses it; what that costs; batches.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { button, problemNotice } from "../../parts.js";
import { go, link } from "../../route.js";
import { seesAll } from "../../session.js";
import { askBatch, batchPage } from "./batch.js";
import { askBatches, batches } from "./batches.js";
import { askCosts, costs } from "./costs.js";
import { commandsForChannel, detail } from "./detail.js";
import { add } from "./forms.js";
import { askChannels, channels, daysAgo } from "./list.js";
import { showSecret } from "./secret.js";
import { openUpload } from "./upload.js";
import { MORE_CHANNEL_WORDS } from "./words-more.js";
import { CHANNEL_WORDS } from "./words.js";
import { historyOf } from "../upstreams/charts.js";
import { UPSTREAM_WORDS } from "../upstreams/words.js";

const TABS = { channels, batches, costs };
const SUBJECTS = /^(channel|upstream|budget|batch|file|tenant|lane|type):/;
// Online calls are no events, so capacity is asked for without one; rows of bills should not run away.
const PACES = { channels: { soonMs: 1_000, restMs: 3_000 }, batches: { soonMs: 1_000, restMs: 4_000 }, costs: { soonMs: 5_000, restMs: 10_000 } };
const WEEK = 7;

let pace = PACES.channels; // of the part that is looked at

export const screen = {
  words: { ...UPSTREAM_WORDS, ...CHANNEL_WORDS, ...MORE_CHANNEL_WORDS },

  get paceMs() {
    return pace.soonMs;
  },

  get restMs() {
    return pace.restMs;
  },

  title({ path: [part, name] }) {
    if (part === "channel" && name) return name;
    return part === "batches" && name ? text("channels.batch") : text("nav.channels");
  },

  ask(route) {
    const { path: [part = "channels", name], params } = route;
    pace = PACES[part] ?? PACES.channels;
    if (part === "batches") return name ? askBatch(name) : askBatches(params);
    if (part === "costs") return askCosts(params);
    if (!seesAll()) return {};
    return part === "channel" ? askChannel(name, params) : askChannels(params);
  },

  concerns({ type, subject }) {
    if (type) return type.startsWith("llm.");
    return subject ? SUBJECTS.test(subject) : true;
  },

  show(view) {
    const [part = "channels", name] = view.route.path;
    if (part === "channel") return detail(view);
    if (part === "batches" && name) return batchPage(view);
    if (!TABS[part]) return problemNotice({ status: 404, message: `#/channels/${part}` });
    return html`${tabs(part, view)}${TABS[part](view)}`;
  },

  commands(view) {
    const { channel } = view.data;
    return [
      ...(channel ? commandsForChannel(channel, view) : []),
      ...(seesAll() ? [{ label: text("channels.add"), run: () => add(view) }] : []),
      { label: text("channels.upload"), run: () => openUpload() },
      { label: text("channels.secret"), run: () => showSecret() },
      ...Object.keys(TABS).map((part) => ({ label: text("palette.go", { name: text(`channels.tab.${part}`) }), run: () => go(addressOf(part)) })),
      ...(view.data.channels?.all ?? []).map(({ code }) => ({ label: text("channels.look", { code }), sought: code, run: () => go(link("channels", "channel", code)) })),
    ];
  },

  keys: {
    Escape: ({ route }) => back(route),
    Backspace: ({ route }) => back(route),
  },
};

function askChannel(code, { span = "1h" }) {
  return {
    channel: () => call("getChannel", { code }),
    capacity: () => call("getChannelCapacity", { code }),
    learned: () => call("getLearned", { name: code }),
    history: () => historyOf(code, span),
    spent: () => call("getCosts", { group: "day", channel: code, from: daysAgo(WEEK - 1) }),
  };
}

function back({ path: [part, name] }) {
  if (!part) return false;
  return go(part === "batches" && name ? link("channels", "batches") : link("channels"));
}

function addressOf(part) {
  return part === "channels" ? link("channels") : link("channels", part);
}

/** Where nothing is yet, what is shown there has the button to begin with. */
function tabs(here, view) {
  const { data } = view;
  return html`<div class="row">
    <nav class="segments" aria-label=${text("channels.tabs")}>${Object.keys(TABS).map((part) => html`<a
      href=${addressOf(part)} aria-current=${part === here ? "page" : null}>${text(`channels.tab.${part}`)}</a>`)}</nav>
    <span class="push row">
      ${here !== "costs" && button({ label: text("channels.secret"), icon: "key", small: false, needs: "submit", run: () => showSecret() })}
      ${here === "channels" && seesAll() && (data.channels?.all.length ?? 0) > 0 && button({ label: text("channels.add"), icon: "plus", kind: "", small: false, run: () => add(view) })}
      ${here === "batches" && (data.batches?.data.length ?? 0) > 0 && button({ label: text("channels.upload"), icon: "upload", kind: "", small: false, needs: "submit", run: () => openUpload() })}
    </span>
  </div>`;
}
