"""What the servers of `bench.http` serve: a bare route, and an app with a job that does nothing.

python -m bench.http_app PORT       the bare route, for comparison
"""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI

from headway import App
from headway.api.bodies import JobBody

app = App()


@app.job()
async def nothing(number: int) -> None:
    pass


bare = FastAPI()


@bare.post("/api/jobs", status_code=202)
async def echo(body: JobBody) -> JobBody:
    """Validates the same body as Headway's route, and returns it."""
    return body


if __name__ == "__main__":
    uvicorn.run(
        bare, port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False,
        log_level="error",
    )  # fmt: skip
