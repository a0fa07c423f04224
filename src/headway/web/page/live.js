// What happens at the server, for whoever wants to hear it, through one shared connection.

import { Stream } from "./stream.js";

const listeners = new Set();
let state = "connecting";
let lastHeardAt = null;

/** "connecting", "live", "lost", "out" or "forbidden". */
export function connection() {
  return { state, lastHeardAt };
}

/** `listener({ state, before } | { events } | { reset })`; what is returned ends it. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function startListening() {
  const source = globalThis.SharedWorker ? shared() : own();
  source.join();
  // A page that is kept for "back" must not hold on to anything.
  addEventListener("pagehide", source.leave);
  addEventListener("pageshow", ({ persisted }) => persisted && source.join());
}

function shared() {
  const worker = new SharedWorker(new URL("live-worker.js", import.meta.url), { type: "module", name: "headway" });
  worker.port.addEventListener("message", ({ data }) => hear(data));
  worker.port.start();
  return { join: () => worker.port.postMessage("join"), leave: () => worker.port.postMessage("leave") };
}

function own() {
  const stream = new Stream(hear);
  return { join: () => stream.open(), leave: () => stream.close() };
}

function hear(news) {
  if (news.state) {
    if (state === "live" && news.state !== "live") lastHeardAt = Date.now();
    news = { ...news, before: state };
    state = news.state;
    if (state === "out") location.assign(`/login${location.hash}`);
  }
  for (const listener of listeners) listener(news);
}
