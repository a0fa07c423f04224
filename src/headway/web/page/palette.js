// The palette: type where to go or what to do.

import { each, html, render } from "../render.js";
import { chooseLanguage, language, text } from "../text.js";
import { view } from "./frame.js";
import { go, link } from "./route.js";
import { SCREENS } from "./screens.js";
import { chooseTheme } from "./theme.js";
import { report } from "./toasts.js";

const MOST = 12;
const SOUGHT_KEY = { ArrowDown: 1, ArrowUp: -1 };

export function openPalette() {
  if (document.querySelector("dialog.palette")) return;
  const dialog = document.createElement("dialog");
  dialog.className = "palette";
  dialog.setAttribute("aria-label", text("shell.search"));
  const state = { typed: "", chosen: 0 };
  const redraw = () => render(palette(state, found(state.typed), { type, press, run }), dialog);
  const type = (event) => {
    state.typed = event.target.value;
    state.chosen = 0;
    redraw();
  };
  const run = (command) => {
    dialog.close();
    Promise.resolve()
      .then(() => command.run())
      .catch(report);
  };
  const press = (event) => {
    const commands = found(state.typed);
    if (event.key === "Enter" && commands[state.chosen]) run(commands[state.chosen]);
    else if (SOUGHT_KEY[event.key]) {
      state.chosen = (state.chosen + SOUGHT_KEY[event.key] + commands.length) % Math.max(1, commands.length);
      redraw();
      dialog.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
    } else return;
    event.preventDefault();
  };
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  redraw();
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("input").focus();
}

function palette({ typed, chosen }, commands, { type, press, run }) {
  return html`<input type="search" role="combobox" aria-expanded="true" aria-controls="page-palette" autocomplete="off" spellcheck="false"
      aria-label=${text("shell.search")} placeholder=${text("shell.palette")} aria-activedescendant=${commands[chosen] ? `page-command-${chosen}` : null}
      .value=${typed} @input=${type} @keydown=${press} />
    <ul id="page-palette" role="listbox" aria-label=${text("shell.search")}>
      ${each(commands, ({ label }) => label, (command, index) => html`<li id="page-command-${index}" role="option" aria-selected=${String(index === chosen)} @click=${() => run(command)}>
        <span>${command.label}</span>${command.keys && html`<kbd>${command.keys}</kbd>`}
      </li>`)}
    </ul>
    ${commands.length === 0 && html`<p class="muted palette-none">${text("palette.nothing")}</p>`}`;
}

/** All words must be in the label, in any order; what begins with them comes first. */
function found(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ label, sought = "" }) => words.every((word) => `${label} ${sought}`.toLowerCase().includes(word));
  const begins = ({ label }) => (words[0] && label.toLowerCase().startsWith(words[0]) ? 0 : 1);
  const plain = all().filter(fits);
  plain.sort((one, other) => begins(one) - begins(other));
  return [...byNumber(typed), ...plain, ...bySearch(typed)].slice(0, MOST);
}

function all() {
  const opened = view();
  return [
    ...(opened?.complete ? (opened.screen?.commands?.(opened) ?? []) : []),
    ...SCREENS.map(({ name, key }) => ({ label: text("palette.go", { name: text(`nav.${name}`) }), sought: name, keys: `g ${key}`, run: () => go(link(name)) })),
    { label: text("palette.language"), sought: "language 语言", run: () => chooseLanguage(language() === "en" ? "zh" : "en") },
    ...["auto", "light", "dark"].map((name) => ({ label: text("palette.theme", { name: text(`theme.${name}`) }), sought: `theme ${name}`, run: () => chooseTheme(name) })),
    { label: text("palette.docs"), sought: "docs api openapi", run: () => location.assign("/docs") },
  ];
}

function byNumber(typed) {
  const [, id] = typed.trim().match(/^#?(\d{1,18})$/) ?? [];
  return id ? [{ label: text("palette.job", { id }), run: () => go(link("requests", id)) }] : [];
}

function bySearch(typed) {
  const q = typed.trim();
  return q && !/^#?\d+$/.test(q) ? [{ label: text("palette.find", { q }), run: () => go(link("requests", { q })) }] : [];
}
