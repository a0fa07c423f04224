// The request that a route and some typed values make, and the same as a command line. Plain data.

export function keyOf(parameter) {
  return `${parameter.in} ${parameter.name}`;
}

/**
 * `values` maps keyOf(parameter) to what was typed; nothing typed is nothing sent. A part of the
 * path that is missing stands there by its name in capitals, for a person to fill in.
 */
export function buildRequest(operation, values, { mediaType = "", body = "" } = {}) {
  const query = new URLSearchParams();
  const headers = {};
  let path = operation.path;
  for (const parameter of operation.parameters) {
    const value = values.get(keyOf(parameter)) ?? "";
    if (parameter.in === "path") {
      const part = value === "" ? parameter.name.toUpperCase() : encodeURIComponent(value);
      path = path.replaceAll(`{${parameter.name}}`, part);
    } else if (value !== "" && parameter.in === "query") {
      for (const each of takesList(parameter) ? value.split(",") : [value]) {
        query.append(parameter.name, each.trim());
      }
    } else if (value !== "" && parameter.in === "header") {
      headers[parameter.name] = value;
    }
  }
  if (body !== "") headers["Content-Type"] = mediaType;
  const search = query.toString();
  return {
    method: operation.method.toUpperCase(),
    url: search === "" ? path : `${path}?${search}`,
    headers,
    body: body === "" ? undefined : body,
  };
}

export function takesList(parameter) {
  const { type, anyOf = [] } = parameter.schema ?? {};
  return type === "array" || anyOf.some((each) => each.type === "array");
}

/** A command for a POSIX shell. The token comes from the environment, so that no history keeps it. */
export function curlCommand(request, { origin, needsToken = false, streams = false }) {
  const options = [];
  if (streams) options.push("-N");
  if (request.method === "HEAD") options.push("-I");
  else if (request.method !== (request.body === undefined ? "GET" : "POST")) {
    options.push(`-X ${request.method}`);
  }
  const lines = [["curl", ...options, quoted(origin + request.url)].join(" ")];
  if (needsToken) lines.push('-H "Authorization: Bearer $HEADWAY_TOKEN"');
  for (const [name, value] of Object.entries(request.headers)) {
    lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  }
  if (request.body !== undefined) {
    // To curl, a leading @ would name a file.
    lines.push(`${request.body.startsWith("@") ? "--data-raw" : "-d"} ${quoted(request.body)}`);
  }
  return lines.join(" \\\n  ");
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
