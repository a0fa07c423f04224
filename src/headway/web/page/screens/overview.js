import { html } from "../../render.js";
export const screen = { words: {}, ask: () => ({}), show: () => html`<p>soon</p>` };
