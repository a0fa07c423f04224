// Dialogs about requests: a new one, another priority, another time.

import { text } from "../../../text.js";
import { call } from "../../api.js";
import { serverNow } from "../../clock.js";
import { askForm } from "../../dialogs.js";
import { view } from "../../frame.js";
import { go, link } from "../../route.js";
import { seesAll } from "../../session.js";
import { say } from "../../toasts.js";

const MINUTE_MS = 60_000;

/** Asks for it, puts it in, and goes there. */
export async function newRequest() {
  const [types, lanes, upstreams] = await Promise.all(["listTypes", "listLanes", "listUpstreams"].map(namesOf));
  const job = await askForm({
    title: text("requests.new"),
    submit: text("requests.form.send"),
    fields: [
      { name: "type", label: text("requests.form.type"), hint: text("requests.form.type.hint"), required: true, suggest: types },
      { name: "args", label: text("requests.form.args"), kind: "textarea", value: "{}", rows: 5 },
      { name: "lane", label: text("requests.form.lane"), value: "default", required: true, suggest: lanes },
      { name: "upstream", label: text("requests.form.upstream"), hint: text("requests.form.upstream.hint"), suggest: upstreams },
      { name: "key", label: text("requests.form.key"), hint: text("requests.form.key.hint") },
      { name: "priority", label: text("requests.form.priority"), kind: "number", value: "5", step: 1 },
      { name: "delay", label: text("requests.form.delay"), kind: "number", min: 0, step: "any" },
      { name: "labels", label: text("requests.form.labels"), hint: text("requests.form.labels.hint") },
    ],
    send: (values) => call("enqueueJob", {}, { body: bodyOf(values), type: "application/json" }),
  });
  if (!job) return;
  say(text(job.joined ? "requests.form.joined" : "requests.form.done", { id: String(job.id) }));
  go(link("requests", job.id));
}

async function namesOf(operation) {
  if (!seesAll()) return [];
  try {
    return (await call(operation)).items.map(({ name }) => name);
  } catch {
    return []; // a courtesy: they can still be typed
  }
}

/** As text: the payload goes as it was written, whatever digits its numbers have. */
function bodyOf({ type, args, lane, upstream, key, priority, delay, labels }) {
  const upstreams = listed(upstream);
  const plain = {
    type: type.trim(), lane: lane.trim() || undefined, key: key || undefined,
    upstream: upstreams.length > 1 ? upstreams : upstreams[0],
    priority: priority === "" ? undefined : Number(priority),
    delay_s: delay === "" ? undefined : Number(delay),
    labels: labelsOf(labels),
  };
  return `${JSON.stringify(plain).slice(0, -1)},"args":${payloadOf(args)}}`;
}

function payloadOf(written) {
  if (written.trim() === "") return "{}";
  let value;
  try {
    value = JSON.parse(written);
  } catch (error) {
    throw new Error(text("requests.form.args.bad", { why: error.message }), { cause: error });
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(text("requests.form.args.object"));
  return written;
}

function labelsOf(written) {
  return Object.fromEntries(listed(written).map((what) => {
    const [, name, value] = what.match(/^([^=]+)=(.*)$/s) ?? [];
    if (!name) throw new Error(text("requests.form.labels.bad", { what }));
    return [name.trim(), value.trim()];
  }));
}

function listed(written) {
  return written.split(",").map((each) => each.trim()).filter(Boolean);
}

// ---------------------------------------------------------------------- one that is there

export async function prioritise({ id, priority }) {
  const after = await askForm({
    title: text("requests.prioritise.title", { id: String(id) }),
    submit: text("requests.save"),
    fields: [{ name: "priority", label: text("requests.fact.priority"), kind: "number", step: 1, required: true, value: String(priority), hint: text("requests.prioritise.hint") }],
    send: (values) => call("prioritiseJob", { id }, { body: { priority: Number(values.priority) } }),
  });
  if (!after) return;
  const undo = async () => {
    await call("prioritiseJob", { id }, { body: { priority } });
    view()?.refresh();
  };
  say(text("requests.prioritise.done", { id: String(id), n: String(after.priority) }), { undo });
  view()?.refresh();
}

export async function reschedule({ id, next_attempt_at: at }) {
  const after = await askForm({
    title: text("requests.reschedule.title", { id: String(id) }),
    submit: text("requests.save"),
    fields: [{ name: "at", label: text("requests.reschedule.at"), kind: "datetime-local", step: 1, required: true, value: here(at ? Date.parse(at) : serverNow() + 10 * MINUTE_MS), hint: text("requests.reschedule.hint") }],
    send: (values) => {
      const moment = new Date(values.at);
      if (Number.isNaN(moment.getTime())) throw new Error(text("requests.reschedule.bad"));
      return call("rescheduleJob", { id }, { body: { at: moment.toISOString() } });
    },
  });
  if (!after) return;
  say(text("requests.reschedule.done", { id: String(id) }));
  view()?.refresh();
}

/** As the field wants it: in the time of this device, without its zone. */
function here(at) {
  const local = new Date(at - new Date(at).getTimezoneOffset() * MINUTE_MS);
  return local.toISOString().slice(0, 19);
}
