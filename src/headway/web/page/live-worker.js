// One connection for all pages of this browser: a browser has only some to a server.

import { Stream } from "./stream.js";

const ports = new Set();
const stream = new Stream((news) => {
  for (const port of ports) port.postMessage(news);
});

addEventListener("connect", ({ ports: [port] }) => {
  port.addEventListener("message", ({ data }) => {
    if (data === "leave") ports.delete(port);
    else {
      ports.add(port);
      port.postMessage({ state: stream.state });
    }
    if (ports.size === 0) stream.close();
    else stream.open();
  });
  port.start();
});
