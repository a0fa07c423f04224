// The form that sends a route's request from the page.

import { isJson, showAnswer } from "./answer.js";
import { asText } from "./command.js";
import { node, replaceContent } from "./render.js";
import { examples, resolve, typeLabel } from "./openapi.js";
import { buildRequest, keyOf, takesList } from "./request.js";
import { TRY_WORDS } from "./text-try.js";
import { addWords, text, word } from "./text.js";

addWords(TRY_WORDS);

/** What is typed goes into `inputs`; `changed` is told of it. */
export function tryForm(api, operation, inputs, changed, bearer) {
  const answer = node`<div class="answer"></div>`;
  const stop = node`<button type="button" class="quiet" hidden>${word("try.stop")}</button>`;
  let ending = new AbortController();
  stop.addEventListener("click", () => ending.abort());
  const send = async (event) => {
    event.preventDefault();
    // A second press ends the first request: there is one answer to show.
    ending.abort();
    const mine = (ending = new AbortController());
    stop.hidden = false;
    const request = buildRequest(operation, inputs.values, inputs);
    await showAnswer(answer, request, { bearer: bearer(), signal: mine.signal });
    if (mine === ending) stop.hidden = true;
  };
  // A browser does not let a page set cookies on a request, so those have no field.
  const sendable = operation.parameters.filter((parameter) => parameter.in !== "cookie");
  return node`<form @submit=${send}>
    ${sendable.map((parameter) => parameterField(api, parameter, inputs, changed))}
    ${operation.body && bodyFields(api, operation, inputs, changed)}
    <div class="actions"><button type="submit">${word("try.send")}</button>${stop}</div>
    ${answer}
  </form>`;
}

function parameterField(api, parameter, inputs, changed) {
  const change = (event) => {
    inputs.values.set(keyOf(parameter), event.target.value);
    changed();
  };
  return node`<label class="field">
    <span><code>${parameter.name}</code> <span class="muted">${parameter.in}</span>
      ${parameter.required && word("docs.required", "mark required")}</span>
    ${inputFor(api, parameter, change)}
  </label>`;
}

function inputFor(api, parameter, change) {
  const schema = resolve(api, parameter.schema);
  const required = parameter.required === true;
  const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum?.map(String);
  if (choices) {
    return node`<select required=${required} @change=${change}>
      <option value="" data-t="try.unset">${text("try.unset")}</option>
      ${choices.map((choice) => node`<option>${choice}</option>`)}
    </select>`;
  }
  const list = takesList(parameter);
  const hint = schema.default ?? typeLabel(api, { ...schema, nullable: false });
  return node`<input
    autocomplete="off" autocapitalize="none" spellcheck="false" required=${required}
    placeholder=${list ? text("try.list") : hint} data-t-placeholder=${list && "try.list"}
    @input=${change}
  />`;
}

function bodyFields(api, operation, inputs, changed) {
  const area = node`<textarea rows="8" spellcheck="false" .value=${inputs.body ?? ""}></textarea>`;
  const warning = node`<p class="muted" role="status"></p>`;
  const change = () => {
    inputs.body = area.value;
    const wrong = area.value !== "" && /json/.test(inputs.mediaType) && !isJson(area.value);
    replaceContent(warning, wrong && word("try.notjson"));
    changed();
  };
  area.addEventListener("input", change);
  const put = (value) => {
    area.value = value;
    change();
  };
  return [
    exampleField(api, operation, inputs, put),
    node`<label class="field">
      <span>${word("try.body")} <span class="muted">${inputs.mediaType}</span></span>${area}
    </label>`,
    warning,
  ];
}

function exampleField(api, operation, inputs, put) {
  const given = examples(api, operation.body.content[inputs.mediaType] ?? {});
  if (given.length < 2) return null;
  const change = (event) => put(asText(given[event.target.selectedIndex].value, inputs.mediaType));
  return node`<label class="field">${word("docs.example")}
    <select @change=${change}>${given.map(({ name }) => node`<option>${name}</option>`)}</select>
  </label>`;
}
