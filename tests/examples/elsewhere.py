"""Run an example on another store than the one that it names: `elsewhere.py URL EXAMPLE`."""

from __future__ import annotations

import runpy
import sys
from typing import Any

from headway import App
from headway.testing import World

url, example = sys.argv[1:]
begin = App.__init__


def begin_elsewhere(app: App, _url: str = "", **options: Any) -> None:
    begin(app, url, **options)


App.__init__ = begin_elsewhere  # type: ignore[assignment,method-assign]
World._new_store = lambda _: url  # type: ignore[method-assign]
runpy.run_path(example, run_name="__main__")
