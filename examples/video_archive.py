"""An archive of videos that its site likes: subscribe, download, be told off, and wait.

    python examples/video_archive.py

It needs yt-dlp (`pip install headway[media]`). Nothing leaves this machine: the site is a small one
on loopback, which the server is allowed to call. It shows its videos only to who is logged in, and
says 412 once, as sites do to whom they take for a robot. It remembers who came, and when.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

VIDEOS = 3
TOLD_OFF = 2  # the visit to a video that is answered with 412
REST_S = 3.0  # that the site is left alone after that
LIST = "<rss version='2.0'><channel><title>Harbour cameras</title>{}</channel></rss>"
ENTRY = (
    "<item><title>Camera {n}</title><link>http://{host}/watch/{n}</link>"
    "<enclosure url='http://{host}/videos/{n}.mp4' type='video/mp4' length='50000'/></item>"
)


class Visit(NamedTuple):
    at: float
    path: str
    who: str  # the account, or nothing for a stranger
    status: int


class Site(ThreadingHTTPServer):
    """A playlist, and videos for members."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.visits: list[Visit] = []
        self.now = self.most = 0  # requests at once
        self.changing = threading.Lock()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def judge(self, path: str, who: str) -> int:
        asked = [each for each in self.visits if each.path.startswith("/videos/") and each.who]
        if path.startswith("/videos/"):
            if not who:
                return 403
            return 412 if len(asked) + 1 == TOLD_OFF else 200
        return 200 if path == "/list.rss" else 404


class Answer(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        site = self.server
        who = (self.headers["Cookie"] or "").removeprefix("member=")
        with site.changing:
            status = site.judge(self.path, who)
            site.visits.append(Visit(time.monotonic(), self.path, who, status))
            site.now += 1
            site.most = max(site.most, site.now)
        try:
            self.say(status)
        finally:
            with site.changing:
                site.now -= 1

    def do_HEAD(self) -> None:
        self.do_GET()

    def say(self, status: int) -> None:
        kind, content = "text/plain", b""
        if status == 200 and self.path == "/list.rss":
            host = self.server.address
            entries = "".join(ENTRY.format(n=n, host=host) for n in range(1, VIDEOS + 1))
            kind, content = "application/rss+xml", LIST.format(entries).encode()
        elif status == 200:
            kind, content = "video/mp4", self.path.encode() * 5_000
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """It tells nobody."""


@contextmanager
def site() -> Iterator[Site]:
    with Site() as found:
        threading.Thread(target=found.serve_forever, args=(0.05,)).start()
        try:
            yield found
        finally:
            found.shutdown()


SETTINGS = """
[server]
outbound_allow = ["{host}"]  # private addresses are refused unless the operator names them

[media]
on = true
library = "{library}"

[upstream."{host}"]
every = "0.5s"  # what there is to do there, at this pace and not faster
ban = "{rest_s}s"  # after a 412; usually it is minutes
"""


@contextmanager
def headway(host: str, directory: Path) -> Iterator[str]:
    """A server of its own."""
    settings = directory / "headway.toml"
    library = (directory / "library").as_posix()
    settings.write_text(SETTINGS.format(host=host, library=library, rest_s=REST_S), "utf-8")
    command = [sys.executable, "-m", "headway", "serve", "--port", "0", "--config", str(settings)]
    command += ["--data", str(directory / "data"), "--log-level", "error"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().split()[-1]  # "Headway is at http://..."
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


class Archive:
    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(
            self._address + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def finished(self, id: int) -> Any:
        """The subscription, once nothing is pending."""
        told = ""
        while True:
            found = self.ask("GET", f"/api/subscriptions/{id}")
            if found["listed_at"] and not found["counts"]["pending"]:
                return found
            if not told and (told := self.why_closed(id)):
                print(f"{found['counts']['on_disk']} of {VIDEOS} are here; the next {told}")
            time.sleep(0.2)

    def why_closed(self, id: int) -> str:
        """What those in line wait for after a 412; empty: they just wait for their turn."""
        waiting = self.ask("GET", f"/api/requests?subscription_id={id}&status=queued")["items"]
        reasons = (each["wait_reason"] or "" for each in waiting)
        return next((why for why in reasons if "412" in why), "")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, site() as there:
        directory = Path(name)
        with headway(there.address, directory) as address:
            archive = Archive(address)
            for member in ("ann", "bob"):
                account = {"name": member, "site": "127.0.0.1", "cookies": f"member={member}"}
                archive.ask("POST", "/api/archive/accounts", account)
            wanted = {"url": f"http://{there.address}/list.rss", "template": "cameras/{title}"}
            made = archive.ask("POST", "/api/subscriptions", wanted)
            found = archive.finished(made["id"])
            counts = found["counts"]
            print(f"{found['name']}: {counts['on_disk']} on disk, {counts['failed']} failed")
        files = sorted(path.name for path in (directory / "library").rglob("*.mp4"))
        print(f"files: {', '.join(files)}")
    report(there)


def report(there: Site) -> None:
    """What the site has seen."""
    visits = there.visits
    strangers = sum(each.path.startswith("/videos/") and not each.who for each in visits)
    number = next(n for n, each in enumerate(visits) if each.status == 412)
    refused, after = visits[number], visits[number + 1]
    again = sum(each.path == refused.path for each in visits) - 1
    print(f"the site was asked {len(visits)} times, at most {there.most} at once")
    print(f"visits to videos by strangers: {strangers}")
    print(f"after a 412 to {refused.who} it was left alone for {after.at - refused.at:.1f} s")
    print(f"then {after.who} came; the refused video was asked for {again} more time")


if __name__ == "__main__":
    main()
