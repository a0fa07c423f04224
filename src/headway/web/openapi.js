// Reads an OpenAPI 3.1 document. No nodes here: what goes in and comes out is plain data.

const METHODS = ["get", "post", "put", "patch", "delete", "head", "options"];
const MAX_DEPTH = 5;
const BOUNDS = { minimum: "≥", exclusiveMinimum: ">", maximum: "≤", exclusiveMaximum: "<" };

/** The routes by tag, in the document's order: [{name, description, operations}]. */
export function groups(api) {
  const byTag = new Map();
  for (const tag of api.tags ?? []) {
    byTag.set(tag.name, { name: tag.name, description: tag.description, operations: [] });
  }
  for (const operation of operations(api)) {
    const name = operation.tags[0] ?? "";
    if (!byTag.has(name)) byTag.set(name, { name, description: "", operations: [] });
    byTag.get(name).operations.push(operation);
  }
  return [...byTag.values()].filter((group) => group.operations.length > 0);
}

function operations(api) {
  return Object.entries(api.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) =>
      readOperation(api, path, method, item[method]),
    ),
  );
}

function readOperation(api, path, method, raw) {
  const body = deref(api, raw.requestBody);
  return {
    id: raw.operationId ?? `${method}${path.replace(/[^A-Za-z0-9]+/g, "-")}`,
    method,
    path,
    tags: raw.tags ?? [],
    summary: raw.summary ?? path,
    description: raw.description ?? "",
    deprecated: raw.deprecated === true,
    security: raw.security ?? api.security ?? [],
    parameters: (raw.parameters ?? []).map((each) => deref(api, each)),
    body: body && { ...body, content: body.content ?? {} },
    responses: Object.entries(raw.responses ?? {}).map(([status, response]) => ({
      status,
      ...deref(api, response),
    })),
  };
}

/** What a `$ref` within the document leads to; anything else as it is. */
function deref(api, node) {
  const seen = new Set();
  let found = node;
  while (found && typeof found.$ref === "string" && !seen.has(found.$ref)) {
    seen.add(found.$ref);
    const { $ref, ...beside } = found;
    found = { ...follow(api, $ref), ...beside };
  }
  return found;
}

function follow(api, reference) {
  if (!reference.startsWith("#/")) return {};
  const steps = reference.slice(2).split("/");
  return steps
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((node, name) => node?.[name], api) ?? {};
}

/** The schema without references, with `allOf` merged in and `null` taken out of its alternatives. */
export function resolve(api, schema, depth = 0) {
  if (typeof schema !== "object" || schema === null) return {};
  let found = { ...deref(api, schema), name: nameOf(schema) };
  if (found.allOf && depth < MAX_DEPTH) {
    const { allOf, ...beside } = found;
    found = [...allOf.map((part) => resolve(api, part, depth + 1)), beside].reduce(merged, {});
    // More than one part makes another type than any of them.
    if (allOf.length > 1) found.name = beside.name;
  }
  const alternatives = found.anyOf ?? found.oneOf;
  if (alternatives) {
    const { anyOf, oneOf, ...beside } = found;
    const real = alternatives.filter((each) => each.type !== "null");
    const nullable = found.nullable || real.length < alternatives.length;
    if (real.length !== 1 || depth > MAX_DEPTH) return { ...beside, alternatives: real, nullable };
    const only = resolve(api, real[0], depth + 1);
    return { ...only, ...beside, name: only.name, nullable: nullable || only.nullable };
  }
  if (Array.isArray(found.type)) {
    const real = found.type.filter((each) => each !== "null");
    const nullable = real.length < found.type.length;
    found = { ...found, type: real.length === 1 ? real[0] : real, nullable };
  }
  return found;
}

function merged(left, right) {
  return {
    ...left,
    ...right,
    name: right.name ?? left.name,
    ...(left.properties || right.properties
      ? { properties: { ...left.properties, ...right.properties } }
      : {}),
    required: [...(left.required ?? []), ...(right.required ?? [])],
  };
}

