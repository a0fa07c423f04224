"""What the Celery workers of these tests import: jobs of Headway, run by Celery."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time

from celery import Celery

import headway.celery
from headway import App, Pushback, RetryPolicy, job
from headway.celery import starting
from headway.celery.claiming import Claim, Claims
from headway.lease_clock import lease_clock

broker = os.environ["BROKER"]
celery = Celery("fleet", broker=broker)
celery.conf.broker_connection_retry_on_startup = True
celery.conf.worker_hijack_root_logger = True
app = App(os.environ["SERVER"], executor="celery")
app.upstream("*.example", every=f"{os.environ.get('PACE_S', '0.1')}s")
PATIENT = RetryPolicy(max_lost=1_000)

mine = threading.local()
wait_for_start = starting.wait_for_start


def wait_and_tell(claims: Claims, claim: Claim) -> None:
    wait_for_start(claims, claim)
    mine.latest = 0.0 if claim.start is None else claim.start.latest


starting.wait_for_start = wait_and_tell


@app.job(policy=PATIENT)
def visit(domain: str, number: int) -> int:
    began, latest = time.time(), getattr(mine, "latest", 0.0)
    held_up_s = max(lease_clock() - latest, 0.0) if latest else 0.0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.settimeout(30)
        line.connect(("127.0.0.1", int(os.environ["UPSTREAM"])))
        line.send(f"{domain} {number} {began!r} {held_up_s!r}".encode())
        line.recv(10)
    return number


@app.job()
async def double(number: int) -> int:
    await asyncio.sleep(0)
    job.progress(1, 2, "half of it")
    job.log("doubling")
    return 2 * number


@app.job(retries=0)
def fail() -> None:
    raise ValueError("on purpose")


@app.job()
def pushed() -> str:
    if job.saved is None:
        job.checkpoint("seen")
        raise Pushback(1)
    return "after all"


@app.job()
def endless() -> None:
    job.progress(1)
    while True:
        job.check()
        threading.Event().wait(0.01)


headway.celery.serve(celery, app, queue=os.environ.get("QUEUE", "headway"))
