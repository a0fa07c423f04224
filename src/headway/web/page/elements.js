// Leaves that keep themselves up to date: times that tick.

import { followLanguage, text } from "../text.js";
import { serverNow, tick } from "./clock.js";
import { clockTime, exactTime, relative } from "./format.js";

/** Shows what `words()` says of the time in `at`, again every second. */
export class Ticking extends HTMLElement {
  static observedAttributes = ["at"];

  connectedCallback() {
    this.stop = tick(() => this.show());
    this.describe();
  }

  disconnectedCallback() {
    this.stop();
  }

  attributeChangedCallback() {
    this.at = Date.parse(this.getAttribute("at"));
    if (this.isConnected) this.describe();
  }

  describe() {
    if (this.#isKnown) this.title = exactTime(this.at);
    else this.removeAttribute("title");
    this.show();
  }

  get #isKnown() {
    return Number.isFinite(this.at);
  }

  show() {
    const shown = this.#isKnown ? this.words() : "–";
    if (this.textContent !== shown) this.textContent = shown;
  }
}

class Time extends Ticking {
  words() {
    return relative(this.at);
  }
}

/** Down to a moment; when it is over, it says so instead of counting on. */
class Countdown extends Ticking {
  words() {
    const left = (this.at - serverNow()) / 1000;
    return left > 0 ? clockTime(Math.ceil(left)) : text("time.now");
  }
}

/** Up from a moment: how long something has been going on. */
class Elapsed extends Ticking {
  words() {
    return clockTime(Math.max(0, (serverNow() - this.at) / 1000));
  }
}

customElements.define("hw-time", Time);
customElements.define("hw-countdown", Countdown);
customElements.define("hw-elapsed", Elapsed);

followLanguage(() => {
  for (const each of document.querySelectorAll("hw-time, hw-countdown, hw-elapsed")) each.describe();
});
