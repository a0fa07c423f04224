// One route of the reference: what it takes, what it answers, and a form to try it.

import { jsonNodes } from "./code.js";
import { commandAndForm } from "./command.js";
import { node } from "./render.js";
import { inline, markdown } from "./markdown.js";
import { examples, resolve, typeLabel } from "./openapi.js";
import { notes, schemaTree } from "./schema.js";
import { text, word } from "./text.js";

export function operationSection(api, operation, bearer) {
  return node`<section class="route" id="${operation.id}" aria-labelledby="${operation.id}--title">
    <header>
      <h3 id="${operation.id}--title" class=${operation.deprecated && "struck"}>
        ${operation.summary}
        <a class="permalink" href="#${operation.id}" aria-label=${text("docs.link")} data-t-aria-label="docs.link">#</a>
      </h3>
      <p class="route-line">
        ${methodBadge(operation.method)} <code class="path">${pathParts(operation.path)}</code>
        ${operation.deprecated && word("docs.deprecated", "mark warn")}
      </p>
    </header>
    <div class="route-about">
      <div class="prose">${markdown(operation.description)}</div>
      ${access(api, operation)} ${parameterTable(api, operation)} ${bodySection(api, operation)}
      ${responseList(api, operation)}
    </div>
    <div class="route-use">${commandAndForm(api, operation, bearer)}</div>
  </section>`;
}

export function methodBadge(method) {
  return node`<span class="method ${method}">${method === "delete" ? "DEL" : method.toUpperCase()}</span>`;
}

/** The path, which may break after each slash, with its variables marked. */
export function pathParts(path) {
  const parts = path.match(/\{[^}]*\}|[^{/]*\/|[^{/]+/g) ?? [];
  return parts.map((part) => [part.startsWith("{") ? node`<var>${part}</var>` : part, node`<wbr>`]);
}

function access(api, { security }) {
  if (security.length === 0) return null;
  const ways = security.map((way) => Object.entries(way).map(accessWay));
  const joined = ways.flatMap((way, index) => [
    index > 0 && [" ", word("docs.access.or"), " "],
    way.length > 0 ? way : word("docs.access.open"),
  ]);
  return node`<p class="access">${word("docs.access", "label")} ${joined}</p>`;
}

function accessWay([name, scopes], index) {
  return [
    index > 0 && " + ",
    node`<code>${name}</code>`,
    scopes.map((scope) => [" ", node`<span class="mark">${scope}</span>`]),
  ];
}

function parameterTable(api, { parameters }) {
  if (parameters.length === 0) return null;
  return node`<h4>${word("docs.parameters")}</h4>
    <div class="frame table-frame"><table class="parameters">
      <thead><tr>
        <th scope="col">${word("docs.name")}</th><th scope="col">${word("docs.in")}</th>
        <th scope="col">${word("docs.type")}</th><th scope="col">${word("docs.about")}</th>
      </tr></thead>
      <tbody>${parameters.map((parameter) => parameterRow(api, parameter))}</tbody>
    </table></div>`;
}

function parameterRow(api, parameter) {
  const schema = resolve(api, parameter.schema);
  const about = parameter.description ?? schema.description ?? "";
  const choices = schema.items && resolve(api, schema.items).enum;
  const deprecated = parameter.deprecated || schema.deprecated;
  const marks = notes({ ...schema, deprecated, enum: schema.enum ?? choices });
  return node`<tr>
    <th scope="row"><code class="name">${parameter.name}</code>
      ${parameter.required && word("docs.required", "mark required")}</th>
    <td class="muted">${parameter.in}</td>
    <td><span class="type">${typeLabel(api, { ...schema, nullable: false })}</span></td>
    <td>${inline(about)} <span class="notes">${marks}</span></td>
  </tr>`;
}

function bodySection(api, { body }) {
  if (!body) return null;
  return node`<h4>${word("docs.body")} ${body.required && word("docs.required", "mark required")}</h4>
    ${body.description && node`<p class="about">${inline(body.description)}</p>`}
    ${Object.entries(body.content).map(([type, media]) => mediaBlock(api, type, media))}`;
}

function mediaBlock(api, type, media) {
  return node`<div class="media frame">
    ${media.schema ? schemaTree(api, media.schema, type) : node`<p class="muted">${type}</p>`}
  </div>`;
}

function responseList(api, { responses }) {
  if (responses.length === 0) return null;
  return node`<h4>${word("docs.responses")}</h4>
    <div class="responses frame">${responses.map((response) => responseBlock(api, response))}</div>`;
}

function responseBlock(api, { status, description, headers, content }) {
  const media = Object.entries(content ?? {});
  const line = node`<span class="status s${status[0]}">${status}</span>
    <span class="response-about">${inline(description ?? "")}</span>
    <span class="muted response-type">
      ${media.map(([type]) => type).join(", ") || word("docs.nocontent")}
    </span>`;
  const names = Object.keys(headers ?? {});
  if (media.length === 0 && names.length === 0) return node`<div class="response">${line}</div>`;
  const details = node`<details class="response"><summary>${line}</summary></details>`;
  const fill = () =>
    details.append(
      node`<div class="response-body">
        ${names.map((name) => headerLine(name, headers[name].description))}
        ${media.map(([type, each]) => [mediaBlock(api, type, each), givenExample(api, each)])}
      </div>`,
    );
  details.addEventListener("toggle", fill, { once: true });
  return details;
}

function headerLine(name, about = "") {
  return node`<p>${word("docs.header", "label")} <code class="name">${name}</code> ${inline(about)}</p>`;
}

/** Only an example that somebody wrote: one made from the schema would say the same again. */
function givenExample(api, media) {
  const schema = resolve(api, media.schema ?? {});
  if (!(media.example ?? media.examples ?? schema.examples ?? schema.example)) return null;
  return examples(api, media).map(({ name, value }) => {
    const shown = typeof value === "string" ? value : jsonNodes(JSON.stringify(value));
    return node`<p class="label">${word("docs.example")} ${name}</p>
      <pre class="code" tabindex="0">${shown}</pre>`;
  });
}
