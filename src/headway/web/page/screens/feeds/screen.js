// The feed reader: folders and feeds, their articles, and one article to read.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { button, notice, problemNotice } from "../../parts.js";
import { go, link } from "../../route.js";
import { report, say } from "../../toasts.js";
import { aboutPane } from "./about.js";
import { addFeed } from "./add.js";
import { firstSteps, listPane, pass, step, toggleRead, toggleStar } from "./list.js";
import { markAllRead, nameOf, refreshHere, refreshUnless } from "./manage.js";
import { openArticle, readerPane } from "./reader.js";
import { importList, roundBanner } from "./rounds.js";
import { askApplied, editRule, rulesPage } from "./rules.js";
import { sidePane } from "./side.js";
import { askArticle, askArticles, askFeeds, here, known, openId, placeOf, state } from "./state.js";
import { RULES_WORDS } from "./rules-words.js";
import { FEEDS_WORDS } from "./words.js";

const REST_MS = 10_000;
const BUSY_MS = 1_000;
const SUBJECT = /^(feed|folder|round|rule|articles):/;

function ask(route) {
  if (state.timer === 0) state.typed = null;
  const opened = openId(route);
  keepPlace(opened);
  // What is counted is counted after the article was marked.
  const opening = opened === null ? null : askArticle(opened);
  const then = (asked) => async () => {
    await opening?.catch(() => {});
    return asked();
  };
  const always = {
    feeds: then(askFeeds),
    rounds: askRounds,
    ...(state.applying ? { applied: askApplied } : {}),
  };
  if (placeOf(route).kind === "rules") return { ...always, rules: () => call("listRules") };
  return {
    ...always,
    articles: then(() => askArticles(route)),
    health: () => call("getQueueHealth"),
    ...(opening ? { article: () => opening } : {}),
  };
}

/** Where one pane takes the place of the other, each begins at its top, and the list where it was left. */
function keepPlace(opened) {
  const before = state.shown;
  state.shown = opened;
  if (before === undefined || before === opened || !matchMedia("(max-width: 46rem)").matches) return;
  if (before === null) state.reached = scrollY;
  const to = opened === null ? (state.reached ?? 0) : 0;
  requestAnimationFrame(() => requestAnimationFrame(() => scrollTo(0, to)));
}

async function askRounds() {
  const answer = await call("listRounds", { limit: 3 });
  state.busy.round = answer.items.some(({ status }) => status === "running");
  return answer;
}

function concerns({ type, subject }) {
  return Boolean(type?.startsWith("feeds.") || SUBJECT.test(subject ?? ""));
}

function title(route, view) {
  const { kind } = placeOf(route);
  if (kind === "rules") return text("feeds.rules");
  return kind === "all" ? text("nav.feeds") : nameOf(view);
}

/** Where there is room for one pane only, this one. */
function paneOf(route) {
  if (openId(route) !== null) return "reader";
  return ["feeds", "about"].includes(route.params.pane) ? route.params.pane : "list";
}

function show(view) {
  const { route, data, errors } = view;
  if (errors.feeds && !data.feeds) return problemNotice(errors.feeds, view.refresh);
  if (placeOf(route).kind === "rules") return html`${roundBanner(view)}${rulesPage(view)}`;
  if (!data.feeds) return null;
  const trouble = data.health?.trouble ?? [];
  const first = data.feeds.feeds.length === 0;
  return html`<div class="row feeds-tools">
      ${!first && html`${button({ label: text("feeds.refreshAll"), icon: "retry", needs: "submit", keys: "r", unless: refreshUnless(view), run: () => refreshHere(view) })}
        ${button({ label: text("feeds.add"), icon: "plus", kind: "", needs: "submit", keys: "a", run: () => addFeed(view) })}`}
    </div>
    ${trouble.length > 0 && notice("bad", html`<p><strong>${text("feeds.health.degraded")}</strong></p><p>${trouble.join("; ")}</p><p><a href=${link("requests", { q: "type:feeds.refresh status:open" })}>${text("feeds.health.look")}</a></p>`)}
    ${roundBanner(view)}
    ${first ? firstSteps(view, importList) : html`<div class="feeds-panes" data-pane=${paneOf(route)}>
      ${sidePane(view)}${listPane(view)}${openId(route) === null ? aboutPane(view) : readerPane(view)}
    </div>`}`;
}

// ------------------------------------------------------------------------------------- the keyboard

/** Of the row that has the focus, or else of what is open. */
function reading(run) {
  return (view) => {
    const row = document.activeElement?.closest("[data-article]");
    const item = (row && known(Number(row.dataset.article))) ?? openArticle(view);
    if (item) run(view, item);
  };
}

function pressed(run, unless = () => null) {
  return (view) => {
    const why = unless(view);
    if (why) say(why, { kind: "warn" });
    else Promise.resolve(run(view)).catch(report);
  };
}

function isReader(view) {
  return placeOf(view.route).kind !== "rules" && (view.data.feeds?.feeds.length ?? 0) > 0;
}

const forReader = (run) => (view, event) => (isReader(view) ? run(view, event) : false);
const openOriginal = reading((_, { link: address }) => address && /^https?:/.test(address) && open(address, "_blank", "noopener,noreferrer"));
const keys = {
  j: forReader((view) => void step(view, 1)),
  n: forReader(() => pass(1)),
  k: forReader((view) => void step(view, -1)),
  p: forReader(() => pass(-1)),
  m: forReader(reading(toggleRead)),
  s: forReader(reading(toggleStar)),
  o: forReader(openOriginal),
  r: forReader(pressed(refreshHere, refreshUnless)),
  a: pressed(addFeed),
  A: forReader(pressed(markAllRead)),
  Escape: (view) => (openId(view.route) === null ? false : go(here(view.route))),
};

function commands(view) {
  const reader = isReader(view);
  return [
    { label: text("feeds.add"), keys: "a", run: () => addFeed(view) },
    ...(reader ? [{ label: text("feeds.refreshThis", { name: nameOf(view) }), keys: "r", run: () => keys.r(view) }, { label: text("feeds.markAll"), keys: "Shift A", run: () => keys.A(view) }] : []),
    { label: text("feeds.import.long"), run: () => importList(view) },
    { label: text("feeds.rules"), run: () => go(link("feeds", "rules")) },
    { label: text("feeds.rule.add"), run: () => editRule(view) },
  ];
}

export const screen = {
  words: { ...FEEDS_WORDS, ...RULES_WORDS },
  css: true,
  keeps: true,
  /** Refreshes are nobody's own, so a tenant hears nothing of them: while one is under way it looks. */
  get restMs() {
    return state.busy.feeds || state.busy.round ? BUSY_MS : REST_MS;
  },
  title, ask, concerns, show, keys, commands,
};
