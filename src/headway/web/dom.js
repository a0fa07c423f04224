// Nodes from tagged templates. The literal parts are markup that we wrote; every value is data and
// becomes text, an attribute, a property or a listener, and never markup.
//
//   html`<button class="quiet ${kind}" @click=${send}>${label}</button>`
//
// `@name` adds a listener, `.name` sets a property; an attribute whose value is false, null or
// undefined is left out. A child may be text, a node, a list of children, or nothing.

const parsed = new WeakMap();
const SLOT = "slot-value-";
const SLOT_IN_ATTRIBUTE = /slot-value-(\d+);/;
const FILLED = "slot-filled";
const ADDRESSES = new Set(["href", "src", "action", "formaction"]);

export function html(strings, ...values) {
  if (!parsed.has(strings)) parsed.set(strings, parse(strings));
  const { template, attributes } = parsed.get(strings);
  const fragment = document.importNode(template.content, true);
  for (const element of fragment.querySelectorAll(`[${FILLED}]`)) {
    for (const [name, pieces] of attributes[element.getAttribute(FILLED)]) {
      fill(element, name, join(pieces, values));
    }
    element.removeAttribute(FILLED);
  }
  for (const comment of commentsIn(fragment)) {
    if (comment.data.startsWith(SLOT)) {
      comment.replaceWith(...nodes(values[Number(comment.data.slice(SLOT.length))]));
    }
  }
  return fragment.childNodes.length === 1 ? fragment.firstChild : fragment;
}

/** The child as a list of nodes; text stays text, whatever it looks like. */
export function nodes(child) {
  if (child === null || child === undefined || child === false || child === true) return [];
  if (Array.isArray(child)) return child.flatMap(nodes);
  return [child instanceof Node ? child : document.createTextNode(String(child))];
}

export function replaceContent(element, ...children) {
  element.replaceChildren(...nodes(children));
}

function parse(strings) {
  let markup = "";
  strings.forEach((literal, index) => {
    markup += literal;
    if (index === strings.length - 1) return;
    const insideTag = markup.lastIndexOf("<") > markup.lastIndexOf(">");
    markup += insideTag ? `${SLOT}${index};` : `<!--${SLOT}${index}-->`;
  });
  const template = document.createElement("template");
  // Only literals and slot numbers are in this text: the values come later, as nodes.
  template.innerHTML = markup.trim();
  return { template, attributes: takeAttributes(template.content) };
}

/** Attributes with slots leave the template, or a copy would for a moment mean the slot's name. */
function takeAttributes(content) {
  const taken = [];
  for (const element of content.querySelectorAll("*")) {
    const slotted = [...element.attributes].filter(({ value }) => SLOT_IN_ATTRIBUTE.test(value));
    if (slotted.length === 0) continue;
    for (const { name } of slotted) element.removeAttribute(name);
    element.setAttribute(FILLED, taken.length);
    taken.push(slotted.map(({ name, value }) => [name, value.split(SLOT_IN_ATTRIBUTE)]));
  }
  return taken;
}

function commentsIn(fragment) {
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_COMMENT);
  const found = [];
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
}

/** A value that stands alone stays what it is; beside other text it becomes text. */
function join(pieces, values) {
  const [before, number, after] = pieces;
  if (pieces.length === 3 && before === "" && after === "") return values[Number(number)];
  return pieces.map((piece, index) => (index % 2 ? (values[Number(piece)] ?? "") : piece)).join("");
}

function fill(element, name, value) {
  if (name.startsWith("@") || name.startsWith(".")) {
    if (name.startsWith("@")) element.addEventListener(name.slice(1), value);
    else element[name.slice(1)] = value;
  } else if (name.startsWith("on") || name === "style" || name === "srcdoc") {
    throw new TypeError(`a value cannot become the attribute ${name}; use a listener or a class`);
  } else if (value !== false && value !== null && value !== undefined) {
    if (ADDRESSES.has(name) && !leadsToWeb(value)) return;
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Keeps `javascript:` and its like out of links. */
function leadsToWeb(address) {
  try {
    return ["http:", "https:"].includes(new URL(address, location.href).protocol);
  } catch {
    return false;
  }
}
