// A value of a request as formatted JSON, with a button that copies it; large ones only when asked.

import { jsonNodes } from "../../../code.js";
import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { update } from "../../frame.js";
import { bytes } from "../../format.js";
import { button } from "../../parts.js";
import { say } from "../../toasts.js";

const LARGE_CHARS = 50_000;
const AROUND = /^\{"value":([\s\S]*?)(?:,"expires_at":(null|"[^"]*"))?\}$/;

const state = { whole: new Set() };
const made = new Map(); // the nodes of what is shown now, so that they are not made again each second

/** { source, expiresAt }: the JSON as the server has it, so that numbers keep their digits. */
export async function askForValue(name, values) {
  const said = await call(name, values, { as: "text" });
  const [, source, expires] = said.match(AROUND) ?? [];
  const answer = source === undefined ? JSON.parse(said) : null;
  return {
    source: source ?? JSON.stringify(answer.value),
    expiresAt: answer ? answer.expires_at : expires ? JSON.parse(expires) : null,
  };
}

export function forgetValues() {
  made.clear();
  state.whole.clear();
}

export function valueBlock(name, value, nothing) {
  if (!value || value.source === "null") return html`<p class="muted">${nothing}</p>`;
  const { source } = value;
  const cut = source.length > LARGE_CHARS && !state.whole.has(name);
  return html`<div class="value-block">
    <pre class="code" tabindex="0" aria-label=${name}><code>${nodesOf(name, cut ? source.slice(0, LARGE_CHARS) : source, cut)}</code></pre>
    <div class="row">${button({ label: text("copy.copy"), icon: "copy", needs: null, run: () => copy(source) })}
      ${cut && button({ label: text("requests.value.whole", { size: bytes(source.length) }), needs: null, run: () => showWhole(name) })}</div>
  </div>`;
}

function nodesOf(name, source, cut) {
  const known = made.get(name);
  if (known?.source === source) return known.nodes;
  const nodes = cut ? [`${source}…`] : jsonNodes(source);
  made.set(name, { source, nodes });
  return nodes;
}

function showWhole(name) {
  state.whole.add(name);
  update();
}

async function copy(source) {
  const pretty = indented(source);
  try {
    await navigator.clipboard.writeText(pretty);
  } catch {
    // Without HTTPS there is no clipboard to write to; a field can still be copied from.
    const field = Object.assign(document.createElement("textarea"), { value: pretty });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  say(text("copy.copied"));
}

/** As it is shown: the same digits, with lines and indents. */
function indented(source) {
  return jsonNodes(source).map((part) => (typeof part === "string" ? part : part.textContent)).join("");
}
