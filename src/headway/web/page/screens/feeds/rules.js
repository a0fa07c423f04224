// Rules: what becomes of articles as they come. They can be tried before anybody follows them.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { confirm, openDialog } from "../../dialogs.js";
import { icon } from "../../icons.js";
import { badge, button, empty, problemNotice } from "../../parts.js";
import { link } from "../../route.js";
import { say } from "../../toasts.js";
import { feedsOf, folderNames } from "./manage.js";
import { renew, state } from "./state.js";
import { byTitle } from "./tree.js";

const ACTIONS = ["read", "star", "drop"];
const FIELDS = ["any", "title", "author", "link", "category", "text"];
const TESTS = ["contains", "lacks", "is"];
const BADGES = { read: "blue", star: "warn", drop: "bad" };
const SHOWN = 10;

export function rulesPage(view) {
  const rules = view.data.rules?.items ?? [];
  return html`<section class="feeds-rules">
    <div class="row"><a class="feeds-button" href=${link("feeds")}>${icon("left")}<span>${text("feeds.back.reader")}</span></a>
      <span class="push">${button({ label: text("feeds.rule.add"), icon: "plus", kind: "", needs: "submit", run: () => editRule(view) })}</span></div>
    <p class="muted">${text("feeds.rules.about")}</p>
    ${view.errors.rules ? problemNotice(view.errors.rules, view.refresh) : rules.length === 0 ? none(view) : table(view, rules)}
  </section>`;
}

function none(view) {
  return empty({
    icon: "sliders",
    title: text("feeds.rules.none"),
    about: text("feeds.rules.none.about"),
    code: 'headway feeds rules add adverts --if "title contains sponsored" --do drop',
    action: button({ label: text("feeds.rule.add"), icon: "plus", kind: "", small: false, needs: "submit", run: () => editRule(view) }),
  });
}

function table(view, rules) {
  return html`<div class="table-frame"><table>
    <thead><tr><th class="number">#</th><th>${text("feeds.rule.name")}</th><th>${text("feeds.rule.if")}</th><th>${text("feeds.rule.where")}</th><th>${text("feeds.rule.do")}</th><th><span class="visually-hidden">${text("feeds.rule.actions")}</span></th></tr></thead>
    <tbody>${each(rules, ({ id }) => id, (rule) => html`<tr data-row class=${rule.enabled ? "" : "feeds-off"}>
      <td class="number tight">${rule.place}</td>
      <td><strong>${rule.name}</strong>${!rule.enabled && html` ${badge("paused", text("feeds.rule.off"))}`}</td>
      <td>${rule.conditions.length === 0 ? html`<span class="muted">${text("feeds.rule.always")}</span>` : rule.conditions.map((condition) => html`<div>${inWords(condition)}</div>`)}</td>
      <td>${placesOf(view, rule)}</td>
      <td class="tight">${rule.actions.map((action) => html`${badge(BADGES[action], text(`feeds.do.${action}`))} `)}</td>
      <td class="tight"><span class="row">
        ${button({ label: text("feeds.rule.up"), icon: "up", bare: true, needs: "submit", unless: rule.place > 1 ? null : text("feeds.rule.first"), run: () => changed(view, rule, { place: rule.place - 1 }, text("feeds.rule.moved")) })}
        ${button({ label: text("feeds.rule.apply"), needs: "submit", unless: state.applying ? text("feeds.rule.applying") : null, run: () => apply(view, rule) })}
        ${button({ label: text("feeds.rule.change"), icon: "edit", bare: true, needs: "submit", run: () => editRule(view, rule) })}
        ${button({ label: text(rule.enabled ? "feeds.rule.disable" : "feeds.rule.enable"), icon: rule.enabled ? "pause" : "play", bare: true, needs: "submit", run: () => changed(view, rule, { enabled: !rule.enabled }, text(rule.enabled ? "feeds.rule.disabled" : "feeds.rule.enabled", { name: rule.name })) })}
        ${button({ label: text("feeds.rule.remove"), icon: "trash", bare: true, needs: "submit", run: () => remove(view, rule) })}
      </span></td></tr>`)}</tbody></table></div>`;
}

function inWords({ field, test, text: sought }) {
  return html`<span class="muted">${text(`feeds.field.of.${field}`)} ${text(`feeds.test.${test}`)}</span> “${sought}”`;
}

function placesOf(view, { feeds, folders }) {
  const titles = new Map(feedsOf(view).map(({ id, title }) => [id, title]));
  const names = [...folders, ...feeds.map((id) => titles.get(id) ?? id)];
  return names.length > 0 ? names.join(text("feeds.comma")) : html`<span class="muted">${text("feeds.everything")}</span>`;
}

