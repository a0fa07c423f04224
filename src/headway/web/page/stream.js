// The live events of the server, read as they come; lost connections are made again where they ended.
// Runs in a worker that all pages share, or in a page where there are no such workers.

import { CALLS } from "./calls.js";

const SILENCE_MS = 40_000; // the server says something every 15 s
const TOGETHER_MS = 150; // events are handed on in parcels
const SOON_MS = 500;
const LATE_MS = 8_000;

/**
 * `tell({ state })` for "connecting", "live", "lost", "out" (not logged in) and "forbidden";
 * `tell({ events })` for what happened; `tell({ reset: true })` when some of it is not known any more.
 */
export class Stream {
  constructor(tell) {
    this.tell = tell;
    this.state = "connecting";
    this.last = "";
    this.parcel = [];
    this.closing = null;
  }

  open() {
    if (this.closing) return;
    this.closing = new AbortController();
    this.#follow(this.closing.signal);
  }

  close() {
    this.closing?.abort();
    this.closing = null;
    this.#say("connecting");
  }

  async #follow(closed) {
    let wait = SOON_MS;
    while (!closed.aborted) {
      try {
        await this.#read(closed, () => (wait = SOON_MS));
      } catch {
        // Whatever it was: it is tried again.
      }
      if (closed.aborted) return;
      if (this.state === "out" || this.state === "forbidden") {
        this.closing = null; // whoever comes later may have logged in
        return;
      }
      this.#say("lost");
      await new Promise((resolve) => setTimeout(resolve, wait * (0.75 + Math.random() / 2)));
      wait = Math.min(wait * 2, LATE_MS);
    }
  }

  async #read(closed, succeeded) {
    const silence = new AbortController();
    let alarm = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const response = await fetch(CALLS.followEvents.split(" ")[1], {
        headers: this.last ? { "Last-Event-ID": this.last } : {},
        cache: "no-store",
        signal: AbortSignal.any([closed, silence.signal]),
      });
      if (response.status === 401) return this.#say("out");
      if (response.status === 403) return this.#say("forbidden");
      if (!response.ok) return;
      succeeded();
      this.#say("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(alarm);
        alarm = setTimeout(() => silence.abort(), SILENCE_MS);
        const messages = (rest + value).split("\n\n");
        rest = messages.pop();
        for (const each of messages) this.#take(each);
      }
    } finally {
      clearTimeout(alarm);
    }
  }

  #take(message) {
    let name = "";
    let data = "";
    for (const line of message.split("\n")) {
      if (line.startsWith("id: ")) this.last = line.slice(4);
      else if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (name === "reset") return this.tell({ reset: true });
    if (data === "") return;
    this.parcel.push(JSON.parse(data));
    if (this.parcel.length === 1) setTimeout(() => this.#handOn(), TOGETHER_MS);
  }

  #handOn() {
    const events = this.parcel;
    this.parcel = [];
    this.tell({ events });
  }

  #say(state) {
    if (state === this.state) return;
    this.state = state;
    this.tell({ state });
  }
}
