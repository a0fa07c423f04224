"""Starts the program: a script that is run by its path, never imported.

`python -I -B boot.py` looks neither at the environment, nor at the directory it stands in, nor at
the user's own packages; so the package around this file is loaded by its path, under a name of its
own that nothing installed can take.
"""

import importlib
import importlib.util
import os
import sys
from pathlib import Path

NAME = "headway_fetcher"


def load() -> None:
    here = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        NAME, here / "__init__.py", submodule_search_locations=[str(here)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    os.environ["YTDLP_NO_PLUGINS"] = "1"  # yt-dlp looks at it whenever it would load some
    load()
    sys.exit(importlib.import_module(f"{NAME}.main").main())
