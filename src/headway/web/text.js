// The words that all pages share, and the switch between English and Chinese.
//
// `text(key, values)` is the text now: `{name}` stands for a value, and where a text has two forms
// ("{n} job|{n} jobs") the number `n` chooses. On pages that are not drawn again, an element with
// `data-t="key"` shows a text and follows the language; `data-t-placeholder` and
// `data-t-aria-label` do the same for attributes. So a change of language touches only words: what
// somebody typed or opened stays as it is.

const REMEMBERED_AS = "headway.language";
const LANGUAGES = ["en", "zh"];
const WORDS = {
  skip: ["Skip to the content", "跳到正文"],
  language: ["Language", "语言"],
  pages: ["Pages", "页面"],
  "nav.home": ["Overview", "概览"],
  "nav.docs": ["API reference", "API 参考"],
  "nav.metrics": ["Metrics", "指标"],
  "nav.health": ["Health", "健康状况"],
};
const TRANSLATED_ATTRIBUTES = ["placeholder", "aria-label"];
const followers = new Set();

let current = remembered() ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

export function language() {
  return current;
}

export function isKnown(key) {
  return key in WORDS;
}

export function text(key, values = {}) {
  const said = WORDS[key]?.[LANGUAGES.indexOf(current)] ?? key;
  const forms = said.split("|");
  const form = forms.length === 2 && values.n !== 1 ? forms[1] : forms[0];
  return form.replaceAll(/\{(\w+)\}/g, (whole, name) => (name in values ? (shown(values[name]) ?? "–") : whole));
}

const numbers = Object.fromEntries(LANGUAGES.map((each) => [each, new Intl.NumberFormat(each)]));

function shown(value) {
  return typeof value === "number" ? numbers[current].format(value) : value;
}

/** An element that shows the text, and follows the language from then on. */
export function word(key, className = "") {
  const element = document.createElement("span");
  if (className) element.className = className;
  element.dataset.t = key;
  element.textContent = text(key);
  return element;
}

function translate(root) {
  for (const element of root.querySelectorAll("[data-t]")) {
    element.textContent = text(element.dataset.t);
  }
  for (const attribute of TRANSLATED_ATTRIBUTES) {
    for (const element of root.querySelectorAll(`[data-t-${attribute}]`)) {
      element.setAttribute(attribute, text(element.getAttribute(`data-t-${attribute}`)));
    }
  }
}

export function addWords(words) {
  Object.assign(WORDS, words);
}

/** `listener` is called after each change of the language. */
export function followLanguage(listener) {
  followers.add(listener);
}

/** Takes the page's own words, lets `[data-language]` buttons choose, and shows the page. */
export function offerLanguages(words) {
  addWords(words);
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => chooseLanguage(button.dataset.language));
  }
  show();
}

export function chooseLanguage(chosen) {
  current = chosen;
  try {
    localStorage.setItem(REMEMBERED_AS, chosen);
  } catch {
    // Storage may be forbidden; then the choice lasts as long as the page.
  }
  show();
}

function remembered() {
  try {
    const chosen = localStorage.getItem(REMEMBERED_AS);
    return LANGUAGES.includes(chosen) ? chosen : null;
  } catch {
    return null;
  }
}

function show() {
  document.documentElement.lang = current === "zh" ? "zh-CN" : "en";
  const { title } = document.documentElement.dataset;
  document.title = title ? `${text(title)} · Headway` : "Headway";
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === current));
  }
  translate(document);
  for (const listener of followers) listener();
}
