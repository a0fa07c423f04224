"""The app whose jobs the demo runs: `headway serve --app headway.demo.jobs:app`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from functools import cache
from typing import Any

import httpx2

from headway import App, check_status, job
from headway.demo.sites import API, DOWNLOADS, MAPS, VIDEOS

app = App()
app.lane("interactive", limit=8)
app.lane("bulk", limit=12)
app.lane("nightly", limit=3)
app.tool("encoder", limit=6)
app.upstream(VIDEOS, limit=4, every="0.4s", ban="30s")
app.upstream(DOWNLOADS, limit=8, per_second=2, burst=8)
app.upstream(API, limit=4, every="0.3s", breaker={"share": 0.7, "open_for": "12s"})
app.upstream(MAPS, limit=2, tenant={"limit": 1})
app.upstream("files.example", limit=12)
app.upstream("mirror.example", limit=3)

BLOCK_MB, STEP_MB = 20, 10


@cache
def _client() -> httpx2.AsyncClient:
    """One for all jobs: they run on one loop."""
    return httpx2.AsyncClient(timeout=30.0, trust_env=False)


async def _get(url: str) -> Any:
    answer = await _client().get(url)
    check_status(answer.status_code, answer.headers)  # 412 and 429 close the upstream for all
    return answer.json()


@app.job(type="fetch-video", retries=3, retry_delay="3s", tools=("encoder",))
async def fetch_video(url: str, title: str, parts: int, part_s: float) -> dict[str, Any]:
    """Part by part; after a pushback it goes on where it was."""
    begin = job.saved or 0
    if begin:
        job.log(f"going on with part {begin + 1} of {parts}")
    for part in range(begin, parts):
        await _get(f"{url}/{part}")
        job.checkpoint(part + 1)
        job.progress(part + 1, parts, title)
        await asyncio.sleep(part_s)
    job.log(f"{title}: {parts} parts")
    return {"title": title, "parts": parts}


@app.job(type="mirror-file", retries=3, retry_delay="3s")
async def mirror_file(url: str, name: str, size_mb: int, mb_per_s: float) -> dict[str, Any]:
    """Block by block, each of which is a request."""
    done = job.saved or 0
    job.log(f"{name}: {size_mb} MB, from {done} MB on")
    while done < size_mb:
        if done % BLOCK_MB == 0:
            await _get(f"{url}?from={done}")
            job.checkpoint(done)
        await asyncio.sleep(STEP_MB / mb_per_s)
        done = min(size_mb, done + STEP_MB)
        job.progress(done, size_mb, f"{name}, MB")
    return {"name": name, "bytes": size_mb * 1_000_000}


@app.job(type="sync-order", retries=2, retry_delay="2s")
async def sync_order(url: str, order: int, think_s: float = 1.0) -> dict[str, Any]:
    """Some fail for good, and some only once."""
    job.log(f"attempt {job.attempt} for order {order}")
    await asyncio.sleep(think_s)
    answer = await _get(url)
    job.log(f"order {order}: {answer['total']} items")
    return {"order": order, "items": answer["total"]}


@app.job(type="render-map", retries=2, retry_delay="5s")
async def render_map(url: str, region: str, tiles: int) -> dict[str, Any]:
    for tile in range(tiles):
        await _get(f"{url}/{tile}")
        job.progress(tile + 1, tiles, f"{region}, tiles")
    return {"region": region, "tiles": tiles}


@app.job(type="report", retries=1, retry_delay="5s")
async def report(name: str, pages: int = 6) -> dict[str, Any]:
    """Calls nobody."""
    for page in range(pages):
        await asyncio.sleep(0.8)
        job.progress(page + 1, pages, f"{name}, pages")
    return {"report": name, "pages": pages}


# ---------------------------------------------------------------------- the end


def _end_with_the_demo(_brain: object) -> None:
    """A demo that is killed closes our standard input, and can do nothing else."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):  # not the file object, whose lock outlives us
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True, name="demo-end").start()


app.preparing.append(_end_with_the_demo)
