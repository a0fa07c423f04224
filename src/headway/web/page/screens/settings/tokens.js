// Tokens: made here, shown once, revoked.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm, confirm, openDialog } from "../../dialogs.js";
import { button, empty, problemNotice, when } from "../../parts.js";
import { say } from "../../toasts.js";

const SCOPES = ["read", "submit", "operate", "admin"];
const LASTS = [["", "never"], ["86400", "day"], ["604800", "week"], ["2592000", "month"], ["31536000", "year"]];

export function tokens(view) {
  if (view.errors.tokens) return problemNotice(view.errors.tokens, view.refresh);
  const items = view.data.tokens?.items ?? [];
  const add = button({ label: text("settings.token.new"), icon: "plus", kind: "", small: false, needs: "admin", run: () => createToken(view) });
  if (items.length === 0) return empty({ icon: "key", title: text("settings.tokens.none"), about: text("settings.tokens.about"), action: add });
  return html`<div class="row between"><p class="muted lead">${text("settings.tokens.about")}</p>${add}</div>
    <div class="table-frame"><table>
      <thead><tr><th scope="col">${text("settings.name")}</th><th scope="col">${text("settings.scopes")}</th><th scope="col">${text("settings.tenant")}</th><th scope="col">${text("settings.made")}</th>
        <th scope="col">${text("settings.used")}</th><th scope="col">${text("settings.ends")}</th><th scope="col"><span class="visually-hidden">${text("settings.actions")}</span></th></tr></thead>
      <tbody>${each(items, ({ id }) => id, (token) => tokenRow(token, view))}</tbody></table></div>`;
}

function tokenRow(token, view) {
  const { name, scopes, tenant, created_at: made, last_used_at: used, expires_at: ends, revoked_at: revoked } = token;
  return html`<tr data-row class=${revoked ? "gone" : ""}>
    <th scope="row">${name}</th>
    <td>${scopes.map((scope) => html`<span class="badge ${scope === "admin" ? "warn" : ""}">${scope}</span> `)}</td>
    <td>${tenant ?? html`<span class="muted">${text("settings.everybody")}</span>`}</td>
    <td>${when(made)}</td><td>${used ? when(used) : html`<span class="muted">${text("settings.unused")}</span>`}</td>
    <td>${revoked ? html`<span class="badge bad">${text("settings.revoked")}</span>` : ends ? when(ends) : html`<span class="muted">${text("settings.lasts.never")}</span>`}</td>
    <td class="tight"><span class="row">${button({ label: text("settings.revoke", { name }), icon: "trash", bare: true, needs: "admin", unless: revoked ? text("settings.revoked.already") : null, run: () => revoke(token, view) })}</span></td>
  </tr>`;
}

export async function createToken(view) {
  const made = await askForm({
    title: text("settings.token.new"),
    about: text("settings.token.about"),
    submit: text("settings.token.make"),
    fields: [
      { name: "name", label: text("settings.name"), required: true, placeholder: "ci" },
      ...SCOPES.map((scope) => ({ name: scope, label: `${scope}: ${text(`settings.scope.${scope}`)}`, kind: "checkbox", value: scope === "read" })),
      { name: "tenant", label: text("settings.tenant"), hint: text("settings.tenant.hint") },
      { name: "lasts", label: text("settings.lasts"), kind: "select", value: "", options: LASTS.map(([value, key]) => [value, text(`settings.lasts.${key}`)]) },
    ],
    send: ({ name, tenant, lasts, ...ticked }) => {
      const scopes = SCOPES.filter((scope) => ticked[scope]);
      if (scopes.length === 0) throw new Error(text("settings.token.noscope"));
      return call("createToken", {}, { body: { name, scopes, tenant: tenant || null, expires_in_s: lasts ? Number(lasts) : null } });
    },
  });
  if (!made) return;
  view.refresh();
  await openDialog({
    title: text("settings.token.made", { name: made.name }),
    content: (close) => html`<div class="dialog-body"><p>${text("settings.token.once")}</p><pre class="code" tabindex="0"><code data-token>${made.token}</code></pre></div>
      <div class="dialog-foot"><button type="button" class="quiet" @click=${() => copy(made.token)}>${text("copy.copy")}</button><button type="button" @click=${() => close(true)}>${text("settings.token.kept")}</button></div>`,
  });
}

async function copy(token) {
  await navigator.clipboard.writeText(token);
  say(text("copy.copied"));
}

async function revoke({ id, name }, view) {
  const sure = await confirm({ title: text("settings.revoke.title", { name }), about: text("settings.revoke.about"), action: text("settings.revoke.do") });
  if (!sure) return;
  await call("revokeToken", { id });
  say(text("settings.did.revoke", { name }));
  view.refresh();
}
