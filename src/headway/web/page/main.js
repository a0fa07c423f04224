// The page begins here: who is looking, what is around the screens, the live connection, the frame.

import { html, render } from "../render.js";
import { addWords, chooseLanguage, followLanguage, language, offerLanguages, text } from "../text.js";
import { call } from "./api.js";
import { timeOfDay } from "./format.js";
import { startFrame, update, view } from "./frame.js";
import { icon } from "./icons.js";
import { connection, listen, startListening } from "./live.js";
import { button } from "./parts.js";
import { link } from "./route.js";
import { SCREENS } from "./screens.js";
import { boundToOne, loadSession, session } from "./session.js";
import { nextTheme, startTheme, theme } from "./theme.js";
import { report } from "./toasts.js";
import { PAGE_WORDS } from "./words.js";
import "./chart.js";
import "./elements.js";

const byId = (id) => document.getElementById(id);
const WHO_MS = 3_000;
const SEEN_MS = 1_000;
const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" };
let paused = false; // the whole queue
let pausedAsked = 0; // a timer
let listening = false;
let shownTitle = "";

addWords(PAGE_WORDS);
startTheme(drawShell);
offerLanguages({});
followLanguage(() => {
  drawShell();
  update();
});
window.headway = { screens: SCREENS.map(({ name }) => name) };
begin();

async function begin() {
  const looking = look();
  drawShell();
  listen(hear);
  document.addEventListener("visibilitychange", lookWhetherPaused);
  startFrame(byId("page-content"), shown, looking);
  // What nobody sees at first does not hold up what they see.
  setTimeout(listenFromNowOn, SEEN_MS);
  import("./keys.js").then(({ startKeys }) => startKeys(), report);
}

/** Begun when there is something to see, or when it takes too long. */
function listenFromNowOn() {
  if (!listening) startListening();
  listening = true;
}

async function openPalette() {
  const palette = await import("./palette.js");
  palette.openPalette();
}

/** Who is looking: without it nothing may be done here, so it is asked until it is known. */
async function look({ again = false } = {}) {
  try {
    await loadSession();
    if (again) view()?.refresh(); // what to ask depends on it
  } catch (error) {
    if (!again) report(error);
    setTimeout(look, WHO_MS, { again: true });
  }
  drawShell();
  update();
}

function hear({ state, events, reset }) {
  if (state) drawShell();
  if (state === "live" || reset || events?.some(({ job }) => job === null)) {
    // Many events in a row are one question.
    pausedAsked ||= setTimeout(lookWhetherPaused, 500);
  }
}

async function lookWhetherPaused() {
  pausedAsked = 0;
  if (document.hidden) return;
  try {
    const stats = await call("getQueueStats");
    if (stats.paused.all !== paused) {
      paused = stats.paused.all;
      drawShell();
    }
  } catch {
    // The screens say what cannot be reached.
  }
}

/** After each drawing: the title, the place in the navigation, and the focus after a change of place. */
function shown(opened) {
  const title = opened.screen?.title?.(opened.route, opened) ?? text(`nav.${opened.name}`);
  document.title = `${title} · Headway`;
  const key = [opened.name, ...opened.route.path].join("/");
  if (opened.complete) {
    document.documentElement.dataset.ready = opened.name;
    listenFromNowOn();
  } else delete document.documentElement.dataset.ready;
  if (key === shownTitle || !opened.screen) return;
  const first = shownTitle === "";
  shownTitle = key;
  drawShell();
  scrollTo(0, 0);
  // Who uses a screen reader hears where they are now.
  if (!first && !document.querySelector("dialog[open]")) document.querySelector("main h1")?.focus({ preventScroll: true });
}

function drawShell() {
  const { state, lastHeardAt } = connection();
  document.documentElement.dataset.connection = state;
  render(navigation(), byId("page-nav"));
  render(tools(state), byId("page-tools"));
  render(
    html`${state === "lost" && html`<div class="banner warn" role="status">${text("live.stale", { time: timeOfDay(lastHeardAt ?? Date.now(), true) })}</div>`}
      ${paused && html`<div class="banner warn" role="status">${icon("pause")} <span>${text("shell.paused")}</span>
        ${button({ label: text("shell.resume"), unless: boundToOne(), run: resumeAll })}</div>`}`,
    byId("page-banners"),
  );
}

async function resumeAll() {
  await call("resumeQueue", { scope: "all" });
  paused = false;
  drawShell();
  view()?.refresh();
}

function navigation() {
  const here = view()?.name;
  return html`<ul>${SCREENS.map(({ name, icon: drawing, key }) => html`<li>
    <a href=${link(name)} aria-current=${name === here ? "page" : null} aria-keyshortcuts="g ${key}" title=${text(`nav.${name}`)}>${icon(drawing)}<span>${text(`nav.${name}`)}</span></a>
  </li>`)}</ul>`;
}

function tools(state) {
  const { who, open } = session();
  return html`<p class="connection" data-state=${state} role="status">${text(`live.${state === "out" ? "connecting" : state}`)}</p>
    <button type="button" class="search-button" aria-keyshortcuts="Control+K" @click=${openPalette}>
      ${icon("search")}<span>${text("shell.palette")}</span><kbd>Ctrl K</kbd>
    </button>
    ${button({ label: `${text("shell.theme")}: ${text(`theme.${theme()}`)}`, icon: THEME_ICONS[theme()], bare: true, needs: null, run: nextTheme })}
    <button type="button" class="quiet small" lang=${language() === "en" ? "zh-CN" : "en"} @click=${() => chooseLanguage(language() === "en" ? "zh" : "en")}>${language() === "en" ? "中文" : "EN"}</button>
    ${!open && html`<form method="post" action="/logout"><button type="submit" class="quiet small" title=${who}>${text("shell.logout")}</button></form>`}`;
}
