// The screens, in the order in which they are offered; `key` is pressed after g. A new one is a line
// here and a directory of this name in `screens/`, with `screen.js` and `style.css`.

export const SCREENS = [
  { name: "overview", key: "o", icon: "gauge" },
  { name: "upstreams", key: "u", icon: "lanes" },
  { name: "requests", key: "r", icon: "list" },
  { name: "schedules", key: "t", icon: "clock" },
  { name: "slots", key: "s", icon: "cells" },
  { name: "channels", key: "c", icon: "spark" },
  { name: "feeds", key: "f", icon: "feed" },
  { name: "archive", key: "a", icon: "film" },
  { name: "whatif", key: "w", icon: "fork" },
  { name: "settings", key: "e", icon: "sliders" },
  { name: "audit", key: "l", icon: "scroll" },
];

export function known(name) {
  return SCREENS.some((each) => each.name === name);
}
