// The servers that share the store, and which of them leads.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { duration } from "../../format.js";
import { problemNotice, when } from "../../parts.js";

const SILENT_S = 12; // a server says every five seconds that it is there

export function servers(view) {
  if (!view.data.servers) return problemNotice(view.errors.servers, view.refresh);
  const { items, term } = view.data.servers;
  return html`<p class="muted lead">${text(term === null ? "settings.servers.one" : "settings.servers.about")}${term === null ? null : html` ${text("settings.servers.term", { term })}`}</p>
    <div class="table-frame"><table>
      <thead><tr><th scope="col">${text("settings.address")}</th><th scope="col">${text("settings.role")}</th><th scope="col">${text("settings.machine")}</th><th scope="col">${text("settings.version")}</th>
        <th scope="col">${text("settings.started")}</th></tr></thead>
      <tbody>${each(items, ({ url }) => url, serverRow)}</tbody></table></div>`;
}

function serverRow({ url, role, host, pid, version, started_at: started, seen_s: seen }) {
  return html`<tr data-row>
    <th scope="row">${url}</th>
    <td><span class="badge ${role === "leads" ? "good" : ""}">${text(`settings.role.${role}`)}</span>${seen > SILENT_S ? html` <span class="badge warn">${text("settings.silent", { time: duration(seen) })}</span>` : null}</td>
    <td>${host} <span class="muted numbers">${text("settings.process", { pid: String(pid) })}</span></td><td>${version}</td><td>${when(started)}</td>
  </tr>`;
}
