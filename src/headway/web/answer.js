// Sends a request to this server and shows what comes back, while it comes.

import { jsonNodes } from "./code.js";
import { node, replaceContent } from "./render.js";
import { word } from "./text.js";

const MAX_SHOWN_CHARS = 300_000;
const TEXTUAL = /^text\/|json|xml|javascript|x-www-form-urlencoded|^$/;

/** Fills `place` with the answer; `signal` ends it, which is how an endless stream is left. */
export async function showAnswer(place, request, { bearer, signal }) {
  const startedAt = performance.now();
  const state = node`<span class="state" role="status">${word("try.waiting")}</span>`;
  replaceContent(place, state);
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: bearer
        ? { ...request.headers, Authorization: `Bearer ${bearer}` }
        : request.headers,
      body: request.body,
      // With a token of its own the request is what a program would send: without our cookie.
      credentials: bearer ? "omit" : "same-origin",
      cache: "no-store",
      signal,
    });
    const tookMs = Math.round(performance.now() - startedAt);
    const body = node`<pre class="code answer-body" tabindex="0"></pre>`;
    replaceContent(state, word("try.receiving"));
    replaceContent(place, statusLine(response, tookMs, state), headerList(response), body);
    await showBody(body, response);
    replaceContent(state);
  } catch {
    replaceContent(state, word(signal.aborted ? "try.stopped" : "try.unreachable"));
  }
}

function statusLine(response, tookMs, state) {
  return node`<p class="answer-status">
    <span class="status s${Math.floor(response.status / 100)}">${response.status}</span>
    <span>${response.statusText}</span> <span class="muted">${tookMs} ms</span> ${state}
  </p>`;
}

function headerList(response) {
  const headers = [...response.headers];
  return node`<details class="answer-headers">
    <summary>${word("try.headers")} <span class="muted">${headers.length}</span></summary>
    <dl>${headers.map(([name, value]) => node`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
  </details>`;
}

async function showBody(place, response) {
  const type = response.headers.get("content-type") ?? "";
  if (!TEXTUAL.test(type)) {
    await response.body?.cancel();
    return replaceContent(place, word("try.binary", "muted"));
  }
  const received = await readText(place, response);
  if (received === "") replaceContent(place, word("try.empty", "muted"));
  else if (type.includes("json") && isJson(received)) replaceContent(place, jsonNodes(received));
}

/** The text of the body, shown as it arrives. A body without end is cut at a limit. */
async function readText(place, response) {
  if (!response.body) return "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let received = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return received;
    received += value;
    place.append(value);
    if (received.length > MAX_SHOWN_CHARS) {
      await reader.cancel();
      place.append("\n", word("try.cut", "muted"));
      return received;
    }
  }
}

export function isJson(source) {
  try {
    JSON.parse(source);
    return true;
  } catch {
    return false;
  }
}
