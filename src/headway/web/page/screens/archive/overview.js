// The archive at a glance: its numbers, and what is in its way.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { bytes, count } from "../../format.js";
import { countdown, figure, notice } from "../../parts.js";
import { link } from "../../route.js";
import { LANES } from "./state.js";

const USABLE = ["healthy", "unchecked"];
const LOW = 2; // times what must stay free
const TOOLS = /^(library|yt-dlp|account:.*)$/;

export function figures({ archive, waiting }) {
  const { items, library, queue } = archive;
  const isLow = library.free_bytes !== null && library.free_bytes < LOW * library.min_free_bytes;
  const toRequests = (q) => link("requests", { q });
  return html`<div class="figures">
    ${figure({ label: text("archive.figure.done"), value: count(items.done), about: bytes(archive.bytes), kind: items.done ? "" : "none" })}
    ${figure({
      label: text("archive.figure.free"), value: bytes(library.free_bytes), href: link("archive", "library"),
      kind: library.status !== "ok" ? "bad" : isLow ? "warn" : library.free_bytes === null ? "none" : "",
      about: library.free_bytes === null ? text("archive.figure.unused") : text("archive.figure.free.least", { least: bytes(library.min_free_bytes) }),
    })}
    ${figure({ label: text("archive.figure.running"), value: count(queue.running), kind: queue.running ? "running" : "none", href: toRequests("status:running type:download") })}
    ${figure({ label: text("archive.figure.waiting"), value: count(waiting), kind: waiting ? "" : "none", href: toRequests("status:waiting type:download") })}
    ${figure({ label: text("archive.figure.failed"), value: count(items.failed), kind: items.failed ? "failed" : "none", href: link("archive", "failures"), about: items.failed ? text("archive.figure.decide") : null })}
    ${figure({ label: text("archive.figure.missing"), value: count(items.missing), kind: items.missing ? "warn" : "none", href: link("archive", "library"), about: items.missing ? text("archive.figure.again") : null })}
  </div>`;
}

export function warnings({ archive, attention, subscriptions }) {
  const sites = new Set((subscriptions?.items ?? []).map(({ site }) => site));
  return [...ofLibrary(archive), ...ofAccounts(archive), ...(attention?.items ?? []).map((each) => ofGate(each, sites))];
}

function* ofLibrary({ library, yt_dlp }) {
  const { status, free_bytes: free, min_free_bytes: least, reason } = library;
  if (status !== "ok") {
    yield notice("bad", html`<strong>${text(`archive.warn.library.${status}`)}</strong> <span class="muted">${reason}</span> ${look(link("archive", "library"))}`);
  } else if (free !== null && free < LOW * least) {
    yield notice("warn", html`${text("archive.warn.library.low", { free: bytes(free), least: bytes(least) })} ${look(link("archive", "library"))}`);
  }
  if (!yt_dlp.is_installed) yield notice("bad", text("archive.warn.ytdlp"));
}

function* ofAccounts({ accounts }) {
  for (const [site, statuses] of Object.entries(accounts ?? {})) {
    if (USABLE.some((status) => statuses[status] > 0)) continue;
    yield notice("bad", html`${text("archive.warn.accounts", { site })} ${look(link("archive", "accounts"))}`);
  }
}

function ofGate({ kind, subject, values, until, text: said }, sites) {
  const { kind: gate, name } = subject;
  if (gate === "upstream" && sites.has(name) && (kind === "upstream_closed" || kind === "upstream_holding")) {
    const holding = kind === "upstream_holding" ? "archive.warn.holding" : null;
    const words = text(holding ?? (values.status ? "archive.warn.closed.status" : "archive.warn.closed"), { site: name, status: String(values.status ?? "") });
    return notice("warn", html`<span title=${said}>${words}.</span> ${until ? html`${text("archive.warn.closed.until")} <span class="numbers">${countdown(until)}</span>.` : !holding && text("archive.warn.closed.hand")} ${look(link("upstreams", name))}`);
  }
  const ours = (gate === "lane" && LANES.includes(name)) || (gate === "tool" && TOOLS.test(name));
  if (!ours) return null;
  return notice("warn", kind === "paused" ? text("archive.warn.paused", { name }) : said);
}

function look(address) {
  return html`<a href=${address}>${text("archive.warn.look")}</a>`;
}
