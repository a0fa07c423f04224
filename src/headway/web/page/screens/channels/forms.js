// What an operator does to a channel: add, change, switch on and off, another key, remove.

import { text } from "../../../text.js";
import { call } from "../../api.js";
import { askForm, confirm } from "../../dialogs.js";
import { go, link } from "../../route.js";
import { say } from "../../toasts.js";

const MODES = ["pull", "both", "route", "none"];
const AMOUNTS = ["rpm", "tpm", "max_concurrency", "max_concurrency_per_tenant"];
const SHARES = ["batch_discount", "remaining_threshold"]; // typed in per cent
const USUAL = { queue_mode: "pull", price: { input_per_1k: 0, output_per_1k: 0, currency: "USD" }, batch_discount: 0, remaining_threshold: 0, timeout_s: 600 };

function done(view, message, undo = null) {
  say(message, { undo: undo && (async () => {
    await undo();
    view.refresh();
  }) });
  view.refresh();
}

// -------------------------------------------------------------------- the form

function mainFields(channel) {
  return [
    { name: "model", label: text("channels.form.model"), required: true, value: channel.model, placeholder: "gpt-large", hint: text("channels.form.model.hint") },
    { name: "base_url", label: text("channels.form.url"), kind: "url", required: true, value: channel.base_url, placeholder: "https://api.example.com/v1" },
  ];
}

function priceFields({ price }) {
  return [
    { name: "input_per_1k", label: text("channels.form.input"), kind: "number", min: 0, step: "any", value: price.input_per_1k },
    { name: "output_per_1k", label: text("channels.form.output"), kind: "number", min: 0, step: "any", value: price.output_per_1k },
    { name: "currency", label: text("channels.form.currency"), value: price.currency, suggest: ["USD", "EUR", "CNY", "JPY"] },
  ];
}

function finerFields(channel, unless) {
  const whole = (name) => ({ name, label: text(`channels.form.${name}`), kind: "number", min: name.startsWith("max") ? 1 : 0, step: name.startsWith("max") ? 1 : "any", value: channel[name] ?? "", unless });
  const share = (name) => ({ name, label: text(`channels.form.${name}`), kind: "number", min: 0, max: 100, step: "any", value: perCent(channel[name]), hint: text(`channels.form.${name}.hint`), unless });
  return [
    { name: "upstream_model", label: text("channels.form.called"), value: channel.upstream_model ?? "", hint: text("channels.form.called.hint"), unless },
    { name: "queue_mode", label: text("channels.form.mode"), kind: "select", value: channel.queue_mode, options: MODES.map((mode) => [mode, text(`channels.mode.${mode}`)]), unless },
    whole("rpm"), { ...whole("tpm"), hint: text("channels.form.limits.hint") }, whole("max_concurrency"), whole("max_concurrency_per_tenant"),
    share("batch_discount"), share("remaining_threshold"),
    { name: "timeout_s", label: text("channels.form.timeout"), kind: "number", min: 1, step: "any", value: channel.timeout_s, unless },
  ];
}

function perCent(share) {
  return Math.round(share * 10_000) / 100;
}

/** What was typed, as the server takes it. */
function typed(values) {
  const number = (value) => (value === "" ? null : Number(value));
  const body = {
    model: values.model, base_url: values.base_url, upstream_model: values.upstream_model || null, queue_mode: values.queue_mode,
    price: { input_per_1k: Number(values.input_per_1k), output_per_1k: Number(values.output_per_1k), currency: values.currency },
    timeout_s: Number(values.timeout_s),
  };
  for (const name of AMOUNTS) body[name] = number(values[name]);
  for (const name of SHARES) body[name] = Number(values[name]) / 100;
  return body;
}

/** Only what is not as it was. */
function changed(body, before) {
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])));
}

function hostOf(address) {
  try {
    return new URL(address).origin;
  } catch {
    return null;
  }
}

const keyField = (more) => ({ name: "api_key", label: text("channels.form.key"), kind: "password", hint: text("channels.form.key.hint"), ...more });

// -------------------------------------------------------------------- what is done

export async function add(view) {
  const made = await askForm({
    title: text("channels.add"),
    about: text("channels.add.about"),
    submit: text("channels.add.do"),
    fields: [
      { name: "code", label: text("channels.form.code"), required: true, placeholder: "main", hint: text("channels.form.code.hint") },
      ...mainFields({ model: "", base_url: "" }),
      keyField(),
      ...priceFields(USUAL),
      { name: "more", label: text("channels.form.more"), kind: "checkbox" },
      ...finerFields(USUAL, ({ more }) => !more),
    ],
    send: ({ code, api_key: key, ...values }) => call("addChannel", {}, { body: { code, ...typed(values), ...(key ? { api_key: key } : {}) } }),
  });
  if (!made) return;
  done(view, text("channels.did.add", { code: made.code }));
  go(link("channels", "channel", made.code));
}

export async function change(channel, view) {
  const { code } = channel;
  let sent = {};
  const answer = await askForm({
    title: text("channels.change", { code }),
    about: text("channels.change.about"),
    submit: text("channels.change.do"),
    fields: [
      ...mainFields(channel),
      // A key does not follow to another host by itself.
      keyField({ required: true, hint: text("channels.form.key.moved"), unless: ({ base_url: url }) => !channel.has_key || !hostOf(url) || hostOf(url) === hostOf(channel.base_url) }),
      ...priceFields(channel),
      ...finerFields(channel),
    ],
    send: ({ api_key: key, ...values }) => {
      sent = changed(typed(values), channel);
      const moves = channel.has_key && hostOf(values.base_url) !== hostOf(channel.base_url);
      if (Object.keys(sent).length === 0) return true;
      return call("changeChannel", { code }, { body: moves && key ? { ...sent, api_key: key } : sent });
    },
  });
  if (!answer || Object.keys(sent).length === 0) return;
  const before = Object.fromEntries(Object.keys(sent).map((name) => [name, channel[name]]));
  const keyWent = "base_url" in sent && hostOf(sent.base_url) !== hostOf(channel.base_url) && channel.has_key;
  done(view, text("channels.did.change", { code }), keyWent ? null : () => call("changeChannel", { code }, { body: before }));
}

export async function switchIt({ code, enabled }, view) {
  const set = (on) => call("changeChannel", { code }, { body: { enabled: on } });
  await set(!enabled);
  done(view, text(enabled ? "channels.did.disable" : "channels.did.enable", { code }), () => set(enabled));
}

export async function replaceKey({ code, has_key: has }, view) {
  const answer = await askForm({
    title: text(has ? "channels.key.replace.title" : "channels.key.set.title", { code }),
    about: text("channels.key.replace.about"),
    submit: text(has ? "channels.key.replace" : "channels.key.set"),
    fields: [keyField({ required: true })],
    send: ({ api_key: key }) => call("changeChannel", { code }, { body: { api_key: key } }),
  });
  if (answer) done(view, text("channels.did.key", { code }));
}

export async function remove({ code, model }, waiting, view) {
  const sure = await confirm({
    title: text("channels.remove.title", { code }),
    about: text("channels.remove.about", { n: waiting, model }),
    action: text("channels.remove"),
  });
  if (!sure) return;
  await call("removeChannel", { code });
  go(link("channels"));
  done(view, text("channels.did.remove", { code }));
}