function nameOf(schema) {
  return typeof schema.$ref === "string" ? schema.$ref.split("/").pop() : undefined;
}

/** The type in a few words: `integer`, `[Job]`, `string | null`. */
export function typeLabel(api, schema, depth = 0) {
  const found = resolve(api, schema);
  const label = bareLabel(api, found, depth);
  return found.nullable ? `${label} | null` : label;
}

function bareLabel(api, found, depth) {
  if (found.name) return found.name;
  if (found.alternatives) {
    const labels = found.alternatives.map((each) =>
      depth < MAX_DEPTH ? typeLabel(api, each, depth + 1) : "…",
    );
    return [...new Set(labels)].join(" | ") || "any";
  }
  if (found.type === "array") {
    if (found.prefixItems) return "tuple";
    return found.items && depth < MAX_DEPTH
      ? `[${typeLabel(api, found.items, depth + 1)}]`
      : "array";
  }
  if (Array.isArray(found.type)) return found.type.join(" | ");
  if (found.type === undefined && found.const !== undefined) return typeof found.const;
  if (found.type === undefined && found.properties) return "object";
  return (found.type ?? "any") + (found.format ? ` · ${found.format}` : "");
}

/** The limits of a value, as short texts: `≥ 1`, `≤ 200`, `length 1–40`. */
export function limits(schema) {
  const bounds = Object.entries(BOUNDS).filter(([key]) => schema[key] !== undefined);
  return [
    ...bounds.map(([key, sign]) => `${sign} ${schema[key]}`),
    ...range("length", schema.minLength, schema.maxLength),
    ...range("items", schema.minItems, schema.maxItems),
    ...(schema.pattern === undefined ? [] : [schema.pattern]),
  ];
}

function range(what, least, most) {
  if (least === undefined && most === undefined) return [];
  return [`${what} ${least ?? 0}–${most ?? "∞"}`];
}

/** The examples that a media type gives, or the one that its schema implies: [{name, value}]. */
export function examples(api, media) {
  if (media.example !== undefined) return [{ name: "", value: media.example }];
  const named = Object.entries(media.examples ?? {}).map(([name, example]) => ({
    name: deref(api, example).summary ?? name,
    value: deref(api, example).value,
  }));
  if (named.length > 0) return named;
  return media.schema ? [{ name: "", value: exampleOf(api, media.schema) }] : [];
}

/** A value that fits the schema: its own example or default, or else made from its parts. */
function exampleOf(api, schema, depth = 0) {
  const found = resolve(api, schema);
  if (found.example !== undefined) return found.example;
  if (Array.isArray(found.examples) && found.examples.length > 0) return found.examples[0];
  if (found.const !== undefined) return found.const;
  if (found.default !== undefined && found.default !== null) return found.default;
  if (found.enum) return found.enum[0];
  if (depth >= MAX_DEPTH) return null;
  if (found.alternatives) {
    return found.alternatives.length ? exampleOf(api, found.alternatives[0], depth + 1) : null;
  }
  return exampleOfType(api, found, depth);
}

function exampleOfType(api, found, depth) {
  const type = Array.isArray(found.type) ? found.type[0] : found.type;
  if (found.properties || type === "object") {
    const required = new Set(found.required ?? []);
    const shown = Object.entries(found.properties ?? {}).filter(([name, property]) => {
      const { examples: given, example } = resolve(api, property);
      return required.has(name) || given || example !== undefined;
    });
    return Object.fromEntries(
      shown.map(([name, property]) => [name, exampleOf(api, property, depth + 1)]),
    );
  }
  if (type === "array") {
    const each = found.items && exampleOf(api, found.items, depth + 1);
    return each === undefined || each === null ? [] : [each];
  }
  if (type === "integer" || type === "number") return found.minimum ?? 0;
  if (type === "boolean") return false;
  return type === "string" ? "string" : null;
}
