// Upstreams: each one as a live lane, with its places as cells, who holds them, and what holds it back.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { empty, pager } from "../../parts.js";
import { adjust, go, link } from "../../route.js";
import { commandsFor } from "./actions.js";
import { forgetCharts, historyOf, miniChart } from "./charts.js";
import { detail } from "./detail.js";
import { lane } from "./lane.js";
import { UPSTREAM_WORDS } from "./words.js";

const SIZE = 20;

export const screen = {
  words: UPSTREAM_WORDS,
  paceMs: 900,
  restMs: 3_000,
  title: ({ path: [name] }) => name ?? text("nav.upstreams"),

  ask({ path: [name], params }) {
    if (name) {
      return {
        gate: () => call("getUpstreams", { name }),
        history: () => historyOf(name, params.span ?? "live"),
      };
    }
    const page = Number(params.page ?? 1);
    return { gates: () => call("listUpstreams", { whole: true, order: "activity", q: params.q, page, size: SIZE }) };
  },

  show(view) {
    return view.route.path.length > 0 ? detail(view) : list(view);
  },

  commands(view) {
    if (view.data.gate) return commandsFor(view.data.gate, view);
    return (view.data.gates?.items ?? []).map(({ name }) => ({
      label: text("upstreams.look", { name }), sought: name, run: () => go(link("upstreams", name)),
    }));
  },

  keys: {
    Escape: ({ route }) => (route.path.length > 0 ? go(link("upstreams")) : false),
    Backspace: ({ route }) => (route.path.length > 0 ? go(link("upstreams")) : false),
  },

  closed: forgetCharts,
};

function list(view) {
  const { gates } = view.data;
  const q = view.route.params.q ?? "";
  if (!gates) return null;
  if (gates.total === 0 && q === "") {
    return empty({
      icon: "lanes", title: text("upstreams.none"), about: text("upstreams.none.about"),
      code: 'app.upstream("api.example.com", limit=4, every="1s")',
    });
  }
  return html`<div class="row between">
      <input type="search" class="filter" data-filter aria-label=${text("upstreams.filter")} placeholder=${text("upstreams.filter")}
        autocomplete="off" spellcheck="false" .value=${q} @input=${(event) => adjust({ q: event.target.value, page: null })} />
      ${keyToCells()}
    </div>
    <div class="lanes">
      ${each(gates.items, ({ name }) => name, (gate) => lane(gate, view, miniChart(gate, view.update)))}
    </div>
    ${gates.total === 0 && html`<p class="muted" role="status">${text("upstreams.nomatch", { q })}</p>`}
    ${pager({ page: gates.page, size: gates.size ?? SIZE, total: gates.total })}`;
}

function keyToCells() {
  return html`<ul class="legend" aria-label=${text("upstreams.key")}>
    ${["online", "normal", "leftover", "cooling", "free"].map((kind) => html`<li><i class="cell-key ${kind}"></i>${text(`upstreams.cell.${kind}`)}</li>`)}
  </ul>`;
}
