// Requests: the list of them, and each by itself.

import { text } from "../../../text.js";
import { call } from "../../api.js";
import { tick } from "../../clock.js";
import { report } from "../../toasts.js";
import { go, link } from "../../route.js";
import { act, hasEnded, notBecause, verbText, verbsFor } from "./actions.js";
import { askForOne, requestDetail } from "./detail.js";
import { newRequest, prioritise, reschedule } from "./forms.js";
import { actOnAllThatMatch, askForList, clearSelection, placeIn, requestList, select } from "./list.js";
import { forgetValues } from "./value.js";
import { WAIT_WORDS } from "./wait-words.js";
import { REQUEST_WORDS } from "./words.js";

const RUNNING_MS = 2_000; // progress and logs are no events: what runs is looked at again
const RESTING_MS = 10_000;
const KEYS = { p: ["pause", "resume"], c: ["cancel"], r: ["retry"], t: ["pin", "unpin"] };

let back = link("requests"); // the list as it was left
let looked = null;
let stopTicking = null;

export const screen = {
  words: { ...REQUEST_WORDS, ...WAIT_WORDS },
  title: ({ path: [id] }) => (id ? text("requests.one", { id }) : text("nav.requests")),

  get restMs() {
    return somethingRuns() ? RUNNING_MS : RESTING_MS;
  },

  ask(route, view) {
    const [id] = route.path;
    if (id) return askForOne(id);
    const { q, page } = placeIn(route);
    back = link("requests", { q, page: page > 1 ? page : null });
    return { jobs: () => askForList(route, view.data), stats: () => call("getQueueStats") };
  },

  concerns({ job }, { route: { path } }) {
    return path.length === 0 || job === null || String(job) === path[0];
  },

  show(view) {
    looked = view;
    return view.route.path.length > 0 ? requestDetail(view, back) : requestList(view);
  },

  opened(view) {
    // The bar of time grows while somebody looks.
    stopTicking = tick(() => view.data.job && !hasEnded(view.data.job) && view.update());
  },

  closed() {
    stopTicking?.();
    forgetValues();
    looked = null;
  },

  commands(view) {
    const { job } = view.data;
    const common = [{ label: text("requests.new"), sought: "enqueue job", keys: "n", run: newRequest }];
    if (!job) {
      return [
        ...common,
        { label: text("requests.select.row"), keys: "x", run: selectFocused },
        { label: text("requests.act.all", { n: view.data.jobs?.total ?? 0 }), sought: "bulk", run: actOnAllThatMatch },
      ];
    }
    const verbs = verbsFor(job).filter((verb) => !notBecause(verb, job));
    return [
      ...verbs.map((verb) => ({ label: text("requests.do.one", { verb: verbText(verb), id: String(job.id) }), keys: keyOf(verb), run: () => act(verb, job) })),
      ...(hasEnded(job) ? [] : [{ label: text("requests.prioritise"), sought: "priority", run: () => prioritise(job) }]),
      ...(hasEnded(job) || job.status === "running" ? [] : [{ label: text("requests.reschedule"), sought: "time", run: () => reschedule(job) }]),
      ...common,
    ];
  },

  keys: {
    x: selectFocused,
    n: () => void newRequest().catch(report),
    Escape: ({ route }) => (route.path.length > 0 ? go(back) : clearSelection()),
    ...Object.fromEntries(Object.entries(KEYS).map(([key, verbs]) => [key, (view) => pressed(view, verbs)])),
  },
};

function keyOf(verb) {
  return Object.entries(KEYS).find(([, verbs]) => verbs.includes(verb))?.[0];
}

/** On the request that is shown, or on the row in focus. */
function pressed(view, verbs) {
  const job = view.data.job ?? view.data.jobs?.items.find(({ id }) => id === focusedId());
  if (!job) return false;
  const verb = verbsFor(job).find((each) => verbs.includes(each));
  act(verb, job).catch(report);
  return true;
}

function selectFocused() {
  const id = focusedId();
  return id === null ? false : select(id);
}

function focusedId() {
  const row = document.activeElement?.closest("[data-row]");
  return row ? Number(row.dataset.row) : null;
}

function somethingRuns() {
  const { job, jobs } = looked?.data ?? {};
  return job ? job.status === "running" : Boolean(jobs?.items.some(({ status }) => status === "running"));
}