async function changed(view, rule, changes, said) {
  await call("changeRule", { id: rule.id }, { body: changes });
  const undo = async () => {
    const back = Object.fromEntries(Object.keys(changes).map((name) => [name, rule[name]]));
    await call("changeRule", { id: rule.id }, { body: back });
    renew(view);
  };
  say(said, { undo });
  renew(view);
}

async function remove(view, rule) {
  await call("removeRule", { id: rule.id });
  const { name, actions, conditions, feeds, folders, enabled, place } = rule;
  const undo = async () => {
    await call("addRule", {}, { body: { name, actions, conditions, feeds, folders, enabled, place } });
    renew(view);
  };
  say(text("feeds.rule.removed", { name }), { undo });
  renew(view);
}

async function apply(view, rule) {
  const { name, actions, conditions, feeds, folders } = rule;
  const { matched, looked_at } = await call("tryRule", {}, { body: { name, actions, conditions, feeds, folders } });
  const sure = await confirm({
    title: text("feeds.rule.apply.title", { name }),
    about: text("feeds.rule.apply.about", { n: matched, of: looked_at, what: actions.map((action) => text(`feeds.do.${action}`)).join(text("feeds.comma")) }),
    action: text("feeds.rule.apply"),
    danger: actions.includes("drop"),
  });
  if (!sure) return;
  state.applying = (await call("applyRule", { id: rule.id })).task_id;
  say(text("feeds.rule.begun", { name }));
  renew(view);
}

/** What became of the rule that is being applied. */
export async function askApplied() {
  const id = state.applying;
  const job = await call("getJob", { id });
  if (["completed", "failed", "cancelled"].includes(job.status) && state.applying === id) {
    state.applying = null;
    if (job.status !== "completed") return say(text("feeds.rule.notApplied", { why: job.last_error ?? job.status }), { kind: "bad" });
    const { value } = await call("getJobResult", { id });
    say(text("feeds.rule.applied", { n: value.changed, of: value.looked_at }));
  }
  return job;
}

// ------------------------------------------------------------------------------------- the form

/** A new rule, or another one that is changed. */
export function editRule(view, rule = null) {
  const draft = {
    view, rule, busy: false, error: null, trial: null,
    name: rule?.name ?? "", actions: new Set(rule?.actions ?? ["read"]),
    conditions: (rule?.conditions ?? [{ field: "title", test: "contains", text: "" }]).map((condition) => ({ ...condition })),
    place: placeOfRule(rule),
  };
  return openDialog({
    title: rule ? text("feeds.rule.change") : text("feeds.rule.add"),
    wide: true,
    content: (close, redraw) => {
      Object.assign(draft, { close, redraw });
      return form(draft);
    },
  });
}

/** One place can be chosen here; a rule that has more, from elsewhere, keeps them. */
function placeOfRule(rule) {
  const many = (rule?.feeds.length ?? 0) + (rule?.folders.length ?? 0);
  if (many === 0) return "";
  if (many > 1) return "kept";
  return rule.feeds.length > 0 ? `feed:${rule.feeds[0]}` : `folder:${rule.folders[0]}`;
}

function bodyOf({ rule, name, actions, conditions, place }) {
  const [kind, ...rest] = place.split(":");
  const at = rest.join(":");
  return {
    name: name.trim(),
    actions: ACTIONS.filter((action) => actions.has(action)),
    conditions: conditions.filter(({ text: sought }) => sought !== "").map(({ field, test, text: sought }) => ({ field, test, text: sought })),
    feeds: place === "kept" ? rule.feeds : kind === "feed" ? [at] : [],
    folders: place === "kept" ? rule.folders : kind === "folder" ? [at] : [],
  };
}

