"""Lists of subscriptions over HTTP: they come in with progress, and go out as they came."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.apps.feeds.importing import entry_of
from headway.apps.feeds.opml import Subscription as Listed
from headway.apps.feeds.opml import read_opml, write_opml
from tests.contract.feeds_kit import Desk, Reader, answers, feeds_desk
from tests.contract.kit import JSON, problem_in
from tests.hands.kit import eventually

OPML = "/api/backend/opml"
ROUNDS = "/api/backend/queue/rounds"
# Whatever the port of the site is, nobody waits a second for it.
QUICK = "\n".join(f'[upstream."*{digit}"]\nevery = "0.02s"' for digit in range(10))
XML = {"Content-Type": "text/x-opml"}


@pytest.fixture(scope="module", params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with feeds_desk(request.param, file=QUICK) as desk:
        yield desk


def imported(reader: Reader, document: bytes, **params: object) -> JSON:
    """The round, as soon as it has begun."""
    return reader.ok("POST", OPML, 202, content=document, headers=XML, params=params)


def ended(reader: Reader, id: str) -> JSON:
    round: JSON = eventually(
        lambda: (seen := reader.get(f"{ROUNDS}/{id}", wait_s=10))["status"] == "finished" and seen,
        60,
    )
    return round


def exported(reader: Reader) -> list[tuple[str, str, tuple[str, ...]]]:
    answer = reader.send("GET", OPML)
    assert answer.headers["content-type"].startswith("text/x-opml")
    assert answer.headers["content-disposition"] == 'attachment; filename="feeds.opml"'
    found = read_opml(answer.content).subscriptions
    return [(each.url, each.title, each.folders) for each in found]


def feeds_at(desk: Desk, many: int) -> list[Listed]:
    pages = [desk.site.page("one") for _ in range(many)]
    return [Listed(page.url, f"Feed {n}", None, ()) for n, page in enumerate(pages)]


# ---------------------------------------------------------------------- in


def many_are_imported(desk: Desk, many: int) -> None:
    reader = desk.reader()
    listed = feeds_at(desk, many)
    desk.site.pages[listed[1].url].says = answers(b"", 403)
    reader.add(listed[0].url, id="first")
    reader.settled("first")
    sent = reader.send("POST", OPML, content=write_opml(listed), headers=XML)
    round = sent.json()
    assert sent.status_code == 202
    assert sent.headers["location"] == f"{ROUNDS}/{round['id']}"
    assert (round["kind"], round["total"]) == ("import", many)
    seen = {round["percent"]}
    while round["status"] != "finished":
        round = reader.get(f"{ROUNDS}/{round['id']}", wait_s=0.2)
        seen.add(round["percent"])
    assert len(seen) > 2  # somebody who looks sees it move
    assert (round["added"], round["duplicates"], round["invalid"]) == (many - 1, 1, 0)
    assert (round["done"], round["failed"], round["skipped"]) == (many - 2, 1, 1)
    text = f"{many:,} feeds, {many - 2:,} fetched, 1 failed, 1 there already"
    assert round["text"] == text
    assert round["duplicate_feeds"] == [{"url": listed[0].url, "feed_id": "first"}]
    assert len(reader.feeds()) == many
    assert len(desk.site.pages[listed[0].url].visits) == 1


def test_two_hundred_feeds_are_imported_and_each_is_fetched(desk: Desk) -> None:
    many_are_imported(desk, 200)


@pytest.mark.soak
def test_a_thousand_feeds_are_imported_and_each_is_fetched(desk: Desk) -> None:
    many_are_imported(desk, 1_000)


def test_what_is_wrong_with_a_list_is_said_and_the_rest_is_added(desk: Desk) -> None:
    reader = desk.reader()
    good = desk.site.page("one").url
    lines = "".join(
        f'<outline text="x" xmlUrl="{url}"/>'
        for url in (good, good, "nothing", "http://10.0.0.1/feed", "ftp://files.example/feed")
    )
    made = imported(reader, f"<opml><body>{lines}</body></opml>".encode())
    round = ended(reader, made["id"])
    assert (round["total"], round["added"], round["duplicates"], round["invalid"]) == (5, 1, 1, 3)
    why = {each["url"]: each["why"] for each in round["invalid_feeds"]}
    assert set(why) == {"nothing", "http://10.0.0.1/feed", "ftp://files.example/feed"}
    assert "private network" in why["http://10.0.0.1/feed"]
    assert [feed["url"] for feed in reader.feeds()] == [good]


def test_all_can_be_put_below_a_folder_with_an_interval(desk: Desk) -> None:
    reader = desk.reader()
    (one,) = feeds_at(desk, 1)
    document = write_opml([Listed(one.url, "x", None, ("Tech", "AC/DC"))])
    made = imported(reader, document, folder="Old/reader", refresh_interval=120, adaptive="true")
    ended(reader, made["id"])
    (feed,) = reader.feeds()
    assert feed["folder"] == "Old/reader/Tech/AC-DC"
    assert (feed["refresh_interval"], feed["adaptive"], feed["title"]) == (120, True, "x")


def test_a_form_with_a_file_does_as_well(desk: Desk) -> None:
    reader = desk.reader()
    (one,) = feeds_at(desk, 1)
    file = ("my feeds.opml", write_opml([one]), "text/xml")
    round = reader.ok("POST", OPML, 202, files={"file": file}, data={"other": "field"})
    ended(reader, round["id"])
    assert len(reader.feeds()) == 1


@pytest.mark.parametrize(("document", "said"), [
    (b"", "no OPML"), (b"{}", "no OPML"), (b"<html></html>", "begins with <html>"),
    (b"<opml><body><outline", "broken in line 1"),
    (b'<!DOCTYPE opml [<!ENTITY a "b">]><opml/>', "declares entities"),
    (b"<opml>" + b'<outline text="x"/>' * 10_001 + b"</opml>", "outlines"),
])  # fmt: skip
def test_what_is_no_list_is_refused_and_nothing_is_begun(
    desk: Desk, document: bytes, said: str
) -> None:
    reader = desk.reader()
    problem = reader.problem(422, "POST", OPML, "bad-opml", content=document, headers=XML)
    assert said in problem["detail"]
    assert reader.get(ROUNDS)["items"] == []


def test_one_that_is_too_large_is_not_read(desk: Desk) -> None:
    reader = desk.reader()
    large = b"<opml>" + b" " * 5_300_000
    reader.problem(413, "POST", OPML, "too-large", content=large, headers=XML)
    answer = reader.send("POST", OPML, files={"file": ("x", large)})
    assert answer.status_code in (413, 422)


@pytest.mark.parametrize("body", [
    b"", b"--x\r\n", b"--x--\r\n", b"nothing of the kind",
    b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n<opml/>\r\n--x--\r\n',
    b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n<opml/>\r\n--x--\r\n',
])  # fmt: skip
def test_a_form_without_a_file_is_refused(desk: Desk, body: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = desk.reader().send("POST", OPML, content=body, headers=headers)
    assert answer.status_code == 400, answer.text
    problem_in(answer, "invalid-form")
    headers = {"Content-Type": "multipart/form-data"}
    assert desk.reader().send("POST", OPML, content=body, headers=headers).status_code == 400


def test_a_list_is_taken_in_although_the_server_dies(desk: Desk) -> None:
    reader = desk.reader()
    made = imported(reader, write_opml(feeds_at(desk, 120)))
    desk.server.kill()
    desk.server.start()
    reader = desk.reader(reader.tenant)
    round = ended(reader, made["id"])
    assert (round["added"], round["done"], round["duplicates"]) == (120, 120, 0)
    assert len(reader.feeds()) == 120


# ---------------------------------------------------------------------- out

WORDS = st.text(
    st.sampled_from("abc &<>\"'/é漢🙂\u202e\t#;%"), min_size=1, max_size=12
)  # and what else people call a feed


def test_what_is_exported_and_imported_elsewhere_is_exported_again(desk: Desk) -> None:
    first, second = desk.reader(), desk.reader()
    names = ['Ben & "Jerry"', "<b>'s</b>", "漢字 🙂", " x ", "a/b", "#;%25 &amp;", ""]
    folders = ["", "News", "News/Tech & <Co>", "a\"b/'c'", "漢字/🙂", "  x / y  ", "News"]
    for name, folder in zip(names, folders, strict=True):
        first.add(desk.site.page("one"), title=name or None, folder=folder)
    for feed in first.feeds():
        first.settled(feed["id"])
    before = exported(first)
    assert len(before) == len(names)
    assert {name for _, name, _ in before} >= {'Ben & "Jerry"', "漢字 🙂", "A site"}
    document = first.http.get(OPML).content
    ended(second, imported(second, document)["id"])
    assert exported(second) == before
    sent = {(feed["title"], feed["folder"]) for feed in first.feeds()}
    assert {(feed["title"], feed["folder"]) for feed in second.feeds()} == sent


@given(st.lists(st.tuples(WORDS, st.lists(WORDS, max_size=12)), max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_names_stay_the_same_from_list_to_list(feeds: list[tuple[str, list[str]]]) -> None:
    """Once a list has been written by us, reading and writing it changes nothing any more."""
    listed = [
        Listed(f"https://site.example/{n}?a=1&b={n}", title, None, tuple(folders))
        for n, (title, folders) in enumerate(feeds)
    ]
    first = kept(write_opml(listed))
    second = kept(first)
    assert second == first
    assert len(ET.fromstring(first).findall(".//*[@xmlUrl]")) == len(feeds)


def kept(document: bytes) -> bytes:
    """As it is after an import and an export: what is stored is an address, a name and a path."""
    entries = [entry_of(each) for each in read_opml(document).subscriptions]
    return write_opml(
        Listed(url, title or url, None, tuple(folder.split("/")) if folder else ())
        for url, title, folder in entries
    )


def test_an_export_of_nothing_is_a_list_too(desk: Desk) -> None:
    assert exported(desk.reader()) == []
