"""A podcast is a document that every player can read, whatever a site calls its videos."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import feedparser
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.apps.media import items
from headway.apps.media.library.kinds import IMAGES, VIDEOS
from headway.apps.media.model import Subscription, new_subscription
from headway.apps.media.podcast import ITUNES, Episode, changed_at, feed
from headway.apps.media.serving import BYTES, content_type

BASE = "https://headway.example"
MEDIA = sorted(VIDEOS)


def subscription(title: str = "A list") -> Subscription:
    row = new_subscription(7, "", "https://v.example/list", "v.example", "generic", 1e9)
    return row._replace(title=title)


def episode(
    id: int = 1, video: str = "a.mp4", thumbnail: str | None = None, **told: object
) -> Episode:
    entry = {"key": f"x:{id}", "url": f"https://v.example/{id}", "title": "One"}
    made = items.new_item(id, "", 7, entry, 1e9)._replace(state="done", size_bytes=5, **told)
    return Episode(made, video, thumbnail)


def shown(*episodes: Episode, title: str = "A list") -> bytes:
    return feed(subscription(title), "s3cret", BASE, episodes)


texts = st.text(max_size=50)
episodes = st.builds(
    lambda id, title, uploader, at, duration, suffix: episode(
        id, f"a{suffix}", "a.jpg", title=title, uploader=uploader, published_at=at,
        duration_s=duration,
    ),
    st.integers(1, 2**53), st.none() | texts, st.none() | texts,
    st.none() | st.floats(-1e12, 1e12), st.none() | st.floats(0, 1e9), st.sampled_from(MEDIA),
)  # fmt: skip


@given(texts, st.lists(episodes, max_size=5))
@settings(max_examples=150)
def test_whatever_things_are_called_it_can_be_read(title: str, listed: list[Episode]) -> None:
    document = shown(*listed, title=title)
    root = ET.fromstring(document)
    assert len(root.findall("channel/item")) == len(listed)
    read = feedparser.parse(document)
    assert not read.bozo
    assert read.version == "rss20"
    for entry, made in zip(read.entries, listed, strict=True):
        (enclosure,) = entry.enclosures
        suffix = made.video.rpartition(".")[2]
        assert enclosure.href == f"{BASE}/podcasts/s3cret/{made.item.id}.{suffix}"
        assert entry.published_parsed is not None
        assert not entry.guidislink


def test_a_player_hears_how_long_it_is_and_sees_a_picture_that_it_knows() -> None:
    document = shown(
        episode(1, thumbnail="a.jpg", duration_s=75.6), episode(2, thumbnail="a.avif"), episode(3)
    )
    first, second, third = ET.fromstring(document).findall("channel/item")
    assert first.findtext(f"{{{ITUNES}}}duration") == "76"
    image = first.find(f"{{{ITUNES}}}image")
    assert image is not None
    assert image.get("href") == f"{BASE}/podcasts/s3cret/1.jpg"
    assert second.find(f"{{{ITUNES}}}image") is None
    assert third.findtext(f"{{{ITUNES}}}duration") is None


def test_no_directory_may_list_it() -> None:
    channel = ET.fromstring(shown()).find("channel")
    assert channel is not None
    assert channel.findtext(f"{{{ITUNES}}}block") == "Yes"


def test_an_episode_is_the_same_one_after_a_rotation_and_an_import() -> None:
    guid = ET.fromstring(shown(episode(1))).findtext("channel/item/guid")
    other = ET.fromstring(feed(subscription(), "other", "http://other", [episode(1)]))
    assert guid == other.findtext("channel/item/guid") == "headway:7:x:1"


def test_it_is_as_new_as_the_last_change() -> None:
    assert changed_at(subscription(), []) == 1e9
    assert changed_at(subscription(), [episode(1, changed_at=5.0), episode(2, changed_at=9.0)]) == 9


def test_every_kind_that_is_kept_has_a_type_that_no_browser_runs() -> None:
    for suffix in VIDEOS | IMAGES:
        kind = content_type(f"a{suffix}")
        assert kind.startswith(("video/", "audio/", "image/")) or kind == BYTES
    assert content_type("A.MP4") == "video/mp4"
    assert content_type("page.html") == content_type("a.svg") == content_type("a") == BYTES
