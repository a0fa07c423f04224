// Templates that escape by default, and a renderer that changes only what has changed.
//
//   render(html`<button class="quiet ${kind}" @click=${send}>${label}</button>`, place)
//
// The literal parts are markup that we wrote; every value is data and becomes text, an attribute, a
// property or a listener, and never markup. `@name` is a listener, `.name` a property, `--name` a
// variable of the style, `ref` a function that gets the element once. An attribute whose value is
// false, null or undefined is left out. A child may be text, a node, a template, a list, `each`
// (a list whose items keep their elements), or nothing.

const SLOT = "slot-value-";
const SLOT_IN_ATTRIBUTE = /slot-value-(\d+);/;
const ADDRESSES = new Set(["href", "src", "action", "formaction", "poster"]);
const blueprints = new WeakMap();
const roots = new WeakMap();

class Template {
  constructor(strings, values, drawing) {
    this.strings = strings;
    this.values = values;
    this.drawing = drawing;
  }
}

class Keyed {
  constructor(items, keyOf, view) {
    this.items = items;
    this.keyOf = keyOf;
    this.view = view;
  }
}

export function html(strings, ...values) {
  return new Template(strings, values, false);
}

/** The same for what stands inside of an `<svg>`. */
export function svg(strings, ...values) {
  return new Template(strings, values, true);
}

/** A list in which what belongs to a key keeps its elements, wherever it moves. */
export function each(items, keyOf, view) {
  return new Keyed(items, keyOf, view);
}

export function render(value, place) {
  let part = roots.get(place);
  if (!part) {
    place.replaceChildren(document.createComment(""));
    part = new ChildPart(place.firstChild);
    roots.set(place, part);
  }
  const focused = document.activeElement;
  try {
    part.set(value);
  } catch (error) {
    roots.delete(place); // what is half done cannot be gone on with: the next one begins anew
    throw error;
  }
  // What moves within the document loses the focus on its way.
  if (document.activeElement === document.body && focused !== document.body && focused?.isConnected) focused.focus({ preventScroll: true });
}

/** Made at once, for those who keep the node and change it themselves. */
export function node(strings, ...values) {
  const { fragment } = instantiate(new Template(strings, values, false));
  const shown = [...fragment.childNodes].filter((child) => child.nodeType !== Node.COMMENT_NODE);
  return shown.length === 1 ? shown[0] : fragment;
}

/** The child as a list of nodes; text stays text, whatever it looks like. */
export function nodes(child) {
  if (isNothing(child)) return [];
  if (Array.isArray(child)) return child.flatMap(nodes);
  return [child instanceof Node ? child : document.createTextNode(String(child))];
}

export function replaceContent(element, ...children) {
  element.replaceChildren(...nodes(children));
}

// -------------------------------------------------------------------- blueprints

function blueprintOf({ strings, drawing }) {
  if (!blueprints.has(strings)) blueprints.set(strings, parse(strings, drawing));
  return blueprints.get(strings);
}

function parse(strings, drawing) {
  let markup = "";
  strings.forEach((literal, index) => {
    markup += literal;
    if (index === strings.length - 1) return;
    const insideTag = markup.lastIndexOf("<") > markup.lastIndexOf(">");
    markup += insideTag ? `${SLOT}${index};` : `<!--${SLOT}${index}-->`;
  });
  const template = document.createElement("template");
  // Only literals and slot numbers are in this text: the values come later, as nodes.
  const tidy = markup.replace(/^\s*\n\s*|\s*\n\s*$/g, ""); // how our source is laid out means nothing
  template.innerHTML = drawing ? `<svg>${tidy}</svg>` : tidy;
  if (drawing) template.content.firstChild.replaceWith(...template.content.firstChild.childNodes);
  return { template, places: placesIn(template.content) };
}

/** Where values go, by the place of their node in the order of the document. */
function placesIn(content) {
  const places = [];
  let index = -1;
  for (const found of walk(content)) {
    index += 1;
    if (found.nodeType === Node.COMMENT_NODE) {
      if (found.data.startsWith(SLOT)) {
        places.push({ index, slot: Number(found.data.slice(SLOT.length)) });
        found.data = "";
      }
      continue;
    }
    // They leave the template, or a copy would for a moment mean the slot's name; the list is live.
    for (const { name, value } of Array.from(found.attributes)) {
      if (!SLOT_IN_ATTRIBUTE.test(value)) continue;
      found.removeAttribute(name);
      places.push({ index, name, pieces: value.split(SLOT_IN_ATTRIBUTE) });
    }
  }
  return places;
}

function* walk(content) {
  const wanted = NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_COMMENT;
  const walker = document.createTreeWalker(content, wanted);
  while (walker.nextNode()) yield walker.currentNode;
}

function instantiate(template) {
  const { template: blueprint, places } = blueprintOf(template);
  const fragment = document.importNode(blueprint.content, true);
  const parts = [];
  if (places.length > 0) {
    const all = [...walk(fragment)];
    for (const place of places) {
      const at = all[place.index];
      parts.push(place.name === undefined ? new Slot(place.slot, at) : attributePart(place, at));
    }
  }
  const instance = { fragment, parts, strings: template.strings };
  fillIn(instance, template.values);
  return instance;
}

function fillIn(instance, values) {
  for (const part of instance.parts) part.update(values);
}

// -------------------------------------------------------------------- attributes

