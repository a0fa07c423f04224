"""Looking on while lists are read and videos come: how far, how fast, and what waits for what.

All of it goes on in the server, whoever looks on or leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from headway.cli import archive_layouts as layouts
from headway.cli.archive_names import SUBSCRIPTIONS, all_subscriptions
from headway.cli.asking import Call
from headway.cli.client import Client, Refused
from headway.cli.feeds import reached
from headway.cli.layouts import progress_words, start_words
from headway.cli.progressing import progress_bar

JOBS = "/api/jobs"
STEP_S, LONG_S = 0.5, 30.0  # how long a server is asked to wait, with somebody looking on or not
LOOK_S, RARELY_S = 0.5, 2.0  # between two looks at one subscription, and at many
SETTLED_S = 3.0  # in which what was found is put into line, or it is not
FRONT = 20  # jobs of a line whose first one is looked for
INTERRUPTED = 130  # as shells say it

Tell = Callable[[str, float, float | None], None]
Rows = list[dict[str, Any]]


# ---------------------------------------------------------------------- subscriptions


def watch_downloads(call: Call, id: int | None, *, listing_only: bool = False) -> None:
    """Until nothing is pending, or with `listing_only` until the list is read. None: all of them.
    Fails (1) if a list could not be read, or a download failed meanwhile.
    """
    client = reached(call)
    before = _look(client, id)
    try:
        found = _followed(client, id, before, listing_only)
    except KeyboardInterrupt:
        name = "headway archive" if id is None else f"headway archive show {id}"
        call.out.aside(f"it goes on; `{name}` says how far it is")
        sys.exit(INTERRUPTED)
    if id is not None and found:
        call.out.show(found[0], layouts.subscription_facts)
    else:
        width = call.out.console.width
        call.out.show(
            {"items": found, "total": len(found)},
            lambda answer: layouts.subscription_table(answer["items"], width),
        )
    if _has_failed(before, found):
        sys.exit(1)


def _has_failed(before: Rows, after: Rows) -> bool:
    failed = {each["id"]: each["counts"]["failed"] for each in before}
    return any(
        each["error"] or each["counts"]["failed"] > failed.get(each["id"], 0) for each in after
    )


def _look(client: Client, id: int | None) -> Rows:
    """As they are now; one that was removed meanwhile is not among them."""
    if id is None:
        return all_subscriptions(client)
    try:
        return [client.get(f"{SUBSCRIPTIONS}/{id}")]
    except Refused as error:
        if error.status != 404:
            raise
        return []


def _followed(client: Client, id: int | None, found: Rows, listing_only: bool) -> Rows:
    is_awaited = is_listing if listing_only else is_busy
    quiet_since: float | None = None
    with progress_bar() as tell:
        while True:
            if any(map(is_awaited, found)):
                quiet_since = None
            elif listing_only or not any(each["counts"]["pending"] for each in found):
                return found
            else:  # what was found is about to be put into line, or nobody wants it
                quiet_since = quiet_since or monotonic()
                if monotonic() - quiet_since >= SETTLED_S:
                    return found
            if tell is not None:
                tell(_told(client, found), *_far(found))
            sleep(RARELY_S if id is None else LOOK_S)
            found = _look(client, id)


def is_listing(each: dict[str, Any]) -> bool:
    return each["busy"]["listing"] is not None


def is_busy(each: dict[str, Any]) -> bool:
    return is_listing(each) or each["busy"]["downloads_open"] > 0


def _far(found: Rows) -> tuple[float, float | None]:
    done = sum(each["counts"]["on_disk"] for each in found)
    left = sum(each["counts"]["pending"] for each in found)
    return done, (done + left) or None


# ---------------------------------------------------------------------- in words


def _told(client: Client, found: Rows) -> str:
    words = watched_words(found)
    busy = [each["id"] for each in found if is_busy(each)]
    said = story(client, busy[0] if len(busy) == 1 else None) if busy else ""
    return f"{words}; {said}" if said else words


def watched_words(found: Rows) -> str:
    """`12 of 40 on disk, 1 failed`."""
    counts = [each["counts"] for each in found]
    total = {name: sum(each[name] for each in counts) for name in ("on_disk", "pending", "failed")}
    words = f"{total['on_disk']:,} of {total['on_disk'] + total['pending']:,} on disk"
    return f"{words}, {total['failed']:,} failed" if total["failed"] else words


def story(client: Client, subscription: int | None) -> str:
    """What runs and how fast or, if nothing does, why the first in line waits."""
    key = "" if subscription is None else f"key:subscription:{subscription} "
    running = client.get(JOBS, q=f"{key}status:running", size=FRONT)["items"]
    running = [job for job in running if job["type"] in ("download", "list_fetch")]
    if running:
        return job_words(running[0])
    waiting = _front(client, key, "list_fetch") or _front(client, key, "download")
    return job_words(waiting) if waiting else ""


def _front(client: Client, key: str, type: str) -> dict[str, Any] | None:
    """The list of jobs begins with the newest, and a line with the oldest."""
    query = f"{key}type:{type} status:open"
    total = client.get(JOBS, q=query, size=1)["total"]
    if not total:
        return None
    last = -(-total // FRONT)
    jobs = client.get(JOBS, q=query, size=FRONT, page=last)["items"]
    return min(jobs, key=lambda job: (job["position"] or total, job["id"]), default=None)


def job_words(job: dict[str, Any]) -> str:
    if job["status"] == "running":
        reads = job["type"] in ("list_fetch", "parse", "expected_total")
        return progress_words(job) or ("the site is asked" if reads else "a download begins")
    why = (job["wait_reason"] or "it waits").removeprefix("waits ")
    when = start_words(job)  # first, since the end of a line may be cut
    return f"{when}: {why}" if when.startswith("in ") else why


# ---------------------------------------------------------------------- one job


def watch_job(call: Call, id: int) -> dict[str, Any]:
    """The job when it has ended."""
    client = reached(call)
    try:
        with progress_bar() as tell:
            while True:
                wait_s = LONG_S if tell is None else STEP_S
                job: dict[str, Any] = client.get(f"{JOBS}/{id}", wait_s=wait_s)
                if job["finished_at"] is not None:
                    return job
                if tell is not None:
                    progress = job["progress"] or {}
                    tell(job_words(job), progress.get("done") or 0, progress.get("total"))
    except KeyboardInterrupt:
        call.out.aside(f"it goes on; `headway jobs show {id}` says how far it is")
        sys.exit(INTERRUPTED)


def result_of(client: Client, id: int) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = client.get(f"{JOBS}/{id}/result")["value"]
        return found
    except Refused:
        return None  # it was kept no longer
