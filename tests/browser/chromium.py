"""Where the system's Chromium is. `python -m tests.browser.chromium` installs one where it may.

Nothing is ever fetched from anywhere but the system's own packages. Without a Chromium the tests of
the pages are skipped, and fail where `CI` is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "there is no Chromium: install the package chromium, or name one with HEADWAY_CHROMIUM=/path"
)
CHINESE = "fonts-noto-cjk"


def found() -> str | None:
    named = os.environ.get("HEADWAY_CHROMIUM")
    if named:
        return shutil.which(named)
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def must_be_there() -> bool:
    """Nobody looks at what was skipped where nobody looks at all."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def draws_chinese() -> bool:
    """Without such a font the screenshots show boxes for letters."""
    listing = shutil.which("fc-list")
    if listing is None:
        return False
    done = subprocess.run([listing, ":lang=zh"], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip())


def as_root() -> list[str] | None:
    """What to put before a command that only root may run; nothing where nobody may."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and _ends_well(["sudo", "-n", "true"]):
        return ["sudo", "-n"]
    return None


def _ends_well(command: list[str]) -> bool:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )  # fmt: skip
    return done.returncode == 0


def install(packages: list[str]) -> bool:
    before = as_root()
    if before is None or not shutil.which("apt-get"):
        return False
    print(f"Installing {' and '.join(packages)} with apt-get", flush=True)
    apt = [*before, "apt-get"]
    take = [*apt, "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    # A machine that was never updated knows of no package at all.
    return _ends_well(take) or (_ends_well([*apt, "update", "--quiet"]) and _ends_well(take))


def main(words: list[str]) -> int:
    """With `--fonts` also what Chinese is drawn with. Whatever is missing, the caller goes on."""
    named = "HEADWAY_CHROMIUM" in os.environ  # another one would not be looked at
    if not found() and (named or not install(["chromium"]) or not found()):
        then = "fail" if must_be_there() else "are skipped"
        print(f"{MISSING}; the tests of the pages {then}", file=sys.stderr)
    if "--fonts" in words and not draws_chinese() and not install([CHINESE]):
        print(f"there is no Chinese font: install {CHINESE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
