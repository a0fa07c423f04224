"""What the program cannot be brought to do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.apps.media.fetcher.guard import Guard, Refused
from headway.apps.media.fetcher.protocol import FailureKind, Task
from headway.apps.media.running import BOOT
from tests.media.fetcher_kit import download, order, visit
from tests.media.video_site import VideoSite

OPEN_TO_WRITE = os.O_WRONLY | os.O_CREAT


@pytest.fixture
def site() -> Iterator[VideoSite]:
    with VideoSite("127.0.0.2") as site:
        yield site


def test_a_redirect_to_a_private_address_is_refused(site: VideoSite) -> None:
    site.collection("secret", 1)
    url = site.redirect("/open", f"http://127.0.0.2:{site.port}/c/secret.rss")
    failure = visit(site, Task.COUNT, url, allowed=(f"127.0.0.1:{site.port}",)).failure
    assert failure.kind is FailureKind.REFUSED
    assert "127.0.0.2" in failure.message
    assert [each.host for each in site.log] == ["127.0.0.1"]


def test_media_at_a_private_address_is_refused_and_a_name_is_no_way_around(
    site: VideoSite, tmp_path: Path
) -> None:
    video = site.video("one")
    video.more["contentUrl"] = f"http://localhost:{site.port}/media/one.mp4"
    url = f"http://127.0.0.2:{site.port}/watch/one"
    failure = download(site, url, tmp_path, allowed=("127.0.0.2", "10.0.0.0/8")).failure
    assert (failure.kind, failure.at) == (FailureKind.REFUSED, "media")
    assert [each.path for each in site.log] == ["/watch/one"]


def test_configuration_and_plugins_that_lie_around_are_not_read(
    site: VideoSite, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    trace = home / "work" / "trace"  # where the guard would let them write
    plugin = f"open({str(trace)!r}, 'a').write('plugin')\n"
    for place in (home / ".config/yt-dlp/plugins/p", home / ".yt-dlp/plugins/p",
                  home / "yt-dlp-plugins/p", home):  # fmt: skip
        for kind in ("extractor", "postprocessor"):
            directory = place / "yt_dlp_plugins" / kind
            directory.mkdir(parents=True)
            (directory / "evil.py").write_text(plugin)
    for name in (".config/yt-dlp/config", ".config/yt-dlp.conf", "yt-dlp.conf", ".yt-dlp/config"):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"--exec 'before_dl:touch {trace}'\n--print-to-file title {trace}\n")
    (home / ".netrc").write_text("machine 127.0.0.1 login a password b\n")
    (home / "yt_dlp.py").write_text(plugin)
    (home / "sitecustomize.py").write_text(plugin)
    work = home / "work"
    work.mkdir()
    site.video("one")
    made = order(site, Task.DOWNLOAD, site.watch_url("one"), directory=str(work))
    environment = {
        "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "PYTHONPATH": str(home),
        "http_proxy": "http://127.0.0.3:9", "PATH": os.environ["PATH"],
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-I", "-B", BOOT], input=made.to_json(), capture_output=True, cwd=home,
        env=environment, check=True, timeout=60,
    )  # fmt: skip
    assert json.loads(ended.stdout.splitlines()[-1])["ok"] is True
    assert not trace.exists()
    assert ended.stderr == b""


PROGRAM = """
import json, os, socket, sqlite3, subprocess, sys
sys.path[:0] = [{package!r}]
import guard
os.makedirs({work!r})
guard.Guard(directory={work!r}).install()

def outside(): open({outside!r}, "w")
def outside_by_os(): os.open({outside!r}, os.O_CREAT | os.O_WRONLY)
def outside_by_dots(): open({work!r} + "/../outside", "w")
def outside_by_link():
    os.symlink({outside!r}, {work!r} + "/link")
def outside_by_rename():
    open({work!r} + "/inside", "w").close()
    os.rename({work!r} + "/inside", {outside!r})
