"""Faults of a page that shut somebody out: no names, no contrast, no focus to be seen.

What `audit.js` finds is what can be computed from a page as it stands. Focus is looked at with the
Tab key, as somebody without a mouse would come by.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

SCRIPT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
PHONE_PX = 500  # narrower windows are held by fingers
STEPS = 12  # of the Tab key: what comes later looks the same

# What has the focus, and how it differs from the same element without it.
FOCUSED = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  if (!element || element === document.body || element === document.documentElement) return null;
  const look = (each) => {
    const style = getComputedStyle(each);
    return [style.outlineStyle === "none" || parseFloat(style.outlineWidth) === 0 ? "" :
      `${style.outlineStyle} ${style.outlineWidth} ${style.outlineColor}`,
      style.boxShadow, style.borderColor, style.backgroundColor,
      style.textDecorationLine].join("|");
  };
  const around = element.parentElement ?? element;
  const focused = [look(element), look(around)].join("//");
  const where = `<${element.localName}${element.id ? "#" + element.id : ""}` +
    `${[...element.classList].map((name) => "." + name).join("")}>`;
  const begin = scrollY;
  element.blur();
  const plain = [look(element), look(around)].join("//");
  element.focus({ preventScroll: true, focusVisible: true });
  scrollTo({ top: begin, behavior: "instant" });
  return { where, seen: focused !== plain };
}"""


def audit(
    page: Page, *, navigation: bool = True, live: bool = True, steps: int = STEPS
) -> list[str]:
    """What is wrong, in words; nothing if all is well. `navigation` and `live` say whether a page
    must have a landmark to go elsewhere, and a region whose changes are read out.
    """
    size = page.viewport_size or {"width": 1280, "height": 800}
    options = {"phone": size["width"] < PHONE_PX, "navigation": navigation, "live": live}
    settled(page)
    found: list[str] = page.evaluate(SCRIPT, options)
    return found + unseen_focus(page, steps)


def settled(page: Page) -> None:
    """Nothing is on its way from here to there: colours in between are nobody's choice. A sheet
    that is made by a script is the one kind that the pages' policy lets in.
    """
    page.evaluate(
        """() => {
          const sheet = new CSSStyleSheet();
          sheet.replaceSync("*, ::before, ::after { transition: none !important }");
          document.adoptedStyleSheets.push(sheet);
          for (const each of document.getAnimations()) {
            if (each.effect?.getComputedTiming().endTime !== Infinity) each.finish();
          }
        }"""
    )


def unseen_focus(page: Page, steps: int = STEPS) -> list[str]:
    """Where somebody who presses Tab cannot see where they are."""
    faults = []
    for _ in range(steps):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop is None:
            break
        if not stop["seen"]:
            faults.append(f"{stop['where']}: nobody sees that it has the focus")
    return faults
