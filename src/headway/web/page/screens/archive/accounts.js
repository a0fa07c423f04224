// Accounts: whose cookies are used, how well they are, and replacing them. Cookies are only sent,
// never shown.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm, confirm } from "../../dialogs.js";
import { icon } from "../../icons.js";
import { badge, button, countdown, empty, notice, problemNotice, when } from "../../parts.js";
import { link, sought } from "../../route.js";
import { say } from "../../toasts.js";

const KINDS = { healthy: "good", unchecked: "queued", cooling: "warn", disabled: "bad", expired: "bad" };

/** Only operators of the whole server see them. */
export async function askAccounts() {
  try {
    return await call("listAccounts");
  } catch (error) {
    if (error.status !== 403) throw error;
    return { forbidden: true, items: [] };
  }
}

export function accounts(view) {
  const found = view.data.accounts;
  if (!found) return problemNotice(view.errors.accounts ?? { status: 0, message: "" }, view.refresh);
  if (found.forbidden) return notice("warn", text("archive.acc.forbidden"));
  const add = button({ label: text("archive.acc.add"), icon: "plus", kind: "", small: false, run: () => openAddAccount(view) });
  if (found.items.length === 0) {
    return empty({
      icon: "key", title: text("archive.acc.none"), about: text("archive.acc.none.about"), action: add,
      code: "headway archive accounts add main --site bilibili.com --cookies cookies.txt",
    });
  }
  return html`<div class="row archive-sealed"><p class="muted">${icon("lock")} ${text("archive.acc.about")}</p><span class="push"></span>${add}</div>
    <ul class="cards archive-accounts">${each(found.items, ({ id }) => id, (one) => card(one, view))}</ul>`;
}

export function commandsForAccounts(view) {
  return view.data.accounts?.forbidden === undefined && view.data.accounts ? [{ label: text("archive.acc.add"), run: () => openAddAccount(view) }] : [];
}

function card(account, view) {
  const { name, site, status, reason, enabled, cooled_until: until, strikes } = account;
  const state = enabled ? status : "off";
  return html`<li class="card" data-row>
    <div class="card-head"><h2>${name}</h2><a class="muted archive-small" href=${link("upstreams", site)}>${site}</a>
      <span class="push">${badge(KINDS[state] ?? "", text(`archive.acc.status.${state}`))}</span></div>
    <div class="card-body archive-account">
      ${enabled && until && html`<p class="archive-warn">${text("archive.acc.rests")} <strong class="numbers">${countdown(until)}</strong></p>`}
      ${reason && html`<p class="archive-small ${enabled ? "archive-bad" : "muted"}">${reason}</p>`}
      <dl class="pairs numbers">
        <dt>${text("archive.acc.checked")}</dt><dd>${account.checked_at ? when(account.checked_at) : text("archive.never")}</dd>
        <dt>${text("archive.acc.next")}</dt><dd>${when(account.next_check_at)}</dd>
        <dt>${text("archive.acc.expires")}</dt><dd>${account.expires_at ? when(account.expires_at) : text("archive.acc.expires.never")}</dd>
        <dt>${text("archive.acc.strikes.label")}</dt><dd class=${strikes > 0 ? "archive-warn" : ""}>${text("archive.acc.strikes", { n: strikes })}</dd>
        <dt>${text("archive.acc.used")}</dt><dd>${used(account)}</dd>
      </dl>
      <div class="row">${actions(account, view)}</div>
    </div></li>`;
}

function used({ uses, failures, in_use: now, last_used_at: last, site }) {
  return html`${text("archive.acc.used.by", { n: uses })}${last && html` · ${text("archive.acc.used.last")} ${when(last)}`}${failures > 0 ? html` · ${text("archive.acc.refusals", { n: failures })}` : null}
    ${now > 0 ? html` · <a href=${link("requests", { q: sought({ status: "running", lane: "requires_cookie", upstream: site }) })}>${text("archive.acc.used.now", { n: now })}</a>` : null}`;
}

function actions(account, view) {
  const { enabled } = account;
  const act = (key, drawing, run, more = {}) => button({ label: text(`archive.acc.do.${key}`), icon: drawing, run: () => run(account, view), ...more });
  return html`${act("check", "check", check, { unless: enabled ? null : text("archive.acc.off.why") })}
    ${act("replace", "key", openReplace)}
    ${enabled ? act("off", "pause", (one, at) => enable(one, at, false)) : act("on", "play", (one, at) => enable(one, at, true))}
    ${act("remove", "trash", remove, { kind: "quiet danger" })}`;
}

const COOKIES = () => [
  { name: "cookies", label: text("archive.acc.cookies"), kind: "textarea", rows: 4, hint: text("archive.acc.cookies.hint") },
  { name: "file", label: text("archive.acc.file"), kind: "file", accept: ".txt,.json,text/plain,application/json" },
];

async function cookiesOf({ cookies, file }) {
  const said = cookies.trim() ? cookies : file ? await file.text() : "";
  if (!said) throw new Error(text("archive.acc.nothing"));
  return said;
}

async function openAddAccount(view) {
  await askForm({
    title: text("archive.acc.add.title"),
    about: text("archive.acc.about"),
    fields: [
      { name: "name", label: text("archive.acc.name"), required: true, hint: text("archive.acc.name.hint") },
      { name: "site", label: text("archive.acc.site"), required: true, placeholder: "bilibili.com", hint: text("archive.acc.site.hint") },
      ...COOKIES(),
      { name: "check_url", label: text("archive.acc.check"), kind: "url", hint: text("archive.acc.check.hint") },
    ],
    submit: text("archive.acc.add.do"),
    send: async (values) => {
      const { name, site, check_url: url } = values;
      const body = { name: name.trim(), site: site.trim(), cookies: await cookiesOf(values), ...(url ? { check_url: url } : {}) };
      await call("addAccount", {}, { body });
      say(text("archive.acc.said.added", { name: body.name }));
      view.refresh();
    },
  });
}

async function openReplace({ id, name }, view) {
  await askForm({
    title: text("archive.acc.replace.title", { name }),
    about: text("archive.acc.replace.about"),
    fields: COOKIES(),
    submit: text("archive.acc.replace.do"),
    send: async (values) => {
      await call("replaceAccountCookies", { id }, { body: { cookies: await cookiesOf(values) } });
      say(text("archive.acc.said.replaced", { name }));
      view.refresh();
    },
  });
}

async function check({ id, name }, view) {
  await call("checkAccount", { id });
  say(text("archive.acc.said.check", { name }));
  view.refresh();
}

async function enable({ id, name }, view, enabled) {
  const put = async (value) => {
    await call("changeAccount", { id }, { body: { enabled: value } });
    view.refresh();
  };
  await put(enabled);
  say(text(enabled ? "archive.acc.said.on" : "archive.acc.said.off", { name }), { undo: () => put(!enabled) });
}

async function remove({ id, name, site, in_use: n }, view) {
  const sure = await confirm({
    title: text("archive.acc.remove.title", { name }),
    about: text("archive.acc.remove.about", { n, site }),
    action: text("archive.acc.remove.do"),
  });
  if (!sure) return;
  await call("removeAccount", { id });
  say(text("archive.acc.said.removed", { name }));
  view.refresh();
}
