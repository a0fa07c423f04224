"""A place at an upstream around work that a program does itself.

The program has its own loop and its own HTTP client, and only wants to be told when it may go.
`app.slot` stands in the same line as all jobs: two downloads at a time from one host, and when one
of them reports a 429, nobody calls the host again before its time.

    python examples/slot_around_a_download.py
"""

from __future__ import annotations

import asyncio
import tempfile
import time

from headway import App

HOST = "files.example.com"
DOWNLOADS = 8
HOLD_S = 1.0


class Host:
    """Stands for a file host: counts who is inside, and pushes back once."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.calls: list[float] = []
        self.told_off_at: float | None = None

    async def get(self, name: str) -> tuple[int, bytes]:
        self.calls.append(time.monotonic())
        number = len(self.calls)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(0.05)
        finally:
            self.inside -= 1
        if number == 3:
            self.told_off_at = time.monotonic()
            return 429, b""
        return 200, name.encode() * 1000


async def download(app: App, host: Host, name: str) -> int:
    """Go when it is our turn; tell what the host said; go again if it was "not now"."""
    while True:
        async with app.slot(HOST, timeout="30s") as slot:
            status, body = await host.get(name)
            slot.report(status, retry_after=HOLD_S if status == 429 else None)
        if status == 200:
            return len(body)


async def download_all(app: App, host: Host) -> list[int]:
    names = [f"file-{number}" for number in range(DOWNLOADS)]
    return list(await asyncio.gather(*(download(app, host, name) for name in names)))


def main() -> None:
    host = Host()
    with tempfile.TemporaryDirectory() as store:
        app = App(f"sqlite:///{store}/slots.db")
        app.upstream(HOST, limit=2)
        with app.running():
            sizes = asyncio.run(download_all(app, host))
        app.close()
    assert host.told_off_at is not None
    # Calls that were on their way when the host said no cannot be called back.
    rest_s = min(at for at in host.calls if at > host.told_off_at) - host.told_off_at
    print(f"downloads: {len(sizes)} of {DOWNLOADS}, {len(host.calls)} calls")
    print(f"most at once: {host.most}")
    print(f"left alone for {rest_s:.1f} s after the 429")


if __name__ == "__main__":
    main()
