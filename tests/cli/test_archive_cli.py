"""The archive on the command line: on a server with a site that it may call, and without one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from headway.cli import archive_doing, archive_watching, archive_words
from headway.cli import archive_layouts as layouts
from headway.cli.archive_names import the_one
from headway.cli.client import CommandFailed
from tests.cli.kit import Cli, Said
from tests.contract.feeds_kit import signed
from tests.contract.kit import new_name
from tests.contract.media_kit import Archivist, Desk, media_desk

LIST = "https://videos.example/list"
SECRET = "a-value-that-nobody-may-see"


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    """Nothing runs there unless a test says so."""
    with media_desk() as desk:
        yield desk


@pytest.fixture
def who(desk: Desk) -> Archivist:
    return desk.archivist()


@pytest.fixture
def cli(desk: Desk, who: Archivist, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command of somebody whom nobody knows yet."""
    return cli_of(desk, capsys, who.tenant)


@pytest.fixture
def keeper(desk: Desk, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command of somebody who is bound to no tenant."""
    return cli_of(desk, capsys, "keeper", "admin")


@pytest.fixture
def running(desk: Desk) -> Iterator[None]:
    desk.run()
    yield
    desk.pause()


@pytest.fixture
def offline(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """The command on a store that nobody serves."""
    data = tmp_path / "data"
    data.mkdir()
    cli = Cli(capsys, ("--data", str(data)))
    assert cli("migrate").code == 0
    return cli


def cli_of(desk: Desk, capsys: pytest.CaptureFixture[str], tenant: str, *scopes: str) -> Cli:
    options = ("--server", desk.server.url, "--token", signed(tenant, *scopes))
    return Cli(capsys, options, served=True)


def add(cli: Cli, *more: str, url: str = "") -> dict[str, Any]:
    url = url or f"https://{new_name()}.example/list"
    made: dict[str, Any] = cli.json("archive", "add", url, *more)
    return made


def printed(shown: Any, width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(shown)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


# ---------------------------------------------------------------------- subscribing


def test_a_list_is_subscribed_to_with_all_that_is_wanted_of_it(cli: Cli) -> None:
    assert cli("archive").out == "no subscriptions; add one with `headway archive add`\n"
    said = cli(
        "archive", "add", LIST, "--title", "Harbour talks", "--quality", "1080p", "--every", "12h",
        "--depth", "50", "--title-has", "tide", "--title-has", "fog", "--title-not", "rerun",
        "--after", "2026-01-01", "--before", "2026-06-30T12:00Z", "--min-length", "1m",
        "--max-length", "2h", "--min-views", "1,000", "--template", "{uploader}/{title}",
        "--nfo", "episode", "--no-download",
    )  # fmt: skip
    (found,) = cli.json("archive", "ls")["items"]
    said_of_it = "its list is being read, nothing is downloaded by itself\n"
    assert said.out == f"Harbour talks is added as {found['id']}: {said_of_it}"
    filters = found["filters"]
    assert (filters["title_any"], filters["title_none"]) == (["tide", "fog"], ["rerun"])
    assert filters["after"].startswith("2026-01-01T00:00:00")
    assert filters["before"].startswith("2026-06-30T12:00:00")
    assert (filters["min_duration_s"], filters["max_duration_s"]) == (60, 7_200)
    assert (filters["min_views"], filters["max_views"]) == (1_000, None)
    assert (found["quality"], found["interval_s"], found["depth"]) == ("1080p", 43_200, 50)
    assert (found["template"], found["nfo"], found["download"]) == (
        "{uploader}/{title}", "episode", False,
    )  # fmt: skip
    listed = cli("archive").out
    assert "Harbour talks" in listed
    assert "1 subscription, 0 videos on disk" in listed
    assert cli.json("archive", "ls") == cli.json("archive", "list")
    shown = cli("archive", "show", "harbour").out
    assert "titles with 'tide' or 'fog', not with 'rerun', after 2026-01-01" in shown
    assert "every 12h" in shown
    assert "paused" in shown.split("at this moment")[1]  # why its list is not read yet
    assert "change that one instead" in cli.refuses("archive", "add", LIST)


def test_what_is_not_named_stays_and_an_empty_value_takes_a_filter_back(cli: Cli) -> None:
    made = add(cli, "--title", "Mine", "--title-has", "tide", "--min-length", "1m", "--paused")
    id = str(made["id"])
    edited = cli.json("archive", "edit", id, "--min-views", "10", "--every", "never")
    assert (edited["interval_s"], edited["filters"]["title_any"]) == (0, ["tide"])
    assert (edited["filters"]["min_duration_s"], edited["filters"]["min_views"]) == (60, 10)
    edited = cli.json(
        "archive", "edit", id, "--title-has", "", "--min-length", "", "--title", "", "--download"
    )
    assert (edited["filters"]["title_any"], edited["filters"]["min_duration_s"]) == ([], None)
    assert (edited["title"], edited["filters"]["min_views"]) == (None, 10)
    assert cli.json("archive", "resume", id)["paused"] is False
    assert "paused" in cli("archive", "pause", id).out
    assert "paused" in cli("archive").out


def test_whoever_removes_is_asked_first(
    desk: Desk, cli: Cli, who: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = add(cli, "--title", "Mine")
    desk.put_items(who, made["id"], {"state": "done", "size_bytes": 2_500_000})
    said = cli.refuses("archive", "rm", "mine")
    assert said == "this would remove Mine and keep its files; say --yes"
    said = cli.refuses("archive", "rm", "mine", "--files")
    assert said == "this would remove Mine and delete 1 video (2.5 MB); say --yes"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert cli.refuses("archive", "rm", "mine") == "nothing was done"
    said = cli("archive", "rm", "mine", "--yes").out
    assert said == "Mine is removed, 1 job cancelled\n"
    assert "there is no subscription" in cli.refuses("archive", "rm", "mine", "--yes")


@pytest.mark.parametrize(
    "words",
    [
        ("add", LIST, "--every", "30"),
        ("add", LIST, "--quality", "8k"),
        ("add", LIST, "--nfo", "film"),
        ("add", LIST, "--after", "yesterday"),
        ("add", LIST, "--min-views", "many"),
        ("add", LIST, "--paused", "--wait"),
        ("edit", "1"),
        ("refresh",),
        ("refresh", "1", "--all"),
        ("download",),
        ("items", "--state", "lost"),
        ("retry",),
        ("retry", "1", "--all"),
        ("skip",),
        ("check", "--last", "--force"),
        ("podcast", "1", "--rotate", "--off"),
        ("accounts", "add", "me", "--site", "x.example"),
        ("--json", "show", "1"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(
    bare: Cli, words: tuple[str, ...]
) -> None:
    assert bare("archive", *words).code == 2


def test_what_a_server_refuses_is_said_in_words(cli: Cli) -> None:
    assert "private" in cli.refuses("archive", "add", "http://10.0.0.1/list")
    assert "template" in cli.refuses("archive", "add", LIST, "--template", "{nothing}")
    assert "600" in cli.refuses("archive", "add", LIST, "--every", "10s")


# ---------------------------------------------------------------------- names


def test_a_subscription_is_known_by_its_number_and_by_how_its_title_begins(cli: Cli) -> None:
    talks = add(cli, "--title", "Harbour talks")
    tides = add(cli, "--title", "Harbour tides")
    year = add(cli, "--title", "2026")
    for said in (str(talks["id"]), "harbour TA", "Harbour talks", talks["url"]):
        assert cli.json("archive", "show", said)["id"] == talks["id"]
    assert cli.json("archive", "show", "2026")["id"] == year["id"]
    refused = cli.refuses("archive", "show", "harbour")
    assert f"{talks['id']} (Harbour talks)" in refused
    assert f"{tides['id']} (Harbour tides)" in refused
    assert refused.endswith("write its number")
    said = "there is no subscription 'talks'; `headway archive` lists them"
    assert cli.refuses("archive", "show", "talks") == said


@given(st.lists(st.text("ab", min_size=1, max_size=3), unique=True), st.text("ab", max_size=3))
def test_a_name_means_the_one_that_is_called_so_or_alone_begins_so(
    names: list[str], said: str
) -> None:
    found = [{"id": number, "name": name} for number, name in enumerate(names)]
    begins = [name for name in names if name.startswith(said)] if said else []
    if said in names or len(begins) == 1:
        meant = the_one("thing", said, found, ("name",), "list")
        assert meant["name"] == (said if said in names else begins[0])
    else:
        with pytest.raises(CommandFailed):
            the_one("thing", said, found, ("name",), "list")


# ---------------------------------------------------------------------- asking for it


def test_what_is_asked_for_twice_is_joined(cli: Cli) -> None:
    id = str(add(cli)["id"])
    assert cli("archive", "refresh", id).out == "1 list to be read, 1 of them under way already\n"
    add(cli, "--paused")
    (asked,) = cli.json("archive", "download", "--all")["items"]
    assert asked["request"]["joined"] is True
    said = cli.refuses("archive", "show", "nobody")
    assert "there is no subscription" in said


def test_what_is_listed_is_downloaded_without_looking_again(
    desk: Desk, cli: Cli, who: Archivist
) -> None:
    id = add(cli, "--paused")["id"]
    desk.put_items(who, id, {}, {}, {"state": "done"})
    said = cli("archive", "download", str(id), "--listed-only").out
    assert said == "2 downloads put into line\n"
    assert len(who.open_requests(id, "download")) == 2
    shown = cli("archive", "show", str(id)).out
    assert "2, all of them in line" in shown
    assert "2 downloads in line" in shown


def test_whoever_leaves_is_told_that_it_goes_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(archive_watching, "sleep", leave)
    id = add(cli)["id"]
    said = cli("archive", "download", str(id), "--wait")
    assert (said.code, said.out) == (130, "")
    assert said.err == f"it goes on; `headway archive show {id}` says how far it is\n"
    assert "`headway archive` says" in cli("archive", "refresh", "--all", "--wait").err


@pytest.mark.usefixtures("running")
def test_a_list_is_looked_at_counted_and_downloaded_while_one_looks_on(
    desk: Desk, cli: Cli
) -> None:
    name = new_name()
    desk.site.collection(name, 2, title="Harbour talks")
    desk.site.fail(f"/media/{name}-2", 404)
    url = desk.site.collection_url(name)
    seen = cli("archive", "look", url).out
    assert "a list" in seen
    assert f"Video {name}-2" in seen
    said = cli("archive", "add", url, "--wait")
    assert said.code == 1  # one of them has failed
    assert "on disk            1 (200 kB)" in said.out
    assert cli("archive", "count", "harbour").out == "Harbour talks should have 2 videos\n"
    assert "as counted" in cli("archive", "count", "harbour").out
    failed = cli("archive", "failures").out
    assert f"Video {name}-2" in failed
    assert "answered 404" in failed
    assert failed.endswith("1 gone\n")
    assert "200 kB  done" in cli("archive", "items", "harbour", "--state", "done").out
    assert cli("archive", "unblock", "--class", "gone").out == "1 video is as if just found now\n"
    assert "1 pending" in cli("archive").out


@pytest.mark.usefixtures("running")
def test_a_single_video_comes_while_one_looks_on(desk: Desk, cli: Cli) -> None:
    video = desk.site.video(new_name())
    said = cli("archive", "get", desk.site.watch_url(video.id), "--wait")
    assert said.code == 0
    assert said.out.startswith("it is here: 200 kB\n")
    assert f"[{video.id}].mp4" in said.out


def test_a_single_video_that_does_not_come_says_why(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(_: object, id: int) -> dict[str, Any]:
        return {"id": id, "status": "failed", "last_error": "the site answered 404"}

    monkeypatch.setattr(archive_doing, "watch_job", ended)
    said = cli("archive", "get", f"https://{new_name()}.example/video", "--wait")
    assert (said.code, said.out) == (1, "")
    assert said.err.endswith("has failed: the site answered 404\n")


def test_a_single_video_is_put_into_line(cli: Cli) -> None:
    url = f"https://{new_name()}.example/video"
    first, second = (cli("archive", "get", url).out for _ in range(2))
    assert first.startswith("it is in line, as job ")
    assert second == first.replace("in line", "in line already")


# ---------------------------------------------------------------------- videos


def test_videos_are_found_and_decided_about(desk: Desk, cli: Cli, who: Archivist) -> None:
    id = add(cli, "--title", "Mine", "--paused")["id"]
    one, two, three, four = desk.put_items(
        who, id, {"title": "Fog"}, {"state": "failed", "failure": "gone", "reason": "it is gone"},
        {"state": "failed", "failure": "network"}, {"state": "done", "duration_s": 3_725},
    )  # fmt: skip
    assert "Fog" in cli("archive", "items", "--search", "fog").out
    assert "1:02:05" in cli("archive", "items", "mine", "--state", "done").out
    few = cli("archive", "items", "--limit", "3").out
    assert few.endswith("and 1 more; see them with --limit\n")
    answer = cli.json("archive", "failures", "mine", "--class", "gone")
    assert [each["id"] for each in answer["items"]] == [two]
    assert answer["classes"] == {"gone": 1, "network": 1}
    assert cli("archive", "failures", "--class", "other").out == "no such failures\n"
    assert cli("archive", "skip", str(one)).out == "1 video is left out now\n"
    said = cli("archive", "retry", str(two), str(four), "--json")
    assert said.code == 1
    assert f"item {four} is done" in said.err
    assert who.item(two)["state"] == "queued"
    assert f"item {four} is done" in cli.refuses("archive", "unblock", str(four))
    assert cli.json("archive", "unblock", "--of", "mine") == {"changed": 1}
    assert who.item(three)["state"] == "found"
    assert cli("archive", "failures").out == "nothing has failed\n"


def test_where_there_is_little_room_the_rest_can_be_read(
    desk: Desk, cli: Cli, who: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = add(cli, "--title", "A title " * 12, "--paused")["id"]
    desk.put_items(who, id, {"state": "failed", "failure": "gone", "reason": "word " * 40})
    monkeypatch.setenv("COLUMNS", "60")
    for words in ((), ("items",), ("failures",)):
        lines = cli("archive", *words).out.splitlines()
        assert max(map(len, lines)) <= 60
        assert "failed" in "\n".join(lines) or "gone" in "\n".join(lines)


# ---------------------------------------------------------------------- accounts


def test_cookies_come_from_a_file_or_stdin_and_never_come_back(
    keeper: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, file = new_name(), tmp_path / "cookies.txt"
    file.write_text(f"session={SECRET}")
    who = ("archive", "accounts")
    said = keeper(*who, "add", name, "--site", "videos.example", "--cookies", str(file))
    assert said.code == 0
    assert "session" in said.out
    stdin = SimpleNamespace(
        buffer=io.BytesIO(f"fresh={SECRET}".encode()), isatty=lambda: False
    )  # fmt: skip
    monkeypatch.setattr("sys.stdin", stdin)
    assert "fresh" in keeper(*who, "renew", name, "--cookies", "-").out
    assert "no cookies came from stdin" in keeper.refuses(*who, "renew", name, "--cookies", "-")
    assert name in keeper(*who, "list", "--site", "videos.example").out
    assert "off" in keeper(*who, "disable", name).out
    assert "switched off" in keeper.refuses(*who, "check", name)
    assert keeper.json(*who, "enable", name[:-1])["enabled"] is True
    assert keeper.json(*who, "show", name)["cookie_names"] == ["fresh"]
    assert "say --yes" in keeper.refuses(*who, "rm", name)
    said = keeper(*who, "rm", name, "--yes")
    assert said.out == f"the account {name} at videos.example is removed\n"
    assert "there is no account" in keeper.refuses(*who, "show", name)
    assert not any(SECRET in each.out + each.err for each in keeper.seen)


@pytest.mark.parametrize("said", [f"session={SECRET}", SECRET * 20, f"a={SECRET}; b=c\n"])
def test_cookies_on_the_command_line_are_refused_and_not_said_again(bare: Cli, said: str) -> None:
    refused = bare("archive", "accounts", "add", "me", "--site", "x.example", "--cookies", said)
    assert refused.code == 2
    assert "others can see" in " ".join(refused.err.replace("│", " ").split())
    assert SECRET not in refused.out + refused.err


def test_a_file_that_has_no_cookies_is_said_in_words(bare: Cli, tmp_path: Path) -> None:
    def refusal(file: Path) -> str:
        words = ("add", "me", "--site", "x.example", "--cookies", str(file))
        return bare.refuses("archive", "accounts", *words)

    assert "cannot be read: No such file" in refusal(tmp_path / "none.txt")
    (tmp_path / "picture").write_bytes(b"\xff\xd8\xff")
    assert "is no text" in refusal(tmp_path / "picture")
    (tmp_path / "empty").write_bytes(b" \n")
    assert "no cookies came from" in refusal(tmp_path / "empty")


def test_accounts_are_for_whoever_is_bound_to_no_tenant(
    desk: Desk, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "'operate'" in cli.refuses("archive", "accounts")
    bound = cli_of(desk, capsys, new_name("tenant"), "read", "submit", "operate")
    assert "tenant" in bound.refuses("archive", "accounts")


@pytest.mark.usefixtures("running")
def test_an_account_is_checked_where_its_site_shows_who_is_logged_in(
    desk: Desk, keeper: Cli, tmp_path: Path
) -> None:
    name, file = new_name(), tmp_path / "cookies.txt"
    file.write_text(f"session={SECRET}")
    page = desk.site.page(f"/me/{name}", "hello")
    options = ("--site", "127.0.0.1", "--cookies", str(file), "--check-url", page)
    assert keeper("archive", "accounts", "add", name, *options).code == 0
    said = keeper("archive", "accounts", "check", name)
    assert said.code == 0
    assert "healthy" in said.out
    desk.site.page(f"/me/{name}", "who are you?", status=401)
    said = keeper("archive", "accounts", "check", name)
    assert said.code == 1
    assert "expired" in said.out
    assert keeper("archive", "accounts", "rm", name, "--yes").code == 0


# ---------------------------------------------------------------------- the whole


@pytest.mark.usefixtures("running")
def test_the_disk_is_compared_with_what_should_be_there(
    desk: Desk, keeper: Cli, cli: Cli, who: Archivist
) -> None:
    id = add(cli, "--title", "Mine", "--paused")["id"]
    name = new_name()
    desk.put_items(who, id, {"state": "done", "files": {"video": f"{name}.mp4"}})
    dry = cli("archive", "check", "mine", "--dry-run").out
    assert "would be changed  1" in dry
    assert "not on disk any more:" in dry
    assert cli.json("archive", "items")["items"][0]["state"] == "done"
    report = cli.json("archive", "check", "mine")
    assert (report["changed"], report["missing"]) == (1, 1)
    assert f"{name}.mp4" in cli("archive", "check", "--last").out
    assert "missing" in cli("archive").out
    assert "may force this" in cli.refuses("archive", "check", "--force")
    assert keeper("archive", "check", "--import", "--dry-run").code == 0


def test_the_state_of_all_of_it_is_seen_at_a_glance(cli: Cli, keeper: Cli) -> None:
    said = keeper("archive", "status")
    assert said.code == 0
    assert "yt-dlp" in said.out
    assert "free, downloads wait below" in said.out
    assert "runs with" in said.out
    assert "runs with" not in cli("archive", "status").out  # where it is concerns operators


def test_a_podcast_has_an_address_until_it_is_taken_back(desk: Desk, cli: Cli) -> None:
    id = str(add(cli, "--paused")["id"])
    url = cli("archive", "podcast", id).out.strip()
    assert url.startswith(f"{desk.server.url}/podcasts/")
    assert cli("archive", "podcast", id).out.strip() == url
    assert cli.json("archive", "podcast", id, "--rotate")["url"] != url
    assert cli("archive", "podcast", id, "--off").out == "it has no podcast any more\n"


# ---------------------------------------------------------------------- without a server


def test_without_a_server_one_subscribes_and_nothing_is_fetched(offline: Cli) -> None:
    said = offline("archive", "add", LIST, "--title", "Mine")
    assert said.out.endswith("its list is read when a server runs\n")
    said = offline("archive", "refresh", "mine")
    assert "nothing is fetched while no server runs" in said.err
    for words in (("look", LIST), ("podcast", "mine"), ("check",)):
        assert "no server runs on" in offline.refuses("archive", *words)


def test_a_server_without_the_archive_says_what_to_do(
    offline: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_MEDIA_ON", "no")
    assert "install yt-dlp" in offline.refuses("archive")


# ---------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("size", "words"),
    [(None, ""), (0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (999_700, "1.0 MB"),
     (12_345_678, "12 MB"), (3e12, "3.0 TB"), (5e18, "5000.0 PB")],
)  # fmt: skip
def test_sizes_are_as_exact_as_anybody_needs_to_know(size: float | None, words: str) -> None:
    assert layouts.size_words(size) == words


@given(st.floats(0, 1e15))
def test_a_size_is_never_wider_than_its_column(size: float) -> None:
    assert len(layouts.size_words(size)) <= 7


def test_a_date_is_that_day_in_utc_and_a_time_is_local_unless_it_names_a_zone() -> None:
    assert archive_words.time_of(" 2026-01-31 ") == "2026-01-31"
    assert archive_words.time_of("2026-01-31T12:00+02:00") == "2026-01-31T10:00:00.000000Z"


def test_a_line_says_when_it_goes_on_before_it_says_why_it_waits() -> None:
    job = {"status": "queued", "type": "download", "next_attempt_at": None,
           "eta": "2100-01-01T00:00:00Z",
           "wait_reason": "waits at upstream:x.example: closed (412 ban)"}  # fmt: skip
    said = archive_watching.job_words(job)
    assert said.startswith("in ")
    assert said.endswith(" d: at upstream:x.example: closed (412 ban)")
    runs = {"status": "running", "type": "download", "progress": None}
    assert archive_watching.job_words(runs) == "a download begins"


def test_what_a_site_says_can_do_nothing_to_a_terminal() -> None:
    entry = {"title": "\x1b[31mred", "url": "u"}
    found = {"kind": "playlist", "title": "\x1b[2J evil", "uploader": "\u202eevil", "url": LIST,
             "site": "x", "total": 3, "entries": [entry]}  # fmt: skip
    shown = printed(layouts.collection_view(found))
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    assert "and 2 more" in shown


def test_the_story_of_many_is_told_on_one_line() -> None:
    counts = {"on_disk": 12, "pending": 28, "failed": 1}
    assert archive_watching.watched_words([{"counts": counts}] * 2) == (
        "24 of 80 on disk, 2 failed"
    )  # fmt: skip


def test_the_help_names_every_command(bare: Cli) -> None:
    said: Said = bare("archive", "--help")
    for name in ("add", "show", "edit", "pause", "resume", "rm", "look", "count", "refresh",
                 "download", "items", "failures", "retry", "unblock", "skip", "get", "accounts",
                 "check", "status", "podcast"):  # fmt: skip
        assert f" {name} " in said.out
