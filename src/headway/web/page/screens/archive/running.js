// What the archive does right now: downloads with their progress, lists that are read, counts.

import { each, html } from "../../../render.js";
import { language, text } from "../../../text.js";
import { call } from "../../api.js";
import { percent } from "../../format.js";
import { bar } from "../../parts.js";
import { link } from "../../route.js";
import { LANES, lookUpTitles, nameOf, titleOf, TYPES } from "./state.js";

const MOST = 10;
const UNITS = { h: "小时", min: "分", s: "秒" };

export async function runningJobs() {
  const found = await Promise.all(LANES.map((lane) => call("listJobs", { lane, status: "running", size: MOST })));
  const jobs = found.flatMap(({ items }) => items).filter(({ type }) => TYPES.has(type));
  await lookUpTitles(jobs.map(({ labels }) => labels.item));
  return jobs.toSorted((first, second) => first.id - second.id);
}

export function subscriptionOf({ key }) {
  return Number(/^subscription:(\d+)$/.exec(key ?? "")?.[1] ?? 0);
}

/** { share, speed, left } of what a download says of itself, such as "1.0 MB of 2.0 MB, 1.2 MB/s, 5 s left". */
export function progressOf({ progress }) {
  const note = progress?.note ?? "";
  return {
    share: progress?.percent === null || progress?.percent === undefined ? null : progress.percent / 100,
    size: /^[\d.]+ \w+ of ([\d.]+ \w+)/.exec(note)?.[1] ?? null,
    speed: /([\d.]+ \w+\/s)/.exec(note)?.[1] ?? null,
    left: inWords(/, ([^,]+) left/.exec(note)?.[1]),
    note,
  };
}

function inWords(time) {
  if (!time || language() !== "zh") return time ?? null;
  return time.replaceAll(/ ?\b(h|min|s)\b/g, (_, unit) => ` ${UNITS[unit]}`);
}

/** How many downloads wait. What is planned for later, such as checks of accounts, is not meant. */
export async function waitingJobs() {
  return (await call("listJobs", { type: "download", status: "waiting,paused", size: 1 })).total;
}

export function now(view) {
  const jobs = view.data.running ?? [];
  const waiting = view.data.waiting ?? 0;
  return html`<section class="card" aria-labelledby="archive-now">
    <div class="card-head"><h2 id="archive-now">${text("archive.now")}</h2>
      <span class="muted push archive-small">${waiting > 0 && text("archive.now.waiting", { n: waiting })}</span></div>
    <ul class="archive-now">${jobs.length === 0
      ? html`<li class="muted">${text("archive.now.nothing")}</li>`
      : each(jobs, ({ id }) => id, one)}</ul>
  </section>`;
}

function one(job) {
  const { share, size, speed, left, note } = progressOf(job);
  const subscription = subscriptionOf(job);
  const name = subscription ? nameOf(subscription) : null;
  const title = (job.labels.item && titleOf(job.labels.item)) || name || job.about.url;
  const details = job.type === "download" ? [size, speed, left && text("archive.now.left", { time: left })] : [note];
  return html`<li>
    <span class="archive-now-what">
      <a class="clip" href=${link("requests", job.id)} title=${job.about.url}>${title}</a>
      <span class="clip muted archive-small">${text(`archive.job.${job.type}`)}${name && name !== title && html` · <a href=${link("archive", "subscription", subscription)}>${name}</a>`}</span>
    </span>
    ${share === null ? html`<span></span>` : bar(share, text("archive.now.progress", { title }))}
    <span class="numbers archive-now-share">${share === null ? html`<hw-elapsed at=${job.started_at}></hw-elapsed>` : percent(share)}</span>
    <span class="numbers muted archive-small archive-now-note">${details.filter(Boolean).join(" · ")}</span>
  </li>`;
}
