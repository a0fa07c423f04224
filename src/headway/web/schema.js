// A schema as a tree that is opened level by level, so that a type may contain itself.

import { node } from "./render.js";
import { inline } from "./markdown.js";
import { limits, resolve, typeLabel } from "./openapi.js";
import { word } from "./text.js";

const MAX_LOOK_AHEAD = 3;

/** The schema of a body: its fields, or one line when it has none. */
export function schemaTree(api, schema, mediaType) {
  const found = resolve(api, schema);
  const parts = children(api, found);
  return node`<div class="schema">
    <p class="schema-head">
      <strong class="type">${typeLabel(api, schema)}</strong> ${notes(found)}
      <span class="muted">${mediaType}</span>
    </p>
    ${found.description && node`<p class="about">${inline(found.description)}</p>`}
    ${parts.length > 0 && list(api, parts)}
  </div>`;
}

/** Default, limits and allowed values of a schema, as small marks. */
export function notes(found) {
  return [
    found.readOnly && word("docs.readonly", "mark"),
    found.writeOnly && word("docs.writeonly", "mark"),
    found.deprecated && word("docs.deprecated", "mark warn"),
    found.const !== undefined && node`<code class="value">${JSON.stringify(found.const)}</code>`,
    found.enum?.map((value) => node`<code class="value">${JSON.stringify(value)}</code>`),
    limits(found).map((limit) => node`<span class="mark">${limit}</span>`),
    !["null", "[]", "{}", undefined].includes(JSON.stringify(found.default)) &&
      node`<span class="mark">${word("docs.default")} ${JSON.stringify(found.default)}</span>`,
  ];
}

function list(api, parts) {
  return node`<ul class="tree">${parts.map((part) => row(api, part))}</ul>`;
}

function row(api, { label, schema, required }) {
  const found = resolve(api, schema);
  const line = node`<span class="tree-line">
    ${label()} <span class="type">${typeLabel(api, schema)}</span>
    ${required && word("docs.required", "mark required")} ${notes(found)}
  </span>`;
  const about = found.description && node`<p class="about">${inline(found.description)}</p>`;
  const parts = children(api, found);
  if (parts.length === 0) return node`<li>${line}${about}</li>`;
  const details = node`<details><summary>${line}</summary></details>`;
  const fill = () => details.append(list(api, parts));
  details.addEventListener("toggle", fill, { once: true });
  return node`<li>${details}${about}</li>`;
}

/** What stands below a schema: its fields, its alternatives or its items. */
function children(api, found, depth = 0) {
  // A type may be made of itself; a few levels tell whether there is anything to open.
  if (depth > MAX_LOOK_AHEAD) return [];
  if (found.alternatives) {
    const shaped = found.alternatives.some(
      (each) => children(api, resolve(api, each), depth + 1).length > 0,
    );
    return shaped
      ? found.alternatives.map((schema) => ({ label: () => word("docs.oneof", "tree-word"), schema }))
      : [];
  }
  if (found.type === "array") return items(api, found, depth);
  const required = new Set(found.required ?? []);
  const fields = Object.entries(found.properties ?? {}).map(([name, schema]) => ({
    label: () => node`<code class="name">${name}</code>`,
    schema,
    required: required.has(name),
  }));
  const others = found.additionalProperties;
  if (others && typeof others === "object" && Object.keys(others).length > 0) {
    fields.push({ label: () => word("docs.anykey", "tree-word"), schema: others });
  }
  return fields;
}

function items(api, found, depth) {
  if (found.prefixItems) {
    return found.prefixItems.map((schema, index) => ({
      label: () => node`<code class="name">${index}</code>`,
      schema,
    }));
  }
  const each = resolve(api, found.items ?? {});
  // A list shows the fields of its items at once: one level less to open.
  return each.type === "array" || !found.items ? [] : children(api, each, depth + 1);
}
