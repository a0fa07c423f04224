// What the time is for the server: countdowns must not depend on how the browser's clock is set.

const WORTH_MS = 2_000; // below this the two are taken to be the same
let aheadMs = 0;

/** `date`: the header of an answer that has just come. It knows whole seconds only. */
export function hearServerTime(date) {
  const at = Date.parse(date ?? "");
  if (Number.isNaN(at)) return;
  const difference = at + 500 - Date.now();
  aheadMs = Math.abs(difference) < WORTH_MS ? 0 : difference;
}

export function serverNow() {
  return Date.now() + aheadMs;
}

// One tick a second for everything that shows a time, and none while nobody looks.

const ticking = new Set();
let timer = 0;

export function tick(listener) {
  ticking.add(listener);
  begin();
  return () => ticking.delete(listener);
}

function begin() {
  if (timer || document.hidden || ticking.size === 0) return;
  timer = setTimeout(() => {
    timer = 0;
    for (const listener of ticking) listener();
    begin();
  }, 1000 - (serverNow() % 1000));
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const listener of ticking) listener();
  begin();
});
