// What if a gate had other settings: the server runs both on a virtual clock, side by side.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { formField } from "../../dialogs.js";
import { empty, problemNotice } from "../../parts.js";
import { boundToOne, refusedBecause } from "../../session.js";
import { fieldsOf, settingsOf } from "./form.js";
import { results } from "./results.js";
import { WHATIF_WORDS } from "./words.js";

const MOST = 100; // gates that are offered

// What was typed and answered stays while the page is open, so that one can look elsewhere meanwhile.
const state = { values: { gate: "", limit: "", way: "", pace: "", learn: "", load: "recent", since: "21600", model: "" }, answer: null, error: null, busy: false };

export const screen = {
  words: WHATIF_WORDS,
  restMs: 60_000,
  concerns: () => false,

  ask: () => ({
    upstreams: () => call("listUpstreams", { order: "activity", page: 1, size: MOST }),
    lanes: () => call("listLanes"),
  }),

  show(view) {
    const gates = gatesOf(view);
    if (gates.length === 0) {
      return empty({ icon: "fork", title: text("whatif.none"), about: text("whatif.none.about"), code: "headway simulate settings.toml --load office" });
    }
    const { values } = state;
    if (!gates.some(({ id }) => id === values.gate)) choose(gates[0]);
    const gate = gates.find(({ id }) => id === values.gate);
    const change = (name, value) => {
      if (name === "gate") choose(gates.find(({ id }) => id === value));
      else values[name] = value;
      view.update();
    };
    const refused = whyNot();
    const fields = fieldsOf(gates, gate, values).filter((field) => !field.unless?.(values));
    return html`<p class="muted lead">${text("whatif.about")}</p>
      <form class="card card-body asks" @submit=${(event) => run(event, gate, view)}>
        ${fields.map((field) => html`<div class="ask">${formField(field, values[field.name], change)}</div>`)}
        <div class="ask go"><button type="submit" aria-busy=${state.busy ? "true" : null} aria-disabled=${refused ? "true" : null} title=${refused}>${text(state.busy ? "whatif.running" : "whatif.run")}</button></div>
      </form>
      <div class="outcome" aria-live="polite" aria-busy=${state.busy ? "true" : null}>
        ${state.error && problemNotice(state.error)}
        ${state.answer ? results(state.answer) : !state.error && html`<p class="muted">${text(state.busy ? "whatif.wait" : "whatif.begin")}</p>`}
      </div>`;
  },
};

/** All that can be changed, with what is set there; one that the address names, in any case. */
function gatesOf(view) {
  const { upstreams, lanes } = view.data;
  const found = [["upstream", upstreams], ["lane", lanes]].flatMap(([kind, list]) =>
    (list?.items ?? []).map(({ name, settings }) => ({ id: `${kind}:${name}`, kind, name, value: settings?.value ?? {} })));
  const wanted = view.route.params.gate;
  if (wanted && found.some(({ id }) => id === wanted) && state.asked !== wanted) {
    state.asked = wanted;
    choose(found.find(({ id }) => id === wanted));
  }
  return found;
}

/** Why whoever is looking cannot try it; null: they can. */
function whyNot() {
  return boundToOne() ?? refusedBecause("operate");
}

/** Another gate: what was typed for the last one makes no sense there. */
function choose({ id }) {
  Object.assign(state.values, { gate: id, limit: "", way: "", pace: "", learn: "" });
  state.answer = null;
  state.error = null;
}

async function run(event, gate, view) {
  event.preventDefault();
  if (state.busy || whyNot()) return;
  state.busy = true;
  state.error = null;
  view.update();
  const { values } = state;
  const body = { kind: gate.kind, name: gate.name, settings: settingsOf(values), load: values.load, duration_s: Number(values.since) };
  if (values.model) body.upstream = values.model;
  try {
    state.answer = await call("simulate", {}, { body });
  } catch (error) {
    state.answer = null;
    state.error = error;
  } finally {
    state.busy = false;
    view.update();
    requestAnimationFrame(() => requestAnimationFrame(showAnswer));
  }
}

/** On a phone the form fills the screen: what came out would not be seen. */
function showAnswer() {
  const place = document.querySelector(".outcome");
  if (place && place.getBoundingClientRect().top > innerHeight * 0.8) place.scrollIntoView({ block: "start" });
}
