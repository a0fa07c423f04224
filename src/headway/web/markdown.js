// A safe subset of Markdown as nodes: paragraphs, lists, fenced code, `code` and **bold**. Anything
// else stays the text that it is; there are no links and no markup to smuggle in.

import { node } from "./render.js";

const INLINE = /(`{1,2})([^`]+)\1|\*\*([^*]+)\*\*/g;
const LIST_ITEM = /^\s*(?:[-*]|\d+[.)])\s+/;

export function markdown(source) {
  return blocks(source.replaceAll("\r\n", "\n").split("\n")).map(block);
}

/** Text without blocks, for a cell or a line. */
export function inline(source) {
  const parts = [];
  let end = 0;
  for (const match of source.matchAll(INLINE)) {
    parts.push(source.slice(end, match.index));
    parts.push(match[2] ? node`<code>${match[2]}</code>` : node`<strong>${match[3]}</strong>`);
    end = match.index + match[0].length;
  }
  parts.push(source.slice(end));
  return parts.filter((part) => part !== "");
}

function blocks(lines) {
  const found = [];
  let last = null;
  for (const line of lines) {
    if (last?.kind === "code") {
      if (line.trim().startsWith("```")) last = null;
      else last.lines.push(line);
    } else if (line.trim().startsWith("```")) {
      found.push((last = { kind: "code", lines: [] }));
    } else if (line.trim() === "") {
      last = null;
    } else if (LIST_ITEM.test(line)) {
      const kind = /^\s*\d/.test(line) ? "numbered" : "bulleted";
      if (last?.kind !== kind) found.push((last = { kind, lines: [] }));
      last.lines.push(line.replace(LIST_ITEM, ""));
    } else if (last && last.kind !== "paragraph") {
      // A line under a list item goes on with it.
      last.lines[last.lines.length - 1] += ` ${line.trim()}`;
    } else {
      if (!last) found.push((last = { kind: "paragraph", lines: [] }));
      last.lines.push(line.trim());
    }
  }
  return found;
}

function block({ kind, lines }) {
  const items = () => lines.map((line) => node`<li>${inline(line)}</li>`);
  switch (kind) {
    case "code":
      return node`<pre class="code"><code>${lines.join("\n")}</code></pre>`;
    case "bulleted":
      return node`<ul>${items()}</ul>`;
    case "numbered":
      return node`<ol>${items()}</ol>`;
    default:
      return node`<p>${inline(lines.join(" "))}</p>`;
  }
}
