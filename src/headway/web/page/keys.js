// The keyboard: `g` and a letter go to a screen, `/` filters, j and k move, `?` shows all of it.

import { html } from "../render.js";
import { text } from "../text.js";
import { openDialog } from "./dialogs.js";
import { view } from "./frame.js";
import { openPalette } from "./palette.js";
import { go, link } from "./route.js";
import { SCREENS } from "./screens.js";

const GO_MS = 1500;
let goingUntil = 0;

export function startKeys() {
  document.addEventListener("keydown", pressed);
}

function pressed(event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) openPalette(); // a question is answered first
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (typing) {
    if (event.key === "Escape") typing.blur();
    return;
  }
  if (handled(event)) event.preventDefault();
}

function handled(event) {
  const { key } = event;
  if (performance.now() < goingUntil) {
    goingUntil = 0;
    const screen = SCREENS.find((each) => each.key === key);
    if (screen) go(link(screen.name));
    return Boolean(screen);
  }
  const opened = view();
  const own = opened?.complete && opened.screen?.keys?.[key];
  if (own) return own(opened, event) !== false;
  if (key === "g") goingUntil = performance.now() + GO_MS;
  else if (key === "?") showKeys();
  else if (key === "/") return focusFilter();
  else if (key === "j" || key === "k") return move(key === "j" ? 1 : -1);
  else if (key === "R") opened?.refresh();
  else return false;
  return true;
}

function focusFilter() {
  const filter = document.querySelector("main [data-filter]");
  filter?.focus();
  filter?.select?.();
  return Boolean(filter);
}

/** Rows that can be moved along have `data-row`, and something in them that takes the focus. */
function move(by) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[Math.max(0, Math.min(rows.length - 1, at < 0 && by < 0 ? 0 : at + by))];
  const target = row?.matches("a, button, [tabindex]") ? row : row?.querySelector("a, button, [tabindex]");
  target?.focus();
  row?.scrollIntoView({ block: "nearest" });
  return rows.length > 0;
}

/** What the screen that is open does at a key. */
function ownCommands() {
  const opened = view();
  const commands = opened?.complete ? (opened.screen?.commands?.(opened) ?? []) : [];
  return commands.filter(({ keys }) => keys);
}

function showKeys() {
  const rows = [
    [["Ctrl K"], text("keys.palette")],
    [["/"], text("keys.filter")],
    [["j"], ["k"], text("keys.move")],
    [["Enter"], text("keys.open")],
    [["Esc"], text("keys.back")],
    [["R"], text("keys.refresh")],
    [["?"], text("keys.help")],
    ...ownCommands().map(({ keys, label }) => [[keys], label]),
    ...SCREENS.map(({ name, key }) => [["g", key], text("keys.go", { name: text(`nav.${name}`) })]),
  ];
  openDialog({
    title: text("shell.help"),
    content: () => html`<dl class="shortcuts">${rows.map((row) => html`<dt>${row.slice(0, -1).flat().map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${row.at(-1)}</dd>`)}</dl>`,
  });
}
