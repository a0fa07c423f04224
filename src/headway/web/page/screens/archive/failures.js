// The ledger of what has failed for good: by cause, with what to do about each, and deciding about
// one, about those that were chosen, or about all that match.

import { each, html } from "../../../render.js";
import { isKnown, text } from "../../../text.js";
import { call } from "../../api.js";
import { confirm } from "../../dialogs.js";
import { count } from "../../format.js";
import { badge, button, empty, pager, problemNotice, when } from "../../parts.js";
import { link } from "../../route.js";
import { say } from "../../toasts.js";
import { lookUpNames, nameOf, state } from "./state.js";

const SIZE = 30;

export async function askFailures({ class: kind, subscription }, page) {
  const found = await call("listFailures", { class: kind, subscription, page, size: SIZE });
  await lookUpNames([...found.items.map((item) => item.subscription), Number(subscription) || null]);
  return found;
}

export function failures(view) {
  const found = view.data.failures;
  if (!found) return problemNotice(view.errors.failures ?? { status: 0, message: "" }, view.refresh);
  const { class: kind = null, subscription = null } = view.route.params;
  const all = Object.values(found.classes).reduce((sum, number) => sum + number, 0);
  const narrowed = subscription && html`<p class="row">${text("archive.fail.of", { name: nameOf(Number(subscription)) ?? `#${subscription}` })}
    <a href=${link("archive", "failures", { class: kind })}>${text("archive.fail.everywhere")}</a></p>`;
  if (all === 0) {
    return html`${narrowed}${empty({ icon: "check", title: text("archive.fail.none"), about: text("archive.fail.none.about"), code: "headway archive failures" })}`;
  }
  // What was tried again meanwhile is not chosen any more.
  const here = found.items.filter(({ id }) => state.chosen.has(id));
  return html`${narrowed}
    ${classes(found.classes, all, kind, subscription)}
    <section aria-labelledby="archive-failed">
      <div class="row"><h2 id="archive-failed">${text("archive.fail.list")}</h2><span class="push"></span>${many(found, here, kind, subscription, view)}</div>
      ${table(found.items, here, view)}
    </section>${pager(found)}`;
}

function classText(kind) {
  return isKnown(`archive.class.${kind}`) ? text(`archive.class.${kind}`) : kind;
}

function adviceOn(kind) {
  return text(`archive.class.${isKnown(`archive.class.${kind}.do`) ? kind : "unknown"}.do`);
}

function classes(found, all, here, subscription) {
  const item = (kind, number) => html`<li><a class="archive-class" href=${link("archive", "failures", { class: kind, subscription })} aria-current=${kind === here ? "true" : null}>
    <span class="archive-class-count numbers">${count(number)}</span>
    <span><strong>${kind ? classText(kind) : text("archive.fail.all")}</strong>${kind && html`<span class="muted archive-small">${adviceOn(kind)}</span>`}</span></a></li>`;
  const ordered = Object.entries(found).toSorted((first, second) => second[1] - first[1]);
  return html`<nav aria-label=${text("archive.fail.classes")}><ul class="archive-classes">${item(null, all)}${ordered.map(([kind, number]) => item(kind, number))}</ul></nav>`;
}

/** Buttons for those that were chosen, or else for all that match. */
function many(found, here, kind, subscription, view) {
  const n = here.length || found.total;
  const body = here.length > 0
    ? { ids: here.map(({ id }) => id) }
    : { ...(kind ? { class: kind } : {}), ...(subscription ? { subscription: Number(subscription) } : {}) };
  return html`<span class="muted archive-small numbers" role="status">${here.length > 0 ? text("archive.fail.chosen", { n }) : text("archive.fail.matching", { n })}</span>
    ${here.length > 0 && button({ label: text("archive.fail.unchoose"), needs: null, run: () => choose(here, false, view) })}
    ${button({ label: text("archive.item.retry"), icon: "retry", needs: "submit", run: () => decide("retry", n, body, view) })}
    ${button({ label: text("archive.item.unblock"), icon: "unlock", needs: "submit", run: () => decide("unblock", n, body, view) })}`;
}

async function decide(verb, n, body, view) {
  const sure = await confirm({
    title: text(`archive.fail.${verb}.title`, { n }), about: text(`archive.fail.${verb}.about`), action: text(`archive.item.${verb}`), danger: false,
  });
  if (!sure) return;
  const { changed } = await call(verb === "retry" ? "retryFailures" : "unblockFailures", {}, { body });
  state.chosen.clear();
  say(text(`archive.fail.said.${verb}`, { n: changed }));
  view.refresh();
}

function choose(items, isChosen, view) {
  for (const { id } of items) state.chosen[isChosen ? "add" : "delete"](id);
  view.update();
}

function table(items, here, view) {
  const isAll = items.length > 0 && here.length === items.length;
  return html`<div class="table-frame"><table class="archive-failures">
    <thead><tr><th scope="col" class="tight"><input type="checkbox" aria-label=${text("archive.fail.choose.all")} .checked=${isAll} @change=${(event) => choose(items, event.target.checked, view)} /></th>
      <th scope="col">${text("archive.item")}</th><th scope="col">${text("archive.fail.cause")}</th><th scope="col">${text("archive.fail.from")}</th>
      <th scope="col" class="number">${text("archive.fail.tries")}</th><th scope="col">${text("archive.fail.when")}</th>
      <th scope="col"><span class="visually-hidden">${text("archive.item.actions")}</span></th></tr></thead>
    <tbody>${each(items, ({ id }) => id, (item) => row(item, view))}</tbody></table></div>`;
}

function row(item, view) {
  const { id, title, url, subscription, class: kind, message, failures: tries, changed_at: at } = item;
  const name = title ?? url;
  const act = (verb, drawing) => button({
    label: text(`archive.item.${verb}`), icon: drawing, bare: true, needs: "submit", run: () => one(verb, item, view),
  });
  return html`<tr data-row>
    <td class="tight"><input type="checkbox" aria-label=${text("archive.fail.choose", { title: name })} .checked=${state.chosen.has(id)} @change=${(event) => choose([item], event.target.checked, view)} /></td>
    <th scope="row" class="archive-item"><span class="archive-what"><a class="clip archive-name" href=${url} target="_blank" rel="noreferrer noopener" title=${name}>${name}</a>
      <span class="clip muted archive-small" title=${message}>${message}</span></span></th>
    <td class="tight">${badge("failed", classText(kind))}</td>
    <td class="archive-from"><span class="clip">${subscription ? html`<a href=${link("archive", "subscription", subscription)}>${nameOf(subscription) ?? `#${subscription}`}</a>` : html`<span class="muted">${text("archive.fail.itself")}</span>`}</span></td>
    <td class="number tight">${count(tries)}</td>
    <td class="tight numbers">${when(at)}</td>
    <td class="tight"><div class="row">${act("retry", "retry")}${act("unblock", "unlock")}${act("skip", "close")}</div></td>
  </tr>`;
}

async function one(verb, { id, title, url }, view) {
  await call(`${verb}Item`, { id });
  state.chosen.delete(id);
  say(text(`archive.item.said.${verb}`, { title: title ?? url }));
  view.refresh();
}
