// The text of an article, built from nodes that are allowed, one by one. The server has cleaned it
// already; what comes from a site becomes part of the page only here, and never as markup.
//
//   <hw-article .content=${html} .base=${link}></hw-article>

import { text } from "../../../text.js";

const KEPT = new Set([
  "A", "ABBR", "B", "BDI", "BDO", "BLOCKQUOTE", "BR", "CAPTION", "CITE", "CODE", "COL", "COLGROUP", "DD", "DEL", "DETAILS",
  "DFN", "DIV", "DL", "DT", "EM", "FIGCAPTION", "FIGURE", "HR", "I", "INS", "KBD", "LI", "MARK", "OL", "P", "PRE", "Q",
  "RP", "RT", "RUBY", "S", "SAMP", "SECTION", "SMALL", "SPAN", "STRONG", "SUB", "SUMMARY", "SUP", "TABLE", "TBODY", "TD",
  "TFOOT", "TH", "THEAD", "TIME", "TR", "U", "UL", "VAR", "WBR",
]);
// The title of the article is above them.
const CALLED = { H1: "h3", H2: "h3", H3: "h4", H4: "h5", H5: "h6", H6: "h6", STRIKE: "s", TT: "code", CENTER: "div" };
// Gone with all that is in them; of what is not known, the inside stays.
const GONE = new Set([
  "APPLET", "AUDIO", "BASE", "BUTTON", "CANVAS", "DIALOG", "EMBED", "FRAME", "FRAMESET", "HEAD", "IFRAME", "INPUT", "LINK",
  "MATH", "META", "NOEMBED", "NOFRAMES", "NOSCRIPT", "OBJECT", "PARAM", "SCRIPT", "SELECT", "SLOT", "STYLE", "SVG", "TEMPLATE",
  "TEXTAREA", "TITLE", "VIDEO", "XMP",
]);
const ATTRIBUTES = {
  TD: ["colspan", "rowspan"], TH: ["colspan", "rowspan", "scope"], OL: ["start"], TIME: ["datetime"], COL: ["span"], COLGROUP: ["span"],
};
const EVERYWHERE = ["title", "lang", "dir"];
const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const PICTURES = new Set(["http:", "https:"]);
const DEEPEST = 120;

