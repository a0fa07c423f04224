// The address of a podcast of what a subscription has: shown when somebody asks for it, copied,
// changed, taken back.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { openDialog } from "../../dialogs.js";
import { button } from "../../parts.js";
import { say } from "../../toasts.js";

export function openPodcast({ id, name }) {
  let url = null;
  let note = null;
  return openDialog({
    title: text("archive.podcast.title", { name }),
    content: (close, redraw) => {
      const make = async (rotate) => {
        ({ url } = await call("makePodcast", { id }, { body: { rotate } }));
        note = rotate ? text("archive.podcast.rotate.said") : null;
        redraw();
      };
      const takeBack = async () => {
        await call("removePodcast", { id });
        close(null);
        say(text("archive.podcast.off.said"));
      };
      const copy = async () => {
        await navigator.clipboard.writeText(url);
        note = text("copy.copied");
        redraw();
      };
      const act = (label, run, more = {}) => button({ label, run, needs: "submit", small: false, ...more });
      return html`<div class="dialog-body">
          <p class="muted">${text("archive.podcast.about")}</p>
          ${url && html`<label class="field"><span>${text("archive.podcast.url")}</span>
            <input type="url" readonly .value=${url} @focus=${(event) => event.target.select()} /></label>`}
          <p class="muted archive-small" role="status">${note}</p>
        </div>
        <div class="dialog-foot">${url
          ? html`${act(text("archive.podcast.off"), takeBack, { kind: "quiet danger" })}
              ${act(text("archive.podcast.rotate"), () => make(true))}
              ${act(text("copy.copy"), copy, { icon: "copy", kind: "", needs: null })}`
          : act(text("archive.podcast.make"), () => make(false), { kind: "" })}</div>`;
    },
  });
}
