// Settings: lanes and what else is declared, tokens, how long ended jobs are kept, the servers.

import { text } from "../../../text.js";
import { html } from "../../../render.js";
import { call } from "../../api.js";
import { link } from "../../route.js";
import { may, seesAll } from "../../session.js";
import { declared, lanes } from "./gates.js";
import { retention } from "./retention.js";
import { servers } from "./servers.js";
import { createToken, tokens } from "./tokens.js";
import { SETTINGS_WORDS } from "./words.js";

const TABS = {
  lanes: { ask: () => ({ lanes: () => call("listLanes") }), show: lanes },
  tokens: { ask: () => ({ tokens: () => call("listTokens") }), show: tokens },
  retention: { ask: () => ({ retention: () => call("getRetention") }), show: retention },
  servers: { ask: () => ({ servers: () => call("listServers") }), show: servers },
  declared: { ask: () => ({ settings: () => call("listSettings") }), show: declared },
};

export const screen = {
  words: SETTINGS_WORDS,
  explains: true,
  ask: ({ path }) => tabOf(path).ask(),
  concerns: ({ job }, { route }) => job === null || job === undefined || (route.path[0] ?? "lanes") === "lanes",

  show(view) {
    const here = view.route.path[0] ?? "lanes";
    return html`<nav class="segments" aria-label=${text("settings.parts")}>${Object.keys(TABS).map((name) => html`<a href=${link("settings", name)} aria-current=${name === here ? "page" : null}>${text(`settings.${name}`)}</a>`)}</nav>
      ${tabOf(view.route.path).show(view)}`;
  },

  commands: (view) => (may("admin") && seesAll() ? [{ label: text("settings.token.new"), run: () => createToken(view) }] : []),
};

function tabOf([name]) {
  return Object.hasOwn(TABS, name) ? TABS[name] : TABS.lanes;
}