function attributePart({ name, pieces }, element) {
  if (name.startsWith("@")) return new ListenerPart(element, name.slice(1), pieces);
  if (name.startsWith("on") || name === "style" || name === "srcdoc") {
    throw new TypeError(`a value cannot become the attribute ${name}; use a listener or a class`);
  }
  return new AttributePart(element, name, pieces);
}

class AttributePart {
  constructor(element, name, pieces) {
    this.element = element;
    this.name = name;
    this.pieces = pieces;
    this.last = undefined;
  }

  update(values) {
    const value = this.#join(values);
    if (Object.is(value, this.last)) return;
    const first = this.last === undefined;
    this.last = value;
    const { element, name } = this;
    if (name === "ref") {
      if (first) value?.(element);
    } else if (name.startsWith(".")) element[PROPERTIES[name] ?? name.slice(1)] = value;
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (isNothing(value) && value !== true) element.removeAttribute(name);
    else if (!ADDRESSES.has(name) || leadsToWeb(value)) {
      element.setAttribute(name, value === true ? "" : String(value));
    } else element.removeAttribute(name);
  }

  /** A value that stands alone stays what it is; beside other text it becomes text. */
  #join(values) {
    const [before, number, after] = this.pieces;
    if (this.pieces.length === 3 && before === "" && after === "") return values[Number(number)];
    return this.pieces
      .map((piece, index) => (index % 2 ? textOf(values[Number(piece)]) : piece))
      .join("");
  }
}

// A parser makes names of attributes lower case.
const PROPERTIES = { ".textcontent": "textContent", ".selectedindex": "selectedIndex" };

class ListenerPart {
  constructor(element, name, pieces) {
    this.slot = Number(pieces[1]);
    this.listener = null;
    element.addEventListener(name, this);
  }

  update(values) {
    this.listener = values[this.slot];
  }

  handleEvent(event) {
    this.listener?.(event);
  }
}

function textOf(value) {
  return isNothing(value) ? "" : String(value);
}

/** Keeps `javascript:` and its like out of links. */
function leadsToWeb(address) {
  if (typeof address === "string" && address.startsWith("#")) return true; // most are, and a URL takes time to read
  try {
    return ["http:", "https:"].includes(new URL(address, location.href).protocol);
  } catch {
    return false;
  }
}

function isNothing(value) {
  return value === null || value === undefined || value === false || value === true;
}

// -------------------------------------------------------------------- children

class Slot {
  constructor(number, end) {
    this.number = number;
    this.part = new ChildPart(end);
  }

  update(values) {
    this.part.set(values[this.number]);
  }
}

/** What stands between two marks. */
class ChildPart {
  constructor(end) {
    this.start = document.createComment("");
    end.before(this.start);
    this.end = end;
    this.shown = null; // the text node, the instance, the node, or the list
    this.kind = "nothing";
  }

  set(value) {
    if (isNothing(value)) this.#become("nothing");
    else if (value instanceof Template) this.#setTemplate(value);
    else if (value instanceof Keyed) this.#setList(value.items, value.keyOf, value.view);
    else if (Array.isArray(value)) this.#setList(value, (_, index) => index, (item) => item);
    else if (value instanceof Node) this.#setNode(value);
    else this.#setText(String(value));
  }

  #become(kind) {
    if (this.kind === kind && kind !== "template") return false;
    while (this.start.nextSibling !== this.end) this.start.nextSibling.remove();
    this.kind = kind;
    this.shown = null;
    return true;
  }

  #setText(text) {
    if (this.#become("text")) {
      this.shown = document.createTextNode(text);
      this.end.before(this.shown);
    } else if (this.shown.data !== text) this.shown.data = text;
  }

  #setNode(child) {
    const isHere = child.nodeType === Node.DOCUMENT_FRAGMENT_NODE || child.nextSibling === this.end;
    if (this.kind === "node" && this.shown === child && isHere) return;
    this.#become("nothing");
    this.kind = "node";
    this.shown = child;
    this.end.before(child);
  }

  #setTemplate(template) {
    if (this.kind === "template" && this.shown.strings === template.strings) {
      fillIn(this.shown, template.values);
      return;
    }
    this.#become("template");
    this.shown = instantiate(template);
    this.end.before(this.shown.fragment);
  }

  #setList(items, keyOf, view) {
    if (this.#become("list")) this.shown = new Map();
    const keys = ownKeys(items, keyOf);
    for (const [key, part] of this.shown) {
      if (!keys.has(key)) part.remove();
    }
    const before = this.shown;
    this.shown = new Map();
    let at = this.start.nextSibling;
    for (const [key, index] of keys) {
      const known = before.get(key);
      const part = known ?? newPartBefore(at);
      if (known && part.start === at) at = part.end.nextSibling;
      else if (known) part.moveBefore(at);
      part.set(view(items[index], index));
      this.shown.set(key, part);
    }
  }

  moveBefore(place) {
    for (let moved = this.start; ; ) {
      const next = moved.nextSibling;
      place.before(moved);
      if (moved === this.end) return;
      moved = next;
    }
  }

  remove() {
    this.set(null);
    this.start.remove();
    this.end.remove();
  }
}

/** Each key with the place of its item; one that comes again is made another. */
function ownKeys(items, keyOf) {
  const keys = new Map();
  items.forEach((item, index) => {
    let key = keyOf(item, index);
    while (keys.has(key)) key = `${key} again`;
    keys.set(key, index);
  });
  return keys;
}

function newPartBefore(place) {
  const end = document.createComment("");
  place.before(end);
  return new ChildPart(end);
}
