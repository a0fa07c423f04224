// Code that is shown and copied: JSON with its colours, and the button that copies.

import { node } from "./render.js";
import { text, word } from "./text.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const MAX_COLOURED_CHARS = 60_000;
const SAID_FOR_MS = 1500;

/** The JSON text, indented and coloured. Numbers keep their digits: nothing is parsed and rewritten. */
export function jsonNodes(source) {
  const tokens = source.match(TOKEN) ?? [];
  if (source.length > MAX_COLOURED_CHARS) return [source];
  const parts = [];
  let depth = 0;
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    const opens = token === "{" || token === "[";
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    if (closes && !"{[".includes(tokens[index - 1])) parts.push(newLine(depth));
    parts.push(coloured(token, next));
    if (opens) depth += 1;
    if (token === ":") parts.push(" ");
    if (token === "," || (opens && next !== "}" && next !== "]")) parts.push(newLine(depth));
  });
  return parts;
}

function newLine(depth) {
  return `\n${"  ".repeat(depth)}`;
}

function coloured(token, next) {
  if ("{}[],:".includes(token)) return token;
  if (token.startsWith('"')) {
    return node`<span class="${next === ":" ? "json-key" : "json-text"}">${token}</span>`;
  }
  return node`<span class="json-value">${token}</span>`;
}

/** A button that copies the text of the element, as it is when it is pressed. */
export function copyButton(element) {
  const label = word("docs.copy");
  const copy = async () => {
    await copyText(element);
    label.textContent = text("docs.copied");
    setTimeout(() => (label.textContent = text("docs.copy")), SAID_FOR_MS);
  };
  return node`<button type="button" class="quiet small" aria-live="polite" @click=${copy}>${label}</button>`;
}

async function copyText(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    // Without HTTPS there is no clipboard to write to; what is selected can still be copied.
    getSelection().selectAllChildren(element);
    document.execCommand("copy");
  }
}
