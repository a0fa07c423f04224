// What a page owes to people who cannot see it well, or do not use a mouse. Evaluated in the page by
// `audit.py`; gives sentences, one for each fault.
(options) => {
  const found = [];
  const LARGE_PX = 24;
  const LARGE_BOLD_PX = 18.66;
  const TOUCH_PX = 24;

  const INTERACTIVE =
    'a[href], button, input:not([type="hidden"]), select, textarea, summary, [role="button"], ' +
    '[role="link"], [role="tab"], [role="option"], [role="menuitem"], [role="checkbox"], ' +
    '[role="switch"], [role="radio"], [role="combobox"], [role="slider"], [contenteditable="true"], ' +
    '[tabindex]:not([tabindex="-1"])';

  // Custom elements may keep their parts in a shadow, where they count as well.
  const all = [];
  const collect = (root) => {
    for (const element of root.querySelectorAll("*")) {
      all.push(element);
      if (element.shadowRoot) collect(element.shadowRoot);
    }
  };
  collect(document);

  const shown = (element) =>
    element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) &&
    element.getClientRects().length > 0;
  const heard = (element) => shown(element) && !element.closest('[aria-hidden="true"], [inert]');
  const squeeze = (text) => (text ?? "").replace(/\s+/g, " ").trim();

  function named(element) {
    const id = element.id ? `#${element.id}` : "";
    const classes = [...element.classList].map((name) => `.${name}`).join("");
    const words = squeeze(element.textContent).slice(0, 40);
    const parent = element.parentElement;
    const around = id || !parent || parent === document.body ? "" : `${short(parent)} > `;
    return `${around}<${element.localName}${id}${classes}>${words ? ` “${words}”` : ""}`;
  }
  const short = (element) =>
    `<${element.localName}${element.id ? `#${element.id}` : [...element.classList].map((c) => `.${c}`).join("")}>`;
  const blame = (element, fault) => found.push(`${named(element)}: ${fault}`);

  // ------------------------------------------------------------------------------------- names

  const byId = (element, id) => element.getRootNode().getElementById?.(id) ?? document.getElementById(id);

  function referred(element, attribute) {
    const ids = squeeze(element.getAttribute(attribute)).split(" ").filter(Boolean);
    return ids.map((id) => byId(element, id)).filter(Boolean);
  }

  function textOf(element, within = new Set()) {
    if (within.has(element)) return "";
    within.add(element);
    let text = "";
    for (const node of element.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) text += node.data;
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      if (node.getAttribute("aria-hidden") === "true" || node.hidden) continue;
      const label = node.getAttribute("aria-label");
      if (label) text += ` ${label} `;
      else if (node.localName === "img") text += ` ${node.alt} `;
      else if (node.localName === "svg") text += ` ${squeeze(node.querySelector("title")?.textContent)} `;
      else text += ` ${textOf(node, within)} `;
    }
    if (element.shadowRoot) text += ` ${textOf(element.shadowRoot, within)}`;
    return squeeze(text);
  }

  const labelled = (element) =>
    referred(element, "aria-labelledby").map((each) => textOf(each)).join(" ").trim() ||
    squeeze(element.getAttribute("aria-label"));

  function accessibleName(element) {
    const said = labelled(element);
    if (said) return said;
    if (element.labels?.length) {
      const words = [...element.labels].map((label) => textOf(label)).join(" ").trim();
      if (words) return words;
    }
    if (element.matches("input")) {
      if (["submit", "button", "reset"].includes(element.type)) return squeeze(element.value);
      if (element.type === "image") return squeeze(element.alt);
      return squeeze(element.title);
    }
    if (element.matches("select, textarea")) return squeeze(element.title);
    return textOf(element) || squeeze(element.title);
  }

  for (const element of all.filter((each) => each.matches(INTERACTIVE) && heard(each))) {
    const field = element.matches('input:not([type="submit"], [type="button"], [type="reset"]), select, textarea');
    const scrolls = element.matches("pre, div, section, ol, ul, table, main") && !element.hasAttribute("role");
    if (scrolls && element.matches("[tabindex]")) continue; // reached to be scrolled, not to be used
    if (!accessibleName(element)) {
      blame(element, field ? "the field has no label" : "has no name that could be read out");
    }
  }
  for (const element of all.filter((each) => each.matches('dialog[open], [role="dialog"], [role="alertdialog"]') && heard(each))) {
    if (!labelled(element)) blame(element, "the dialog has no name");
  }
  for (const element of all.filter((each) => each.matches('img, [role="img"], svg[role="img"]') && shown(each))) {
    const decoration = element.closest('[aria-hidden="true"]') || element.getAttribute("role") === "presentation";
    if (decoration) continue;
    const silent = element.matches("img") ? !element.hasAttribute("alt") : !labelled(element) && !squeeze(element.querySelector?.("title")?.textContent);
    if (silent) blame(element, "the image has no text in its place");
  }

  // ------------------------------------------------------------------------------------ structure

  const seen = new Map();
  for (const element of all.filter((each) => each.id)) {
    const root = element.getRootNode();
    if (!seen.has(root)) seen.set(root, new Set());
    if (seen.get(root).has(element.id)) blame(element, "the id is used twice");
    seen.get(root).add(element.id);
  }

  // What is behind a modal dialog is out of reach, so the dialog counts as a page of its own.
  const modal = all.find((each) => each.matches("dialog:modal"));
  const headings = all.filter((each) => each.matches("h1, h2, h3, h4, h5, h6") && heard(each));
  const outside = headings.filter((each) => !each.closest("dialog"));
  const first = outside.filter((each) => each.localName === "h1").length;
  if (first !== 1) found.push(`the page has ${first} headings <h1>, not one`);
  let level = 1; // what is above the first heading may have one of its own
  for (const heading of outside) {
    const own = Number(heading.localName[1]);
    if (own > level + 1) blame(heading, `the heading skips from level ${level} to ${own}`);
    level = own;
  }
  for (const heading of headings) if (!textOf(heading)) blame(heading, "the heading is empty");

  const landmarks = (selector) => all.filter((each) => each.matches(selector) && (modal || heard(each)));
  const mains = landmarks("main, [role=main]").length;
  if (mains !== 1) found.push(`the page has ${mains} landmarks <main>, not one`);
  const navigations = landmarks("nav, [role=navigation]");
  // On a phone it may wait behind a button.
  if (options.navigation && !all.some((each) => each.matches("nav, [role=navigation]"))) found.push("the page has no landmark <nav>");
  if (navigations.length > 1) {
    for (const each of navigations) if (!labelled(each)) blame(each, "one of several <nav> has no name");
  }
  if (options.live && !all.some((each) => each.matches('[aria-live], [role="status"], [role="alert"], [role="log"]'))) {
    found.push("the page has no live region, so nobody hears what changes");
  }
  if (!document.documentElement.lang) found.push("<html> has no lang");
  if (!squeeze(document.title)) found.push("the page has no title");

  for (const element of all) {
    if (element.tabIndex > 0) blame(element, "a positive tabindex changes the order of focus");
    if (element.matches("a[href], button")) {
      const around = element.parentElement?.closest("a[href], button, summary");
      if (around) blame(element, `is inside of ${short(around)}: what does a press mean?`);
    }
    if (element.matches("a:not([href])") && element.onclick) blame(element, "is pressed, but is no link");
    if (element.matches("table:not([role=presentation])") && heard(element)) {
      if (!element.querySelector("th")) blame(element, "the table has no header cells");
    }
    if (element.matches("label[for]") && !byId(element, element.htmlFor)) blame(element, `labels #${element.htmlFor}, which is not there`);
    if (element.matches('[aria-hidden="true"]') && shown(element)) {
      const reached = [element, ...element.querySelectorAll(INTERACTIVE)].find((each) => each.tabIndex >= 0 && each.matches(INTERACTIVE) && !each.disabled);
      if (reached) blame(reached, "can be focused, but is hidden from screen readers");
    }
    for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "aria-owns", "aria-activedescendant", "aria-errormessage", "aria-details"]) {
      const ids = squeeze(element.getAttribute(attribute)).split(" ").filter(Boolean);
      // What is controlled may be made when it is opened first.
      if (attribute === "aria-controls" && element.getAttribute("aria-expanded") === "false") continue;
      for (const id of ids) if (!byId(element, id)) blame(element, `${attribute} refers to #${id}, which is not there`);
    }
  }

  // ------------------------------------------------------------------------------------- contrast

  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();

  /** Red, green and blue from 0 to 255, alpha from 0 to 1, however the colour was written. */
  function parsed(color) {
    if (!known.has(color)) {
      brush.clearRect(0, 0, 1, 1);
      brush.fillStyle = "#000";
      brush.fillStyle = color;
      brush.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = brush.getImageData(0, 0, 1, 1).data;
      known.set(color, [red, green, blue, alpha / 255]);
    }
    return known.get(color);
  }
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const above = (element) => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;

  /** The colour behind the text; nothing if it is a picture, which cannot be judged by its style. */
  function ground(element) {
    const layers = [];
    for (let each = element; each; each = above(each)) {
      const style = getComputedStyle(each);
      if (style.backgroundImage !== "none" && style.backgroundImage !== "") return null;
      const color = parsed(style.backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches;
    return layers.reduceRight((below, layer) => over(layer, below), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  }

  function opacity(element) {
    let product = 1;
    for (let each = element; each; each = above(each)) product *= Number(getComputedStyle(each).opacity);
    return product;
  }

  function luminance([red, green, blue]) {
    const linear = [red, green, blue].map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }

  function ratio(one, other) {
    const [bright, dark] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
    return (bright + 0.05) / (dark + 0.05);
  }

  function judge(element, style, what) {
    const behind = ground(element);
    if (!behind) return;
    const [r, g, b, a] = parsed(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const ink = over([r, g, b, a * opacity(element) * (what === "placeholder" ? Number(style.opacity) : 1)], behind);
    const size = parseFloat(style.fontSize);
    const large = size >= LARGE_PX || (size >= LARGE_BOLD_PX && Number(style.fontWeight) >= 700);
    const reached = ratio(ink, behind);
    const wanted = large ? 3 : 4.5;
    if (reached < wanted - 0.005) {
      blame(element, `the ${what} has a contrast of ${reached.toFixed(2)}, below ${wanted} (rgb ${ink.slice(0, 3).map(Math.round)} on ${behind.slice(0, 3).map(Math.round)})`);
    }
  }

  const off = (element) => element.closest(":disabled, [aria-disabled=true], [inert]");
  for (const element of all) {
    if (!shown(element) || off(element)) continue;
    const style = getComputedStyle(element);
    const words = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && squeeze(node.data));
    const unseen = style.clipPath === "inset(50%)" || style.clip === "rect(0px, 0px, 0px, 0px)" || (element.clientWidth <= 1 && element.clientHeight <= 1 && style.overflow === "hidden");
    if (words && !unseen && element.closest("body") && !element.matches("script, style, noscript, title, option, optgroup")) judge(element, style, "text");
    if (element.matches("input, textarea") && !element.value && element.placeholder) judge(element, getComputedStyle(element, "::placeholder"), "placeholder");
    if (element.matches("input:not([type=checkbox], [type=radio], [type=range], [type=color], [type=file]), select, textarea") && element.value) judge(element, style, "value");
  }

  // ----------------------------------------------------------------------------------- reach, width

  if (options.phone) {
    const visible = all.filter((each) => each.matches(INTERACTIVE) && heard(each) && !off(each));
    for (const element of visible) {
      const style = getComputedStyle(element);
      if (element.matches("a[href]") && style.display === "inline") continue; // a link in a sentence
      if (element.matches("input[type=checkbox], input[type=radio]") && element.labels?.length) continue;
      const box = element.getBoundingClientRect();
      if (box.right < 0 || box.bottom < 0) continue; // a skip link waits outside
      if (box.width < TOUCH_PX - 0.5 || box.height < TOUCH_PX - 0.5) {
        blame(element, `is ${Math.round(box.width)}×${Math.round(box.height)} px, too small for a finger (${TOUCH_PX})`);
      }
    }
  }
  const page = document.scrollingElement;
  if (page.scrollWidth > page.clientWidth + 1) {
    const limit = page.clientWidth + 1;
    const clipped = (each) => { for (let up = above(each); up && up !== document.body; up = above(up)) if (getComputedStyle(up).overflowX !== "visible") return true; return false; };
    const wide = all.filter((each) => shown(each) && each.getBoundingClientRect().right > limit && !clipped(each)).at(-1);
    found.push(`the page is ${page.scrollWidth} px wide in a window of ${page.clientWidth}${wide ? `: ${named(wide)} sticks out` : ""}`);
  }
  return [...new Set(found)];
};
