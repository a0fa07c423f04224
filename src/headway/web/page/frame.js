// What is between the address, the server and a screen: asks for what the screen shows, asks again
// when something happened that concerns it, and draws. A screen is a module
// `screens/NAME/screen.js`, with a `style.css` beside it and an
// export `screen`:
//
//   words             { key: [English, Chinese] }
//   title(route)      what it is called there
//   ask(route)        { name: () => promise }: what it shows, asked again while it is looked at
//   concerns(event)   whether an event changes what is shown; all do, unless it says otherwise
//   paceMs, restMs    how soon it is asked again after an event, and how long it may rest without one
//   show(view)        the template; `view` is { data, errors, route, loading, update, refresh }
//   commands(view)    [{ label, run, keys }] for the palette
//   keys              { "r": (view) => …, "Enter": … } while nobody types
//   opened(view), closed()
//   explains          true: it says itself what was refused, beside what can be had
//   keeps             true: what is known is shown until the next place of the same screen has answered
//
// `data.NAME` is the last answer, `errors.NAME` why there is none now. `update()` draws again with
// what is known; `refresh()` asks again at once.

import { addWords, text } from "../text.js";
import { html, render } from "../render.js";
import { Refusal } from "./api.js";
import { listen, connection } from "./live.js";
import { loading, notice, problemNotice } from "./parts.js";
import { link, route as routeNow } from "./route.js";
import { known } from "./screens.js";

const PACE_MS = 1_000;
const REST_MS = 10_000;
const SHARE = 4; // of the time at most one in so many is spent on asking

let current = null;
let place = null;
let told = () => {};
let ready = null;
let frameAsked = false;

/**
 * `element` is filled; `changed(view)` is called after each drawing. Nothing is asked for before
 * `knowing` is over: what to ask depends on who is looking.
 */
export function startFrame(element, changed, knowing) {
  place = element;
  told = changed;
  ready = knowing;
  addEventListener("hashchange", open);
  listen((news) => current?.hear(news));
  document.addEventListener("visibilitychange", () => document.hidden || current?.refresh());
  return open();
}

export function view() {
  return current;
}

/** Draw again what is known: something that is shown has changed here. */
export function update() {
  if (frameAsked) return;
  frameAsked = true;
  requestAnimationFrame(() => {
    frameAsked = false;
    draw();
  });
}

async function open() {
  const route = routeNow();
  if (current && !current.isAt(route)) closeDialogs();
  if (current && current.name === route.screen) return current.moveTo(route);
  current?.close();
  const mine = (current = new Opened(route));
  update();
  await mine.begin();
}

/** A question about what was left must not stand before what is shown now. */
function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

function draw() {
  if (!current) return;
  try {
    render(current.drawn(), place);
  } catch (error) {
    console.error(error);
    render(problemNotice({ status: 500, message: text("frame.failed") }, () => location.reload()), place);
  }
  told(current);
}

class Opened {
  constructor(route) {
    this.name = route.screen;
    this.route = route;
    this.screen = null;
    this.failure = null;
    this.update = update;
    // An action may end after its screen was left: then what is open now may show what it did.
    this.refresh = () => current?.screen && current.#askSoon(0);
    this.asking = false;
    this.missed = false; // something happened while it was asked
    this.timer = 0;
    this.round = 0;
    this.#forget();
  }

