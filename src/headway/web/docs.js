// The API reference: loads the OpenAPI document, draws index and routes, filters and follows.

import { node, replaceContent } from "./render.js";
import { markdown } from "./markdown.js";
import { groups } from "./openapi.js";
import { methodBadge, operationSection, pathParts } from "./operation.js";
import { DOCS_WORDS } from "./text-docs.js";
import { offerLanguages, word } from "./text.js";

const byId = (id) => document.getElementById(id);
const index = byId("page-index");
const filter = byId("page-filter");
const menu = byId("page-menu");
// The token lives in this field and nowhere else.
const bearer = () => byId("page-token").value.trim();

offerLanguages(DOCS_WORDS);
load();

async function load() {
  const content = byId("page-content");
  try {
    const response = await fetch("/openapi.json");
    if (response.status === 401) return location.assign("/login");
    if (!response.ok) throw new Error(`status ${response.status}`);
    draw(await response.json(), content);
  } catch (error) {
    console.error(error);
    replaceContent(
      content,
      node`<p class="notice bad" role="alert">${word("docs.failed")}</p>
        <button type="button" @click=${load}>${word("docs.again")}</button>`,
    );
  }
}

function draw(api, content) {
  const all = groups(api);
  replaceContent(
    content,
    node`<div class="intro">
      <h1>${api.info.title} <span class="muted version">${api.info.version}</span></h1>
      <div class="prose">${markdown(api.info.description ?? api.info.summary ?? "")}</div>
      <p><a href="/openapi.json">${word("docs.document")}</a></p>
    </div>`,
    all.map(
      (group) => node`<h2 class="group">${group.name || word("docs.other")}</h2>
        <div class="prose">${markdown(group.description ?? "")}</div>
        ${group.operations.map((operation) => operationSection(api, operation, bearer))}`,
    ),
  );
  replaceContent(byId("page-list"), all.map(indexGroup));
  followReading(content);
  // The routes came after the page: go to the one in the address when they have been drawn.
  if (location.hash) requestAnimationFrame(() => setTimeout(() => location.replace(location.hash)));
}

function indexGroup(group) {
  return node`<section>
    <h2>${group.name || word("docs.other")}</h2>
    <ul>${group.operations.map((operation) => indexEntry(group, operation))}</ul>
  </section>`;
}

function indexEntry(group, { id, method, path, summary, deprecated }) {
  const sought = [group.name, method, path, summary, id].join(" ").toLowerCase();
  return node`<li data-sought="${sought}">
    <a href="#${id}" title="${summary}" class=${deprecated && "struck"}>
      ${methodBadge(method)}<span class="path">${pathParts(path)}</span>
    </a>
  </li>`;
}

/** Marks the route that is being read in the index. */
function followReading(content) {
  const links = new Map(shownLinks().map((link) => [link.getAttribute("href"), link]));
  const observer = new IntersectionObserver(
    (entries) => {
      const read = entries.find((entry) => entry.isIntersecting);
      if (!read) return;
      index.querySelector("[aria-current]")?.removeAttribute("aria-current");
      const link = links.get(`#${read.target.id}`);
      link?.setAttribute("aria-current", "true");
      if (!index.contains(document.activeElement)) link?.scrollIntoView({ block: "nearest" });
    },
    { rootMargin: "-15% 0px -80% 0px" },
  );
  for (const route of content.querySelectorAll(".route")) observer.observe(route);
}

// The filter

filter.addEventListener("input", applyFilter);

function applyFilter() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const item of index.querySelectorAll("[data-sought]")) {
    item.hidden = !words.every((each) => item.dataset.sought.includes(each));
  }
  for (const section of index.querySelectorAll("section")) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  byId("page-nomatch").hidden = shownLinks().length > 0;
}

function shownLinks() {
  return [...index.querySelectorAll("section:not([hidden]) li:not([hidden]) a")];
}

index.addEventListener("keydown", (event) => {
  const links = shownLinks();
  const at = links.indexOf(document.activeElement);
  const inFilter = document.activeElement === filter;
  if (event.key === "Enter" && inFilter) links[0]?.click();
  else if (event.key === "ArrowDown" && (inFilter || at >= 0)) links[at + 1]?.focus();
  else if (event.key === "ArrowUp" && at >= 0) (links[at - 1] ?? filter).focus();
  else return;
  event.preventDefault();
});

// The index as a drawer, on narrow screens

function openDrawer(open) {
  document.body.classList.toggle("drawer-open", open);
  menu.setAttribute("aria-expanded", String(open));
}

menu.addEventListener("click", () => openDrawer(menu.getAttribute("aria-expanded") !== "true"));
index.addEventListener("click", (event) => {
  if (event.target.closest("a")) openDrawer(false);
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    openDrawer(true);
    filter.select();
  } else if (event.key === "Escape") {
    openDrawer(false);
    filter.value = "";
    applyFilter();
    if (!index.contains(document.activeElement)) return;
    document.activeElement.blur();
    menu.focus();
  }
});
