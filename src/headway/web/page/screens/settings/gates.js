// Lanes with their caps, and everything that is declared with the layer that says it.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { changeCaps, resetCaps } from "../../caps.js";
import { count, duration } from "../../format.js";
import { bar, button, empty, problemNotice } from "../../parts.js";
import { link, sought } from "../../route.js";
import { say } from "../../toasts.js";

export function lanes(view) {
  if (!view.data.lanes && view.errors.lanes) return problemNotice(view.errors.lanes, view.refresh);
  const items = view.data.lanes?.items ?? [];
  if (items.length === 0) return empty({ icon: "lanes", title: text("settings.lanes.none"), about: text("settings.lanes.about") });
  return html`<p class="muted lead">${text("settings.lanes.about")}</p>
    <div class="table-frame"><table>
      <thead><tr><th scope="col">${text("settings.lane")}</th><th scope="col">${text("settings.inuse")}</th><th scope="col">${text("settings.pace")}</th><th scope="col" class="number">${text("state.queued")}</th>
        <th scope="col">${text("settings.from")}</th><th scope="col"><span class="visually-hidden">${text("settings.actions")}</span></th></tr></thead>
      <tbody>${each(items, ({ name }) => name, (lane) => laneRow(lane, view))}</tbody></table></div>`;
}

function laneRow(lane, view) {
  const { name, running, limit, limits, paused, settings, counts } = lane;
  const pace = limits.find((limited) => limited.interval_s);
  return html`<tr data-row>
    <th scope="row"><a href=${link("requests", { q: sought({ lane: name }) })}>${name}</a>${paused && html` <span class="badge paused">${text("state.paused")}</span>`}</th>
    <td><span class="use"><span class="numbers">${count(running)} / ${limit === null ? "∞" : count(limit)}</span>${limit === null ? null : bar(limit ? running / limit : 1, text("settings.use", { name }))}</span></td>
    <td>${pace ? text("settings.every", { time: duration(pace.interval_s) }) : html`<span class="muted">–</span>`}</td>
    <td class="number">${count(counts?.queued ?? 0)}</td>
    <td>${settings?.overridden ? html`<span class="badge warn">${text("settings.layer.operator")}</span>` : html`<span class="muted">${text("settings.asdeclared")}</span>`}</td>
    <td class="tight"><span class="row">
      ${button({ label: text("settings.change", { name }), icon: "sliders", bare: true, run: () => changeCaps("Lanes", lane, view) })}
      ${paused
        ? button({ label: text("settings.resume", { name }), icon: "play", bare: true, run: () => steer("resumeLanes", "pauseLanes", name, "resume", view) })
        : button({ label: text("settings.pause", { name }), icon: "pause", bare: true, run: () => steer("pauseLanes", "resumeLanes", name, "pause", view) })}
      ${button({ label: text("settings.reset", { name }), icon: "retry", bare: true, unless: settings?.overridden ? null : text("settings.notset"), run: () => resetCaps("Lanes", lane, view) })}
    </span></td>
  </tr>`;
}

async function steer(name, back, lane, verb, view) {
  await call(name, { name: lane });
  say(text(`settings.did.${verb}`, { name: lane }), { undo: async () => {
    await call(back, { name: lane });
    view.refresh();
  } });
  view.refresh();
}

export function declared(view) {
  if (!view.data.settings && view.errors.settings) return problemNotice(view.errors.settings, view.refresh);
  const items = view.data.settings?.items ?? [];
  return html`<p class="muted lead">${text("settings.declared.about")}</p>
    <div class="table-frame"><table>
      <thead><tr><th scope="col">${text("settings.kind")}</th><th scope="col">${text("settings.name")}</th><th scope="col">${text("settings.value")}</th></tr></thead>
      <tbody>${each(items.filter(({ value }) => Object.keys(value).length > 0), ({ kind, name }) => `${kind}:${name}`, ({ kind, name, value, from }) => html`<tr data-row>
        <td>${text(`settings.kind.${kind}`)}</td><th scope="row">${kind === "upstream" && !name.includes("*") ? html`<a href=${link("upstreams", name)}>${name}</a>` : name || "*"}</th>
        <td class="values">${Object.entries(value).filter(([, set]) => set !== null).map(([key, set]) => html`<span class="value-pair"><code>${key} = ${typeof set === "object" ? JSON.stringify(set) : String(set)}</code> <span class="muted">${text(`settings.layer.${from[key]}`)}</span></span>`)}</td></tr>`)}</tbody></table></div>`;
}
