// Feeds in their folders: pure, so that it can be thought about.

const TROUBLE = new Set(["error", "gone", "moved"]);

export function isInTrouble(feed) {
  return TROUBLE.has(feed.status);
}

/** Folders in order, those inside of others after them, each with what is in it and below it. */
export function foldersOf(feeds) {
  const found = new Map();
  for (const feed of feeds) {
    const names = feed.folder === "" ? [] : feed.folder.split("/");
    names.forEach((name, depth) => {
      const path = names.slice(0, depth + 1).join("/");
      if (!found.has(path)) found.set(path, { path, name, depth, feeds: [], below: 0, unread: 0, trouble: 0 });
      const folder = found.get(path);
      folder.below += 1;
      folder.unread += feed.unread_count;
      folder.trouble += isInTrouble(feed) ? 1 : 0;
    });
    if (names.length > 0) found.get(feed.folder).feeds.push(feed);
  }
  const order = (one, other) => compare(one.path.split("/"), other.path.split("/"));
  return [...found.values()].toSorted(order);
}

export function byTitle(feeds) {
  return feeds.toSorted((one, other) => one.title.localeCompare(other.title));
}

export function isBelow(folder, path) {
  return folder === path || folder.startsWith(`${path}/`);
}

export function unreadOf(feeds) {
  return feeds.reduce((sum, { unread_count }) => sum + unread_count, 0);
}

function compare(one, other) {
  for (let at = 0; at < Math.min(one.length, other.length); at += 1) {
    const difference = one[at].localeCompare(other[at]);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}
