"""Names of tenants that look like those that the feeds use themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headway.apps.feeds.scheduling import COUNTED_FOR
from tests.contract.feeds_kit import Desk, Reader, feeds_desk, signed
from tests.contract.kit import Api, new_name
from tests.hands.kit import eventually

ARTICLES = "/api/backend/articles"
ODD = ("by:{}", "{} ", " {}", "{}'--", '{}"', "{}/x", "{}\\", "%{}", "{}" + "ü" * 150, "Feeds:{}")


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with feeds_desk() as desk:
        yield desk


def test_nobody_signs_in_as_who_refreshes_are_counted_for(desk: Desk) -> None:
    """The jobs that refresh feeds are not those of any tenant: whoever could sign in under the name
    that they are counted for could look at them, and cancel them for everybody who reads them.
    """
    bob = desk.reader()
    bob.settled(bob.add(desk.site.page("one"))["id"])
    operator = desk.admin()
    counted_for = {
        each["tenant"] for each in operator.get("/api/jobs", type="feeds.refresh")["items"]
    }
    assert f"{COUNTED_FOR}{bob.tenant}" in counted_for
    for name in (*counted_for, COUNTED_FOR):
        with Api(desk.server.url, signed(name, "read", "operate")) as thief:
            problem = thief.problem(401, "GET", "/api/jobs", "no-token")
            assert "nobody signs in as this tenant" in problem["detail"]
        wanted = {"name": new_name(), "scopes": ["read"], "tenant": name}
        problem = operator.problem(422, "POST", "/api/tokens", "bad-job", json=wanted)
        assert "choose another one" in problem["detail"]


@pytest.mark.parametrize("odd", ODD)
def test_a_name_that_looks_like_another_is_another(desk: Desk, odd: str) -> None:
    bob = desk.reader()
    other = desk.reader(odd.format(bob.tenant), "read", "submit", "operate")
    page = desk.site.page("shared")
    for each, title in ((bob, "of bob"), (other, "of another")):
        each.settled(each.add(page, id="same", folder="News")["id"])
        each.post(ARTICLES, {"feed_id": "same", "guid": "the same", "title": title})
    for each, title in ((bob, "of bob"), (other, "of another")):
        eventually(lambda each=each: len(titles(each)) == 2)
        assert titles(each) == [title, "shared"]
        assert titles(each, q="of") == [title]
    assert other.get("/api/jobs")["items"] == []
    other.post(f"{ARTICLES}/mark-read", {"folder": "News"})
    other.remove("same")
    assert len(titles(bob, unread=True)) == 2


def titles(reader: Reader, **wanted: object) -> list[str]:
    return sorted(each["title"] for each in reader.get(ARTICLES, **wanted)["items"])