// Their content is text up to the end tag, not markup.
const RAW = /^(?:iframe|noembed|noframes|noscript|plaintext|script|style|textarea|title|xmp)$/;
const TOKEN = /<!--[^]*?(?:-->|$)|<(\/?)([a-z][^\s/>]*)((?:[^>"']|"[^"]*(?:"|$)|'[^']*(?:'|$))*)(?:>|$)|<[!?/][^>]*(?:>|$)/gi;
const ATTRIBUTE = /([^\s/=>"']+)(?:\s*=\s*(?:"([^"]*)|'([^']*)|([^\s"'>]+)))?/g;
const READ = new Set(["alt", "href", "src", ...EVERYWHERE, ...Object.values(ATTRIBUTES).flat()]);

/**
 * The same HTML with only the attributes that `fill` reads. The browser reports a style, a handler or a base to the
 * policy of the page as soon as any document is parsed that has one, even a document in which nothing runs.
 */
function withoutEffects(markup) {
  let kept = "";
  let at = 0;
  let raw = null;
  for (const token of markup.matchAll(TOKEN)) {
    const [all, slash, called = "", attributes = ""] = token;
    const name = called.toLowerCase();
    if (raw) {
      if (!slash || name !== raw) continue;
      raw = null;
    } else {
      kept += asText(markup.slice(at, token.index));
      if (RAW.test(name)) raw = slash ? null : name;
      else if (/^[a-z][a-z0-9-]*$/.test(name)) {
        kept += slash ? `</${name}>` : `<${name}${GONE.has(name.toUpperCase()) ? "" : readAttributes(attributes)}>`;
      }
    }
    at = token.index + all.length;
  }
  return raw ? kept : kept + asText(markup.slice(at));
}

function readAttributes(written) {
  let kept = "";
  for (const [, name, ...values] of written.matchAll(ATTRIBUTE)) {
    const value = values.find((each) => each !== undefined) ?? "";
    if (READ.has(name.toLowerCase())) kept += ` ${name}="${value.replaceAll('"', "&quot;")}"`;
  }
  return kept;
}

function asText(words) {
  return words.replaceAll("<", "&lt;");
}

/** A fragment of what may be shown of this HTML; addresses are seen from `base`. */
function articleNodes(markup, base) {
  // A document of its own: nothing in it runs, and nothing in it is loaded.
  const parsed = new DOMParser().parseFromString(withoutEffects(markup ?? ""), "text/html");
  const made = document.createDocumentFragment();
  fill(made, parsed.body, { base, link: null, depth: 0 });
  return made;
}

function fill(place, source, inside) {
  for (const node of source.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) place.append(document.createTextNode(node.data));
    else if (node.nodeType === Node.ELEMENT_NODE) add(place, node, inside);
  }
}

function add(place, source, inside) {
  const name = source.tagName.toUpperCase();
  const within = { ...inside, depth: inside.depth + 1 };
  if (GONE.has(name) || source.namespaceURI !== "http://www.w3.org/1999/xhtml") return;
  if (inside.depth > DEEPEST) place.append(source.textContent);
  else if (name === "IMG") addPicture(place, source, inside);
  else if (name === "A") addLink(place, source, within);
  else if (!KEPT.has(name) && !(name in CALLED)) fill(place, source, within);
  else {
    const made = withAttributes(document.createElement(CALLED[name] ?? name), source, name);
    fill(made, source, within);
    place.append(name === "TABLE" ? scrolling(made) : made);
    if (name === "PRE") made.tabIndex = 0; // it may be wider than the page
  }
}

function withAttributes(made, source, name) {
  for (const attribute of [...EVERYWHERE, ...(ATTRIBUTES[name] ?? [])]) {
    if (source.hasAttribute(attribute)) made.setAttribute(attribute, source.getAttribute(attribute));
  }
  return made;
}

function scrolling(table) {
  const frame = document.createElement("div");
  frame.className = "article-table";
  frame.tabIndex = 0;
  frame.append(table);
  return frame;
}

function addLink(place, source, inside) {
  const address = inside.link ? null : addressOf(source.getAttribute("href"), inside.base, SCHEMES);
  if (!address) return fill(place, source, inside);
  const link = leadingTo(address);
  const pictures = document.createDocumentFragment(); // they have links of their own, so they stand after this one
  fill(link, source, { ...inside, link: pictures });
  withAttributes(link, source, "A");
  if (link.textContent.trim() === "") link.textContent = new URL(address).host || address;
  place.append(link, pictures);
}

/** A site would see who reads it: its pictures are named, and fetched only by those who want them. */
function addPicture(place, source, inside) {
  const address = addressOf(source.getAttribute("src"), inside.base, PICTURES);
  const words = (source.getAttribute("alt") || source.getAttribute("title") || "").trim();
  if (!address) return words && (inside.link ?? place).append(words);
  const link = leadingTo(address);
  link.className = "article-picture";
  const said = document.createElement("span");
  said.textContent = words || text("feeds.picture");
  const host = document.createElement("span");
  host.className = "article-picture-host";
  host.textContent = text("feeds.picture.open", { host: new URL(address).host });
  link.append(said, host);
  (inside.link ?? place).append(link);
}

function leadingTo(address) {
  const link = document.createElement("a");
  link.href = address;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return link;
}

function addressOf(said, base, schemes) {
  if (said === null) return null;
  try {
    const address = base ? new URL(said, base) : new URL(said);
    return schemes.has(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

class Article extends HTMLElement {
  #content = "";
  #base = null;

  set content(markup) {
    this.#content = markup;
    this.#show();
  }

  set base(address) {
    this.#base = address;
    this.#show();
  }

  connectedCallback() {
    this.#show();
  }

  #show() {
    if (this.isConnected) this.replaceChildren(articleNodes(this.#content, this.#base));
  }
}

if (!customElements.get("hw-article")) customElements.define("hw-article", Article);
