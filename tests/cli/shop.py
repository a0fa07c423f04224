"""An app with a few jobs, for servers that tests start."""

from __future__ import annotations

import threading
from pathlib import Path

from headway import App, job

app = App()
app.lane("narrow", limit=1)
app.upstream("slow.example", limit=1)


@app.job(keep_result="1h")
def greet(name: str) -> str:
    job.log(f"greeting {name}")
    return f"hello {name}"


@app.job(retries=0)
def fail(why: str = "no route to host") -> None:
    raise RuntimeError(why)


@app.job()
def hold(file: str) -> None:
    """Until there is such a file."""
    job.progress(1, 4, note="holding")
    between = threading.Event()
    while not Path(file).exists():
        job.check()
        between.wait(0.01)
