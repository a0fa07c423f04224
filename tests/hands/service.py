"""A service as people write it: `python service.py URL DIRECTORY`."""

import os
import sys
import threading
from pathlib import Path

from headway import App, job

app = App(sys.argv[1])
directory = Path(sys.argv[2])


@app.job(timeout=600)
def wait() -> None:
    """Until there is a file called `free`."""
    (directory / "started").write_text(str(os.getpid()))
    between = threading.Event()
    while not (directory / "free").exists():
        between.wait(0.01)


@app.job(timeout=600)
def work() -> None:
    """A program that ignores requests to end, and its child."""
    text = (
        f"trap '' TERM; sleep 1000 & echo $! > {directory}/grandchild; echo $$ > "
        f"{directory}/program; while [ ! -e {directory}/free ]; do sleep 0.02; done"
    )
    job.run(["sh", "-c", text])


def send_nothing(_: object) -> None:
    raise RuntimeError("the store makes no sense")


if __name__ == "__main__":
    wait.enqueue()
    work.enqueue()
    if sys.argv[3:] == ["break"]:
        app.store.send = send_nothing  # type: ignore[method-assign]
    app.run(drain=60)