  #forget() {
    this.data = {};
    this.errors = {};
    this.complete = false; // everything was answered once
    this.refused = false; // nothing of it may be seen by who is looking
    this.loading = true; // for the address as it is now
  }

  async begin() {
    try {
      if (!known(this.name)) throw new Error("unknown");
      const [{ screen }] = await Promise.all([import(`./screens/${this.name}/screen.js`), this.#style(), ready]);
      addWords(screen.words ?? {});
      this.screen = screen;
    } catch (error) {
      this.failure = known(this.name) ? error : "unknown";
      update();
      return;
    }
    if (current !== this) return;
    try {
      this.screen.opened?.(this);
    } catch (error) {
      console.error(error); // what it shows may still be right
    }
    update();
    await this.#ask();
  }

  /** The style is there before the screen is. */
  #style() {
    const address = new URL(`screens/${this.name}/style.css`, import.meta.url).href;
    if ([...document.styleSheets].some(({ href }) => href === address)) return null;
    return new Promise((resolve) => {
      const sheet = document.createElement("link");
      sheet.rel = "stylesheet";
      sheet.href = address;
      sheet.addEventListener("load", resolve);
      sheet.addEventListener("error", resolve);
      document.head.append(sheet);
    });
  }

  isAt({ screen, path }) {
    return screen === this.name && link(screen, ...path) === link(screen, ...this.route.path);
  }

  moveTo(route) {
    const elsewhere = !this.isAt(route);
    this.route = route;
    if (elsewhere && !this.screen?.keeps) this.#forget();
    this.loading = true;
    update();
    if (this.screen) this.#ask();
  }

  close() {
    clearTimeout(this.timer);
    this.round += 1;
    this.screen?.closed?.();
  }

  hear({ events, reset, state, before }) {
    if (!this.screen || this.refused) return;
    // What was asked before the first connection stood may miss a moment; what was lost, more.
    if (state === "live") this.#askSoon(before === "lost" ? 0 : (this.screen.paceMs ?? PACE_MS));
    else if (reset) this.#askSoon(0);
    else if (state) update();
    else if (events?.some((event) => this.screen.concerns?.(event, this) ?? true)) {
      // One answer after the other, or a slow server would never be heard to the end.
      if (this.asking) this.missed = true;
      else this.#askSoon(this.screen.paceMs ?? PACE_MS);
    }
  }

  #askSoon(delayMs) {
    const dueAt = performance.now() + delayMs;
    if (this.timer && this.dueAt <= dueAt) return;
    clearTimeout(this.timer);
    this.dueAt = dueAt;
    this.timer = setTimeout(() => this.#ask(), delayMs);
  }

  async #ask() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (document.hidden && this.complete) return;
    const round = (this.round += 1);
    const startedAt = performance.now();
    this.asking = true;
    this.missed = false;
    const asked = this.#asked();
    await Promise.all(asked.map(([name, ask]) => this.#askOne(round, name, ask)));
    if (round !== this.round) return;
    this.asking = false;
    this.complete = true;
    this.loading = false;
    // What is not asked for any more is not missed.
    for (const name of Object.keys(this.errors)) if (!asked.some(([each]) => each === name)) delete this.errors[name];
    this.refused = asked.length > 0 && asked.every(([name]) => [401, 403].includes(this.errors[name]?.status));
    update();
    if (this.refused) {
      clearTimeout(this.timer); // it stays so, until somebody asks again
      this.timer = 0;
      return;
    }
    const tookMs = performance.now() - startedAt;
    const restMs = this.missed ? (this.screen.paceMs ?? PACE_MS) : (this.screen.restMs ?? REST_MS);
    this.#askSoon(Math.max(restMs, tookMs * SHARE));
  }

  #asked() {
    try {
      return Object.entries(this.screen.ask?.(this.route, this) ?? {});
    } catch (error) {
      return [["screen", () => Promise.reject(error)]]; // said where the answers would be
    }
  }

  async #askOne(round, name, ask) {
    try {
      const answer = await ask();
      if (round !== this.round) return;
      this.data[name] = answer;
      delete this.errors[name];
    } catch (error) {
      if (round !== this.round || error.name === "AbortError") return;
      this.errors[name] = error;
      if (!(error instanceof Refusal)) console.error(error);
      // What cannot be reached may come back; what is refused is not there (any more).
      if (!error.passes) delete this.data[name];
    }
  }

  drawn() {
    if (this.failure === "unknown") return problemNotice({ status: 404, message: text("frame.unknown") });
    if (this.failure) return problemNotice({ status: 0, message: text("frame.broken") }, () => location.reload());
    if (!this.screen) return loading();
    const { name, route, screen } = this;
    const first = Object.values(this.errors)[0];
    return html`<div class="screen ${name}" data-screen=${name} data-loading=${this.loading}>
      <h1 tabindex="-1">${screen.title?.(route, this) ?? text(`nav.${name}`)}</h1>
      ${this.complete && Object.keys(this.data).length === 0 && first && !(screen.explains && first instanceof Refusal)
        ? problemNotice(first, this.refresh)
        : this.complete ? html`${this.#stale()}${screen.show(this)}` : loading()}
    </div>`;
  }

  /** What is old must not look as if it were not; of a lost connection the banner tells. */
  #stale() {
    const [why] = Object.values(this.errors).filter(({ passes }) => passes);
    if (!why || !isLive()) return null;
    return notice("warn", html`<p>${text("frame.stale", { why: why.message })}</p>
      <button type="button" class="quiet small" @click=${this.refresh}>${text("frame.again")}</button>`);
  }
}

/** Whether what is shown is what is: while the connection is lost it may not be. */
function isLive() {
  return connection().state === "live";
}
