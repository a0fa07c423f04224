// The login page works without this; here it speaks Chinese, says what failed and shows the token.

import { LOGIN_WORDS } from "./text-login.js";
import { offerLanguages, text } from "./text.js";

const field = document.getElementById("page-token");
const show = document.getElementById("page-show");

offerLanguages(LOGIN_WORDS);

if (new URLSearchParams(location.search).has("failed")) {
  document.getElementById("page-failed").hidden = false;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", "page-failed");
  field.focus();
}

show.hidden = false;
show.addEventListener("click", () => {
  const shown = field.type === "password";
  field.type = shown ? "text" : "password";
  show.setAttribute("aria-pressed", String(shown));
  show.dataset.t = shown ? "login.hide" : "login.show";
  show.textContent = text(show.dataset.t);
});

// Whoever came from a place inside of the page is led back to it.
field.form.action = `/login${location.hash}`;

// A pasted token often brings a space or a line end along.
field.form.addEventListener("submit", () => {
  field.value = field.value.trim();
  field.type = "password";
});
