"""Whatever a site, a title or a tenant is called: files are where they belong, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.apps.media.library.naming import Template
from tests.contract.kit import JSON, new_name
from tests.contract.media_kit import ITEMS, Archivist, Desk, media_desk
from tests.hands.kit import eventually
from tests.media.media_world import MediaWorld

HOST = "videos.example"
LONG_S = 60.0
EVIL = [
    "../../../../etc/passwd", "/etc/passwd", "..", ".", "", "...", "../", "a/../../b",
    "\\..\\..\\x", "C:\\Windows\\x", "nul\0x", "CON", "nul.mp4", "COM1", "aux ", "x" * 5_000,
    "語" * 3_000, "\u202egpj.exe", "a\u200d\u200d", "\ufeff", "..\u2215..\u2215x",
    "\uff0e\uff0e\uff0fx", "%2e%2e%2fx", "~root", "-rf", "--help", "$(touch x)", "`x`", "a\nb",
    "a\rb", "\x1b[2J", "\ud800", "e\u0301", ".headway", ".headway/work", "tenants",
    "TENANTS/other", "tenants/bob/x", "x:stream", "a|b<c>d\"e?f*", " lead", "trail ", "trail.",
    "\u2028", "\U0001f3f4\U000e0067\U000e0062\U000e007f" * 100,
]  # fmt: skip

TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\ufeff\x7f"


def files_below(place: Path) -> set[str]:
    """Also what links lead to, without following them."""
    return {os.path.join(top, name) for top, _, names in os.walk(place) for name in names}


@pytest.mark.parametrize("tenant", ["", "ann", "../bob", "TENANTS", "a/b", "..", "bob "])
def test_everything_lands_below_the_library(tenant: str) -> None:
    with MediaWorld() as world:
        site = world.site(HOST, download_s=0.1, takes_s=0.1)
        names = [f"v{number}" for number in range(len(EVIL))]
        for name, word in zip(names, EVIL, strict=True):
            site.facts[name] = {"title": word, "uploader": word, "id": word}
        for number, template in enumerate((
            "", "{uploader}/{subscription}/{title}", "{title}/{id}", "{site}/{date}/{id} {index}",
        )):  # fmt: skip
            site.lists[f"/l{number}"] = names
            row = world.subscribe(f"https://{HOST}/l{number}", tenant, template=template,
                                  title=EVIL[number * 7].replace("\0", "") or None)  # fmt: skip
            world.download_now(row)
        world.run_for("1d")
        assert world.states() == {"done": 4 * len(EVIL)}
        root = world.media.library.root
        place = root / world.media.library.of(tenant)
        assert place == root or place.parent == root / "tenants"
        kept = [
            name for name in files_below(root) if "/.headway" not in name.removeprefix(str(root))
        ]
        assert len(kept) == 3 * 4 * len(EVIL)  # the video, its information and its NFO
        for name in kept:
            path = Path(name)
            assert place in path.parents, name
            assert path.resolve() == path, name
            below = path.relative_to(place).parts
            assert tenant or below[0].casefold() != "tenants"
            for part in below:
                assert len(part.encode()) <= 255
                assert not [sign for sign in part if sign in TURNING or ord(sign) < 32], repr(part)
                assert not part.startswith(".")
                assert part.strip(" .") == part or part.startswith(("~", "-")), repr(part)
        beside = {name for name in files_below(world.data) if root not in Path(name).parents}
        assert not beside, "nothing else was written"
        known = {each for item in world.items() for each in world.files(item).values()}
        assert known == {os.path.relpath(name, root) for name in kept}


def test_a_link_out_of_the_library_is_never_followed(tmp_path: Path) -> None:
    with MediaWorld() as world:
        site = world.site(HOST, lists={"/list": ["a", "b"]}, download_s=1.0)
        row = world.subscribe(f"https://{HOST}/list", title="Show", template="{subscription}/{id}")
        world.download_now(row)
        world.run_for("10m")
        root = world.media.library.root
        (root / "Show").rename(root / "Old")
        (root / "Show").symlink_to(tmp_path)  # somebody has put a link where the directory was
        site.lists["/list"].insert(0, "c")
        world.download_now(row)
        world.run_for("2d")
        assert list(tmp_path.iterdir()) == []
        (item,) = [each for each in world.items() if each.key == "x:c"]
        assert item.state != "done"
        (root / "Show").unlink()
        (root / "Old").rename(root / "Show")


def test_work_is_done_in_no_place_that_a_link_leads_to(tmp_path: Path) -> None:
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ["a"]})
        row = world.subscribe(f"https://{HOST}/list")
        world.list_now(row)
        world.run_for("1m")
        world.media.library.open()
        work = world.media.library.root / ".headway" / "work"
        work.mkdir(parents=True, exist_ok=True)
        (item,) = world.items()
        (work / str(item.id)).symlink_to(tmp_path)
        world.download_now(row)
        world.run_for("1h")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", EVIL, ids=lambda text: repr(text)[:30])
def test_no_template_leads_anywhere_else(text: str) -> None:
    """It is refused, or stays where it is put."""
    for template in (text, f"{text}/{{title}}", f"{{title}}/{text}", f"{text}{{id}}"):
        try:
            Template.parse(template)
        except ValueError:
            continue
        assert "\0" not in template
        assert not template.startswith(("/", ".", "\\"))
        assert ".." not in template.split("/")


# ---------------------------------------------------------------------- over HTTP


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with media_desk() as desk:
        yield desk


def test_files_are_handed_out_from_the_library_alone(desk: Desk, tmp_path: Path) -> None:
    """Whatever an item says about its files, and whatever lies in the library."""
    ann = desk.archivist()
    row = ann.add(start=False)
    secret = tmp_path / "secret.mp4"
    secret.write_text("secret of this machine")
    desk.put_file("ok/plain.mp4", b"video")
    root = desk.server.data / "archive"
    (root / "link.mp4").symlink_to(secret)
    (root / "away").symlink_to(tmp_path)
    (root / "hard").mkdir()
    os.mkfifo(root / "hard" / "pipe.mp4")
    paths = [
        "../headway.db", "../secret.key", "ok/../../headway.db", "/etc/passwd", str(secret),
        "link.mp4", "away/secret.mp4", "hard/pipe.mp4", "hard", ".", "", "ok", "ok/plain.mp4/x",
        ".headway/lock", ".headway-archive.json", "ok/plain.mp4\0", "x" * 5_000, "no/such.mp4",
        "ok//..//..//headway.db", "\ud800.mp4".encode("utf-8", "replace").decode(),
    ]  # fmt: skip
    said: list[dict[str, Any]] = [
        {"state": "done", "files": {"video": path, "info": path, "thumbnail": path, "nfo": path}}
        for path in paths
    ]
    ids = desk.put_items(ann, row["id"], *said)
    for id, path in zip(ids, paths, strict=True):
        for kind in ("video", "info", "thumbnail", "nfo"):
            answer = ann.http.get(f"{ITEMS}/{id}/file", params={"kind": kind})
            assert answer.status_code == 404, (path, answer.text[:200])
            assert "secret of" not in answer.text
        if len(path) > 255:  # no file was ever called so
            continue
        answer = ann.http.delete(f"{ITEMS}/{id}", params={"files": "true"})
        assert answer.status_code < 500, (path, answer.text)
    assert secret.read_text() == "secret of this machine"
    assert (desk.server.data / "headway.db").is_file()
    (fine,) = desk.put_items(
        ann, row["id"], {"state": "done", "files": {"video": "ok/plain.mp4"}, "size_bytes": 5}
    )
    answer = ann.http.get(f"{ITEMS}/{fine}/file")
    assert (answer.status_code, answer.content) == (200, b"video")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_page_of_a_site_is_ever_shown_as_a_page_of_ours(desk: Desk) -> None:
    """A video that calls itself HTML is bytes, in a file whose name does no harm in a header."""
    ann = desk.archivist()
    row = ann.add(start=False)
    names = [
        "x.html",
        "x.svg",
        "x.xhtml",
        "x.js",
        "x.exe",
        'a"; filename="b.html.mp4',
        "x\r\ny.mp4",
    ]
    page = b"<script>alert(1)</script>"
    for name in names:
        path = desk.put_file(f"odd/{name}", page)
        (id,) = desk.put_items(ann, row["id"], {"state": "done", "files": {"video": path}})
        answer = ann.http.get(f"{ITEMS}/{id}/file")
        assert answer.status_code == 200
        assert not answer.headers["content-type"].startswith(("text/", "image/svg"))
        assert "javascript" not in answer.headers["content-type"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "\n" not in answer.headers["content-disposition"]


def tried(ann: Archivist, id: int) -> list[JSON]:
    return [each for each in ann.items(id) if each["state"] == "done" or each["failures"]]


@pytest.mark.timeout(180)
def test_what_a_page_calls_its_file_does_no_harm(desk: Desk) -> None:
    """The real program: an extension that is a path, a program, or a page."""
    site, ann = desk.site, desk.archivist()
    made = site.collection(new_name("odd"), count=0)
    mark = new_name("mark")
    for number, more in enumerate((
        {"encodingFormat": "video/../../../../x"},
        {"contentUrl": f"{site.url}/f/x.exe"}, {"contentUrl": f"{site.url}/f/x.html"},
        {"contentUrl": f"{site.url}/f/..%2f..%2f{mark}.mp4", "encodingFormat": "video/mp4"},
    )):  # fmt: skip
        made.videos.append(site.video(f"{mark}-{number}", pages=True, more=more, size=1_000))
    for path in ("/f/x.exe", "/f/x.html", f"/f/..%2f..%2f{mark}.mp4"):
        site.page(path, b"<html><script>alert(1)</script></html>" * 50, kind="video/mp4")
    desk.run()
    try:
        id = ann.add(site.collection_url(made.name), interval_s=0)["id"]
        eventually(lambda: len(tried(ann, id)) == 4, LONG_S)
    finally:
        desk.pause()
    root = desk.server.data / "archive"
    place = root / "tenants" / ann.tenant
    mine = [Path(name) for name in files_below(desk.server.data.parent) if mark in name]
    assert all(place in each.parents or root / ".headway" in each.parents for each in mine)
    kept = {each.suffix for each in mine if place in each.parents}
    assert not kept & {".exe", ".html", ".x", ".js", ".svg", ".sh"}, kept
