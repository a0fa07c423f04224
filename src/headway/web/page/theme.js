// Light, dark, or as the system has it; remembered.

const REMEMBERED_AS = "headway.theme";
const THEMES = ["auto", "light", "dark"];

let current = "auto";
let told = () => {};

export function theme() {
  return current;
}

export function startTheme(changed) {
  told = changed;
  try {
    const chosen = localStorage.getItem(REMEMBERED_AS);
    if (THEMES.includes(chosen)) current = chosen;
  } catch {
    // Storage may be forbidden; then it is as the system has it.
  }
  document.documentElement.dataset.theme = current;
}

export function nextTheme() {
  chooseTheme(THEMES[(THEMES.indexOf(current) + 1) % THEMES.length]);
}

export function chooseTheme(chosen) {
  current = chosen;
  document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem(REMEMBERED_AS, chosen);
  } catch {
    // It lasts as long as the page.
  }
  told();
}
