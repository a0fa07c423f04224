"""What the templates of the pages promise. The promises are in `render.js`, beside this."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser.kit import Visits
from tests.servers import Server

SCRIPT = Path(__file__).with_name("render.js").read_text(encoding="utf-8")
PROMISES = re.findall(r"^    (\w+)\(\) \{$", SCRIPT, re.M)


def test_the_promises_are_found() -> None:
    assert len(PROMISES) == 8


@pytest.mark.parametrize("promise", PROMISES)
def test_it_is_kept(visits: Visits, site: Server, promise: str) -> None:
    page = (
        visits.blank_page()
    )  # the policy may complain of what is tried here: that is as it should
    page.goto(f"{site.url}/login")
    begin = SCRIPT[SCRIPT.index("async () =>") :]
    page.evaluate(f"async (name) => {{ const all = await ({begin})(); all[name](); }}", promise)
