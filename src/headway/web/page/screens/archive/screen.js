// The archive: video subscriptions, what became of their videos, accounts, and the library.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { button, empty, problemNotice } from "../../parts.js";
import { go, link } from "../../route.js";
import { accounts, askAccounts, commandsForAccounts } from "./accounts.js";
import { actionsOf } from "./actions.js";
import { openAdd } from "./add.js";
import { askFailures, failures } from "./failures.js";
import { subscriptionPage } from "./items.js";
import { askLibrary, library } from "./library.js";
import { runningJobs, waitingJobs } from "./running.js";
import { state, TYPES } from "./state.js";
import { subscriptions } from "./subscriptions.js";
import { MORE_ARCHIVE_WORDS } from "./words-more.js";
import { ARCHIVE_WORDS } from "./words.js";

const TABS = { subscriptions, failures, accounts, library };
const SUBJECTS = /^(subscription|item|account|upstream|tool|lane):|^(failures|archive)$/;
const BUSY_MS = 1_500; // progress is no event, so it is asked for while something runs
const QUIET_MS = 10_000;
const SIZE = 20;
const ITEMS = 30;

export const screen = {
  words: { ...ARCHIVE_WORDS, ...MORE_ARCHIVE_WORDS },

  get restMs() {
    return state.isActive ? BUSY_MS : QUIET_MS;
  },

  title: ({ path: [part] }, view) =>
    (part === "subscription" && view?.data.subscription?.name) || text("nav.archive"),

  ask(route) {
    let asked = null;
    const archive = () => (asked ??= theArchive());
    // Until it is known to be on, nothing else is asked: all of it would be refused.
    const once = (ask) => () => (state.isOn ? ask() : archive().then(({ off }) => (off ? null : ask())));
    return { archive, ...Object.fromEntries(Object.entries(asks(route)).map(([name, ask]) => [name, once(ask)])) };
  },

  concerns({ type, subject }) {
    if (type) return TYPES.has(type) || type.startsWith("media.");
    return subject ? SUBJECTS.test(subject) : true;
  },

  show(view) {
    const { data, errors, route } = view;
    if (!data.archive) return problemNotice(errors.archive ?? { status: 404, message: "" }, view.refresh);
    if (data.archive.off) {
      return empty({ icon: "film", title: text("archive.off"), about: text("archive.off.about"), code: 'pip install "headway[media]"' });
    }
    state.isActive = (data.running?.length ?? 0) > 0 || Boolean(data.library?.job);
    const [part = "subscriptions"] = route.path;
    if (part === "subscription") return subscriptionPage(view);
    if (!TABS[part]) return problemNotice({ status: 404, message: `#/archive/${part}` });
    return html`${tabs(part, view)}${TABS[part](view)}`;
  },

  commands(view) {
    if (!view.data.archive || view.data.archive.off) return [];
    const parts = Object.keys(TABS).map((part) => ({
      label: text("palette.go", { name: text(`archive.tab.${part}`) }), run: () => go(addressOf(part)),
    }));
    const { subscription } = view.data;
    return [
      { label: text("archive.add"), run: () => openAdd(view) },
      ...commandsForAccounts(view),
      ...parts,
      ...(subscription ? actionsOf(subscription, view).filter(({ unless }) => !unless) : []).map(({ label, run }) => ({
        label: text("archive.do.named", { what: label, name: subscription.name }), run,
      })),
    ];
  },

  keys: {
    Escape: ({ route }) => (route.path.length > 0 ? go(link("archive")) : false),
  },

  closed() {
    state.chosen.clear();
    state.isActive = false;
  },
};

async function theArchive() {
  try {
    const found = await call("getArchive");
    state.isOn = true;
    return found;
  } catch (error) {
    if (error.kind !== "no-archive") throw error;
    state.isOn = false;
    return { off: error.message };
  }
}

function asks({ path: [part, id], params }) {
  const page = Number(params.page) || 1;
  switch (part) {
    case undefined:
    case "subscriptions":
      return {
        subscriptions: () => call("listSubscriptions", { q: params.q, page, size: SIZE }),
        running: runningJobs,
        waiting: waitingJobs,
        attention: () => call("getAttention"),
      };
    case "subscription":
      if (state.removing === Number(id)) return {};
      return {
        subscription: () => call("getSubscription", { id }),
        items: () => call("listSubscriptionItems", { id, state: params.state, q: params.q, page, size: ITEMS }),
        running: runningJobs,
      };
    case "failures":
      return { failures: () => askFailures(params, page) };
    case "accounts":
      return { accounts: askAccounts };
    case "library":
      return { library: askLibrary };
  }
  return {};
}

function addressOf(part) {
  return part === "subscriptions" ? link("archive") : link("archive", part);
}

function tabs(here, view) {
  const failed = view.data.archive.items.failed;
  return html`<div class="row">
    <nav class="segments" aria-label=${text("archive.tabs")}>${Object.keys(TABS).map((part) => html`<a
      href=${addressOf(part)} aria-current=${part === here ? "page" : null}>${text(`archive.tab.${part}`)}${part === "failures" && failed > 0 ? html` <span class="archive-tally">${failed}</span>` : null}</a>`)}</nav>
    <span class="push"></span>
    ${here === "subscriptions" && button({ label: text("archive.add"), icon: "plus", kind: "", small: false, needs: "submit", run: () => openAdd(view) })}
  </div>`;
}

