"""What the workers of a campaign run: each attempt is some calls of an upstream that writes them
down.
"""

from __future__ import annotations

import asyncio
import os

from headway import App, RetryPolicy, job

PATIENT = RetryPolicy(timeout_s=120, delay_s=0.05, max_lost=1_000)
POOL = "pool"  # what the calls share

app = App()


@app.job(policy=PATIENT, tools=(POOL,))
async def visit(name: str, port: int, calls: int, hold_ms: int) -> int:  # noqa: ARG001
    for _ in range(calls):
        await call(port, f"/{job.id}/{job.fence}/{os.getpid()}/{hold_ms}")
    return job.fence


async def call(port: int, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: upstream\r\n\r\n".encode())
        answer = await reader.read()
        if b"200 OK" not in answer:
            raise ConnectionError("the upstream has hung up")
    finally:
        writer.close()
