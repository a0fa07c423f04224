// The command line of a route, and the form that is fetched when somebody wants to try it.

import { copyButton } from "./code.js";
import { node, replaceContent } from "./render.js";
import { examples } from "./openapi.js";
import { buildRequest, curlCommand } from "./request.js";
import { word } from "./text.js";

/** `bearer` is asked for the token at the moment of sending; it is kept nowhere else. */
export function commandAndForm(api, operation, bearer) {
  const inputs = { values: new Map(), ...firstBody(api, operation) };
  const command = node`<code></code>`;
  const showCommand = () => {
    command.textContent = curlCommand(buildRequest(operation, inputs.values, inputs), {
      origin: location.origin,
      needsToken: needsToken(operation),
      streams: streams(operation),
    });
  };
  showCommand();
  const form = node`<div></div>`;
  const details = node`<details class="try frame"><summary>${word("try.title")}</summary>${form}</details>`;
  details.addEventListener("toggle", async () => {
    if (!details.open || form.querySelector("form")) return;
    try {
      const { tryForm } = await import("./tryit.js");
      replaceContent(form, tryForm(api, operation, inputs, showCommand, bearer));
    } catch {
      replaceContent(form, node`<p class="notice bad">${word("try.unreachable")}</p>`);
    }
  });
  return node`<div class="panel frame">
      <div class="panel-head">${word("docs.curl")} ${copyButton(command)}</div>
      <pre class="code" tabindex="0">${command}</pre>
    </div>
    ${details}`;
}

/** The first media type is the one to try; where there are more, they say the same. */
function firstBody(api, operation) {
  const [first] = Object.entries(operation.body?.content ?? {});
  if (!first) return {};
  const [mediaType, media] = first;
  const [example] = examples(api, media);
  return { mediaType, body: example ? asText(example.value, mediaType) : "" };
}

/** The example as it is sent. */
export function asText(value, mediaType) {
  if (typeof value === "string") return value;
  if (mediaType === "application/x-www-form-urlencoded") {
    return new URLSearchParams(value ?? {}).toString();
  }
  return JSON.stringify(value, null, 2);
}

function needsToken({ security }) {
  return security.length > 0 && security.every((way) => Object.keys(way).length > 0);
}

function streams({ responses }) {
  return responses.some(({ content }) => content && "text/event-stream" in content);
}
