// What tenants may spend: how much of it is used, set, changed and removed.

import { each, html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm, confirm } from "../../dialogs.js";
import { money, percent } from "../../format.js";
import { badge, bar, button, countdown } from "../../parts.js";
import { seesAll } from "../../session.js";
import { say } from "../../toasts.js";

const PERIODS = ["day", "month", "total"];
const NEARLY = 0.8;
const NOBODY = "-"; // in an address: who has no tenant

export function budgetSection(budgets, view) {
  return html`<section><div class="row between"><h2>${text("channels.budgets")}</h2>
      ${seesAll() && button({ label: text("channels.budget.set"), icon: "plus", run: () => setBudget(null, view) })}</div>
    ${budgets.length === 0
      ? html`<p class="muted">${text("channels.budgets.none")}</p>`
      : html`<div class="table-frame"><table>
        <thead><tr><th scope="col">${text("channels.by.tenant")}</th><th scope="col">${text("channels.budget.used")}</th><th scope="col">${text("channels.budget.anew")}</th>
          ${seesAll() && html`<th scope="col"><span class="visually-hidden">${text("channels.actions")}</span></th>`}</tr></thead>
        <tbody>${each(budgets, ({ tenant, period, currency }) => `${tenant} ${period} ${currency}`, (budget) => budgetRow(budget, view))}</tbody></table></div>`}
  </section>`;
}

function budgetRow(budget, view) {
  const { tenant, period, currency, amount, spent, used_up: usedUp, begins_anew_at: anew } = budget;
  const share = Number(amount) > 0 ? Number(spent) / Number(amount) : 1;
  const name = tenant || text("upstreams.nobody");
  const label = text("channels.budget.share", { tenant: name, share: percent(share) });
  return html`<tr data-row><th scope="row">${name} <span class="muted budget-period">${text(`channels.period.${period}`)}</span></th>
    <td><span class="channel-budget"><span class="numbers" title=${`${spent} / ${amount} ${currency}`}>${money(Number(spent), currency)} / ${money(Number(amount), currency)}</span>
      ${bar(share, label, usedUp ? "bad" : share >= NEARLY ? "warn" : "")}</span>${usedUp && badge("bad", text("channels.budget.up"))}</td>
    <td class="tight numbers">${anew ? countdown(anew) : html`<span class="muted">${text("channels.budget.never")}</span>`}</td>
    ${seesAll() && html`<td class="tight"><span class="row">${button({ label: text("channels.budget.change", { tenant: name }), icon: "edit", bare: true, run: () => setBudget(budget, view) })}
      ${button({ label: text("channels.budget.remove", { tenant: name }), icon: "trash", bare: true, run: () => removeBudget(budget, view) })}</span></td>`}</tr>`;
}

function put({ tenant, period, amount, currency }) {
  return call("setBudget", { tenant: tenant || NOBODY }, { body: { period, amount: String(amount), currency } });
}

function takeAway({ tenant, period, currency }) {
  return call("removeBudgets", { tenant: tenant || NOBODY, period, currency });
}

function done(view, message, undo) {
  say(message, { undo: async () => {
    await undo();
    view.refresh();
  } });
  view.refresh();
}

async function setBudget(before, view) {
  let budget = null;
  const set = await askForm({
    title: before ? text("channels.budget.change", { tenant: before.tenant || text("upstreams.nobody") }) : text("channels.budget.set"),
    about: text("channels.budget.about"),
    submit: text("channels.budget.do"),
    fields: [
      { name: "tenant", label: text("channels.by.tenant"), value: before?.tenant ?? "", hint: text("channels.budget.tenant"), unless: () => before !== null },
      { name: "period", label: text("channels.budget.period"), kind: "select", value: before?.period ?? "month", options: PERIODS.map((period) => [period, text(`channels.period.${period}`)]), unless: () => before !== null },
      { name: "amount", label: text("channels.budget.amount"), required: true, value: before?.amount ?? "", placeholder: "50.00" },
      { name: "currency", label: text("channels.form.currency"), required: true, value: before?.currency ?? "USD", suggest: ["USD", "EUR", "CNY", "JPY"], unless: () => before !== null },
    ],
    send: (values) => {
      budget = values;
      return put(values);
    },
  });
  if (!set) return;
  // It has taken the place of one of the same period and currency, if there was one.
  const replaced = before ?? (view.data.budgets?.items ?? []).find((other) => ["tenant", "period", "currency"].every((name) => other[name] === budget[name]));
  done(view, text("channels.did.budget", { tenant: budget.tenant || text("upstreams.nobody") }), () => (replaced ? put(replaced) : takeAway(budget)));
}

async function removeBudget(budget, view) {
  const tenant = budget.tenant || text("upstreams.nobody");
  const sure = await confirm({
    title: text("channels.budget.remove", { tenant }),
    about: text("channels.budget.remove.about", { tenant, amount: money(Number(budget.amount), budget.currency), period: text(`channels.period.${budget.period}`) }),
    action: text("channels.remove"),
  });
  if (!sure) return;
  await takeAway(budget);
  done(view, text("channels.did.nobudget", { tenant }), () => put(budget));
}
