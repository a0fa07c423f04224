// `<hw-log .lines=${…}>`: lines with the colour of their level. It follows what comes, but only while
// the last line is in view: who reads further up is left there.

import { each, html, render } from "../../../render.js";
import { text } from "../../../text.js";
import { exactTime, timeOfDay } from "../../format.js";

const MOST = 500;
const NEAR_PX = 24;

class Log extends HTMLElement {
  #count = -1;
  #last = "";

  connectedCallback() {
    this.tabIndex = 0;
    this.setAttribute("role", "log");
  }

  set lines(lines) {
    const last = lines.at(-1)?.at ?? "";
    if (lines.length === this.#count && last === this.#last) return;
    const atEnd = this.#count < 0 || this.scrollHeight - this.scrollTop - this.clientHeight < NEAR_PX;
    this.#count = lines.length;
    this.#last = last;
    const from = Math.max(0, lines.length - MOST);
    const shown = lines.slice(from).map((line, index) => ({ ...line, number: from + index }));
    render(html`${from > 0 && html`<p class="log-earlier">${text("requests.logs.earlier", { n: from })}</p>`}
      <ol>${each(shown, ({ number }) => number, ({ at, level, line }) => html`<li class="log-${level.toLowerCase()}"><time title=${exactTime(Date.parse(at))}>${timeOfDay(Date.parse(at), true)}</time><b>${level.toLowerCase()}</b><span>${line}</span></li>`)}</ol>`, this);
    if (atEnd) requestAnimationFrame(() => (this.scrollTop = this.scrollHeight));
  }
}

customElements.define("hw-log", Log);
