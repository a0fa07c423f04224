// What callbacks are signed with: shown only to whoever asks for it, and made anew.

import { html } from "../../../render.js";
import { text } from "../../../text.js";
import { call } from "../../api.js";
import { openDialog } from "../../dialogs.js";
import { button } from "../../parts.js";
import { seesAll } from "../../session.js";
import { report, say } from "../../toasts.js";

export function showSecret() {
  const state = { tenant: "", secret: null, sure: false };
  return openDialog({
    title: text("channels.secret"),
    content: (close, redraw) => {
      const ask = async (name) => {
        try {
          ({ secret: state.secret } = await call(name, { tenant: state.tenant || undefined }));
          if (name === "renewCallbackSecret") say(text("channels.did.secret"));
          state.sure = false;
        } catch (error) {
          report(error);
        }
        redraw();
      };
      const type = (event) => {
        Object.assign(state, { tenant: event.target.value, secret: null, sure: false });
        redraw();
      };
      const wish = () => {
        state.sure = true;
        redraw();
      };
      return html`<div class="dialog-body">
          <p class="muted">${text("channels.secret.about")}</p>
          ${seesAll() && html`<label class="field"><span>${text("channels.tenant.of")}</span><input name="tenant" autocomplete="off" spellcheck="false" .value=${state.tenant} @input=${type} /></label>
            <p class="hint">${text("channels.secret.tenant")}</p>`}
          ${state.secret
            ? html`<pre class="code" tabindex="0"><code data-secret>${state.secret}</code></pre>`
            : html`<p><span class="row">${button({ label: text("channels.secret.show"), icon: "key", small: false, needs: "submit", run: () => ask("getCallbackSecret") })}</span></p>`}
          ${state.sure && html`<div class="notice" role="alert">${text("channels.secret.renew.about")}</div>`}
        </div>
        <div class="dialog-foot">
          ${state.secret && button({ label: text("copy.copy"), icon: "copy", small: false, needs: null, run: () => copy(state.secret) })}
          ${state.sure
            ? button({ label: text("channels.secret.renew.sure"), icon: "retry", kind: "danger", small: false, run: () => ask("renewCallbackSecret") })
            : button({ label: text("channels.secret.renew"), icon: "retry", small: false, run: wish })}
          <button type="button" @click=${() => close(true)}>${text("dialog.close")}</button>
        </div>`;
    },
  });
}

async function copy(secret) {
  await navigator.clipboard.writeText(secret);
  say(text("copy.copied"));
}