def directory(): os.mkdir({outside!r})
def remove(): os.remove({victim!r})
def program(): subprocess.run([sys.executable, "-c", "1"])
def shell(): os.system("true")
def fork(): os.fork()
def execute(): os.execv(sys.executable, ["python"])
def loopback(): socket.create_connection(("127.0.0.1", 9))
def by_name(): socket.create_connection(("localhost", 9))
def unix(): socket.socket(socket.AF_UNIX).connect("/run/x")
def datagram(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("10.0.0.1", 53))
def database(): sqlite3.connect({outside!r})
def inside(): open({work!r} + "/file", "w").close()
def nowhere(): open(os.devnull, "w").close()
def reading(): open({victim!r}).close()

said = {{}}
for attempt in (outside, outside_by_os, outside_by_dots, outside_by_link, outside_by_rename,
                directory, remove, program, shell, fork, execute, loopback, by_name, unix, datagram,
                database, inside, nowhere, reading):
    try:
        attempt()
        said[attempt.__name__] = "done"
    except guard.Refused:
        said[attempt.__name__] = "refused"
print(json.dumps(said))
"""


def test_what_is_refused_is_really_not_done(tmp_path: Path) -> None:
    victim, outside = tmp_path / "victim", tmp_path / "outside"
    victim.write_text("precious")
    script = PROGRAM.format(
        package=str(Path(BOOT).parent), work=str(tmp_path / "work"), outside=str(outside),
        victim=str(victim),
    )  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-I", "-B", "-c", script], capture_output=True, check=True, timeout=60
    )
    said = json.loads(ended.stdout)
    assert {name for name, how in said.items() if how == "done"} == {"inside", "nowhere", "reading"}
    assert len(said) == 19
    assert victim.read_text() == "precious"
    assert not outside.exists()


# --- judgements, without a hook


class Socket:
    def __init__(self, family: int) -> None:
        self.family = family


def call(guard: Guard, address: str, port: int = 443) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    guard.judge("socket.connect", (Socket(family), (address, port)))


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::1111"])
def test_the_public_internet_is_open(address: str) -> None:
    call(Guard(), address)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fe80::1%eth0",
     "64:ff9b::a9fe:a9fe", "site.test", ""],
)  # fmt: skip
def test_everything_else_is_closed(address: str) -> None:
    with pytest.raises(Refused):
        call(Guard(), address)


def test_what_the_operator_allows_is_open_there_and_nowhere_else() -> None:
    guard = Guard(["10.1.0.0/16:8080", "videos.lan"])
    call(guard, "10.1.2.3", 8080)
    for address, port in (("10.1.2.3", 8081), ("10.2.0.1", 8080), ("192.168.0.9", 80)):
        with pytest.raises(Refused):
            call(guard, address, port)
    guard._names["192.168.0.9"] = {"videos.lan"}  # as it was looked up
    call(guard, "192.168.0.9", 80)


def test_only_ffmpeg_is_run_and_only_on_files_of_the_download(tmp_path: Path) -> None:
    ffmpeg = "/usr/bin/ffmpeg"
    guard = Guard(directory=str(tmp_path), programs=(ffmpeg,))
    own = f"file:{tmp_path}/media.f1.mp4"
    guard.judge("subprocess.Popen", (ffmpeg, [ffmpeg, "-i", own, "-c", "copy", own], None, None))
    guard.judge("subprocess.Popen", (ffmpeg, [ffmpeg, "-bsfs"], None, None))
    for executable, words in (
        ("/bin/sh", ["sh", "-c", "true"]),
        ("ffmpeg", ["ffmpeg", "-version"]),
        (ffmpeg, [ffmpeg, "-i", "http://10.0.0.1/x", own]),
        (ffmpeg, [ffmpeg, "-i", "concat:/etc/passwd", own]),
        (ffmpeg, [ffmpeg, "-i", "file:/etc/passwd", own]),
        (ffmpeg, [ffmpeg, "-i", own, "tcp://10.0.0.1:9"]),
    ):
        with pytest.raises(Refused):
            guard.judge("subprocess.Popen", (executable, words, None, None))


def test_without_a_directory_nothing_is_written() -> None:
    with pytest.raises(Refused):
        Guard().judge("open", ("anything", "w", OPEN_TO_WRITE))
    Guard().judge("open", ("anything", "r", os.O_RDONLY))
