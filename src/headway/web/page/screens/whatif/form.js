// What is asked: a gate, what would be set there, what comes, and what the upstream bears.

import { text } from "../../../text.js";

const WAYS = ["", "every", "per_minute", "per_second"];
const LOADS = ["recent", "office", "steady", "random", "overload", "bursts", "backlog", "greedy", "priorities", "online"];
const MODELS = ["", "window", "bucket", "gcra", "headers", "cap", "strict", "per-tenant", "changes", "slow", "shaky", "open"];
const TIMES = ["3600", "21600", "86400"];

export function fieldsOf(gates, gate, values) {
  const declared = gate.value;
  const pace = WAYS.find((way) => way && declared[way] !== undefined && declared[way] !== null);
  return [
    { name: "gate", label: text("whatif.gate"), kind: "select", options: gates.map(({ id, kind, name }) => [id, `${text(`whatif.kind.${kind}`)} ${name}`]) },
    { name: "limit", label: text("whatif.limit"), kind: "number", min: 0, step: 1, placeholder: declared.limit === undefined || declared.limit === null ? text("whatif.unset") : text("whatif.now", { value: String(declared.limit) }) },
    { name: "way", label: text("whatif.pace"), kind: "select", options: WAYS.map((way) => [way, way ? text(`whatif.way.${way}`) : pace ? text("whatif.pace.now", { value: `${pace} ${declared[pace]}` }) : text("whatif.asis")]) },
    { name: "pace", label: text("whatif.often"), placeholder: values.way === "every" ? "1s" : "30", required: true, unless: ({ way }) => !way },
    { name: "learn", label: text("whatif.learn"), kind: "select", options: ["", "on", "off"].map((each) => [each, text(`whatif.learn.${each || "asis"}`)]), unless: () => gate.kind !== "upstream" },
    { name: "load", label: text("whatif.load"), kind: "select", options: LOADS.map((each) => [each, text(`whatif.load.${each}`)]) },
    { name: "since", label: text(values.load === "recent" ? "whatif.since" : "whatif.lasts"), kind: "select", options: TIMES.map((each) => [each, text(`whatif.time.${each}`)]) },
    { name: "model", label: text("whatif.model"), kind: "select", options: MODELS.map((each) => [each, each ? text(`whatif.model.${each}`) : text(values.load === "recent" ? "whatif.model.recorded" : "whatif.model.usual")]) },
  ];
}

/** Only what was typed: the rest stays as it is. */
export function settingsOf({ limit, way, pace, learn }) {
  const settings = {};
  if (limit !== "") settings.limit = Number(limit);
  if (way) settings[way] = way === "every" ? pace : Number(pace);
  if (learn) settings.learn = learn === "on";
  return settings;
}