function form(draft) {
  const { view, rule } = draft;
  const change = (set) => (event) => {
    set(event.target);
    Object.assign(draft, { error: null, trial: null });
    draft.redraw();
  };
  const send = async (event) => {
    event.preventDefault();
    await guarded(draft, async () => {
      const body = bodyOf(draft);
      if (rule) await changed(view, rule, body, text("feeds.rule.saved", { name: body.name }));
      else {
        const made = await call("addRule", {}, { body });
        say(text("feeds.rule.saved", { name: body.name }), { undo: () => call("removeRule", { id: made.id }).then(() => renew(view)) });
      }
      renew(view);
      draft.close(true);
    });
  };
  return html`<form class="dialog-form" @submit=${send}><div class="dialog-body">
      <label class="field"><span>${text("feeds.rule.name")}</span><input type="text" name="name" required maxlength="200" autocomplete="off" .value=${draft.name} @input=${change(({ value }) => { draft.name = value; })} /></label>
      <fieldset class="feeds-conditions"><legend>${text("feeds.rule.if.all")}</legend>
        ${draft.conditions.map((condition, at) => conditionRow(draft, condition, at, change))}
        <div>${button({ label: text("feeds.rule.condition"), icon: "plus", needs: null, unless: draft.conditions.length < 20 ? null : text("feeds.rule.most"), run: () => { draft.conditions.push({ field: "any", test: "contains", text: "" }); draft.redraw(); } })}</div></fieldset>
      <label class="field"><span>${text("feeds.rule.where")}</span><select name="place" @change=${change(({ value }) => { draft.place = value; })}>${places(draft).map(([value, label]) => html`<option value=${value} selected=${value === draft.place}>${label}</option>`)}</select></label>
      <fieldset class="feeds-actions"><legend>${text("feeds.rule.do")}</legend>${ACTIONS.map((action) => html`<label class="check"><input type="checkbox" name=${action} .checked=${draft.actions.has(action)} @change=${change(({ checked }) => (checked ? draft.actions.add(action) : draft.actions.delete(action)))} /> <span>${text(`feeds.do.${action}.long`)}</span></label>`)}</fieldset>
      ${draft.trial && trial(draft.trial, view)}
      ${draft.error && html`<div class="notice bad" role="alert">${draft.error.message}</div>`}
    </div>
    <div class="dialog-foot">
      <button type="button" class="quiet" @click=${() => guarded(draft, async () => { draft.trial = await call("tryRule", {}, { body: { ...bodyOf(draft), name: draft.name.trim() || "…" } }); })}>${text("feeds.rule.try")}</button>
      <span class="push"></span>
      <button type="button" class="quiet" @click=${() => draft.close(null)}>${text("dialog.cancel")}</button>
      <button type="submit" aria-busy=${draft.busy ? "true" : null}>${text("feeds.save")}</button>
    </div></form>`;
}

async function guarded(draft, run) {
  if (draft.busy) return;
  Object.assign(draft, { busy: true, error: null, trial: null });
  draft.redraw();
  try {
    await run();
  } catch (error) {
    draft.error = error;
  }
  draft.busy = false;
  draft.redraw();
}

function conditionRow(draft, condition, at, change) {
  const choice = (name, values, key, label) => html`<select name="${name}-${at}" aria-label=${label} @change=${change(({ value }) => { condition[name] = value; })}>${values.map((value) => html`<option value=${value} selected=${value === condition[name]}>${text(`${key}.${value}`)}</option>`)}</select>`;
  return html`<div class="feeds-condition">
    ${choice("field", FIELDS, "feeds.field.of", text("feeds.rule.field"))}
    ${choice("test", TESTS, "feeds.test", text("feeds.rule.test"))}
    <input type="text" name="text-${at}" maxlength="200" aria-label=${text("feeds.rule.text")} autocomplete="off" .value=${condition.text} @input=${change(({ value }) => { condition.text = value; })} />
    ${button({ label: text("feeds.rule.less"), icon: "close", bare: true, needs: null, run: () => { draft.conditions.splice(at, 1); draft.redraw(); } })}</div>`;
}

function places({ view, rule, place }) {
  return [
    ["", text("feeds.everything")],
    ...(place === "kept" ? [["kept", text("feeds.rule.kept", { n: rule.feeds.length + rule.folders.length })]] : []),
    ...folderNames(view).map((name) => [`folder:${name}`, text("feeds.rule.folder", { name })]),
    ...byTitle(feedsOf(view)).map(({ id, title }) => [`feed:${id}`, title]),
  ];
}

function trial({ looked_at, matched, items }, view) {
  const titles = new Map(feedsOf(view).map(({ id, title }) => [id, title]));
  return html`<div class="preview" role="status"><p><strong>${text("feeds.rule.tried", { n: matched, of: looked_at })}</strong></p>
    <ul class="feeds-trial">${items.slice(0, SHOWN).map((item) => html`<li><span class="clip">${item.title ?? item.link ?? text("feeds.untitled")}</span> <span class="muted">${titles.get(item.feed_id) ?? ""}</span></li>`)}</ul>
    ${items.length > SHOWN && html`<p class="muted">${text("feeds.more", { n: items.length - SHOWN })}</p>`}</div>`;
}
