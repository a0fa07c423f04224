// The words that all pages share, and the switch between English and Chinese.
//
// An element with `data-t="key"` shows that text; `data-t-placeholder` and `data-t-aria-label` do
// the same for attributes. So a change of language touches only words: what somebody typed or opened
// stays as it is.

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

let current = remembered() ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

export function text(key) {
  return WORDS[key]?.[LANGUAGES.indexOf(current)] ?? key;
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

/** Takes the page's own words, lets `[data-language]` buttons choose, and shows the page. */
export function offerLanguages(words) {
  addWords(words);
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => choose(button.dataset.language));
  }
  show();
}

function choose(language) {
  current = language;
  try {
    localStorage.setItem(REMEMBERED_AS, language);
  } catch {
    // Storage may be forbidden; then the choice lasts as long as the page.
  }
  show();
}

function remembered() {
  try {
    const language = localStorage.getItem(REMEMBERED_AS);
    return LANGUAGES.includes(language) ? language : null;
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
}
