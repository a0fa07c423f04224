// Where the page is: `#/requests/17?q=status:failed`. Everything that can be looked at has an address.

/** { screen, path: ["17"], params: { q } } of the address as it is now. */
export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [screen = "", ...rest] = path.split("/").map(decoded);
  return {
    screen: screen || "overview",
    path: rest.filter((part) => part !== ""),
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** `link("requests", 17)`, `link("requests", { q: "status:failed" })`. */
export function link(screen, ...parts) {
  const last = parts.at(-1);
  const params = last !== null && typeof last === "object" ? parts.pop() : {};
  const query = new URLSearchParams(
    Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== ""),
  ).toString();
  return `#/${[screen, ...parts].map((part) => encodeURIComponent(part)).join("/")}${query && `?${query}`}`;
}

/** `sought({ lane: "my lane", status: "open" })`: a search, with quotes where they are needed. */
export function sought(qualifiers) {
  const quoted = (value) => (/[\s"]|^$/.test(value) ? `"${value.replaceAll(/["\\]/g, "\\$&")}"` : value);
  return Object.entries(qualifiers).map(([name, value]) => `${name}:${quoted(String(value))}`).join(" ");
}

export function go(address) {
  if (location.hash !== address) location.hash = address;
}

/** The same place with other parameters; it takes the place of the last entry of the history. */
export function adjust(params) {
  const here = route();
  const address = link(here.screen, ...here.path, { ...here.params, ...params });
  if (address === location.hash) return;
  history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
