"""How subscriptions and videos look to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import Any

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from headway.cli.printing import WIDE, count, facts, number, plain, rows, table, word
from headway.cli.times import ago, at_and_ago, duration_text, moment

ROOMY, ROOMIER = 100, 130  # columns
SPARED = ("site", "quality")  # where there is little room
SHORT = 28  # characters of a title beside others
STYLES = {"done": "green", "failed": "red", "missing": "red", "queued": "blue",
          "skipped": "bright_black"}  # fmt: skip
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
KB = 1000.0


def size_words(size: float | None) -> str:
    """`80 MB`, `1.2 GB`; empty: nobody knows."""
    if size is None:
        return ""
    for unit in UNITS[:-1]:
        if size < KB - 0.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= KB
    return f"{size:.1f} {UNITS[-1]}"


def clock_words(seconds: float | None) -> str:
    """How long a video is: `4:05`, `1:02:03`."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _many(value: int) -> str:
    return f"{value:,}" if value else ""


def grey(text: str) -> Text:
    return word(text, "bright_black")


# ---------------------------------------------------------------------- subscriptions


def next_words(each: dict[str, Any]) -> str:
    if each["busy"]["listing"] is not None:
        return "now"
    if each["paused"]:
        return "paused"
    at = moment(each["next_refresh_at"])
    if at is None:
        return "by hand"
    return "soon" if at <= time() else ago(each["next_refresh_at"])


def subscription_table(found: Sequence[dict[str, Any]], width: int = WIDE) -> RenderableType:
    if not found:
        return grey("no subscriptions; add one with `headway archive add`")
    counts = [each["counts"] for each in found]
    columns: dict[str, list[Any]] = {
        "id": [each["id"] for each in found],
        "name": [each["name"] for each in found],
        "site": [each["site"] for each in found],
        "expected": [number(each["expected_total"]["value"], "") for each in found],
        "on disk": [_many(each["on_disk"]) for each in counts],
        "pending": [_many(each["pending"]) for each in counts],
        "failed": [Text(_many(each["failed"]), "red") for each in counts],
        "missing": [Text(_many(each["missing"]), "red") for each in counts],
        "next look": [next_words(each) for each in found],
        "what is wrong": [each["error"] or "" for each in found],
    }
    if width < ROOMY:
        columns = {name: cells for name, cells in columns.items() if name not in SPARED}
    used = {name: cells for name, cells in columns.items() if any(cells)}  # no empty columns
    shown = table(*used, right=("id", "expected", "on disk", "pending", "failed", "missing"),
                  cut=("name", "site", "what is wrong"))  # fmt: skip
    return Group(rows(shown, zip(*used.values(), strict=True), ""), Text(""), _sum(found))


def _sum(found: Sequence[dict[str, Any]]) -> Text:
    total = {name: sum(each["counts"][name] for each in found)
             for name in ("on_disk", "pending", "failed", "missing", "bytes")}  # fmt: skip
    words = [count(len(found), "subscription")]
    on_disk = f"{count(total['on_disk'], 'video')} on disk"
    words.append(f"{on_disk} ({size_words(total['bytes'])})" if total["bytes"] else on_disk)
    words += [f"{total[name]:,} {name}" for name in ("pending", "failed", "missing") if total[name]]
    return grey(", ".join(words))


def subscription_facts(each: dict[str, Any], story: str = "") -> RenderableType:
    """`story`: what runs or waits, in words."""
    counts, total = each["counts"], each["expected_total"]
    asked = ago(total["checked_at"])
    return facts((
        ("subscription", each["id"]), ("name", each["name"]),
        ("at the site", each["found_title"] if each["found_title"] != each["name"] else None),
        ("address", each["url"]), ("site", each["site"]), ("tenant", each.get("tenant")),
        ("paused", "yes" if each["paused"] else None),
        ("what is wrong", Text(plain(each["error"]), "red") if each["error"] else None),
        ("failed in a row", each["failures"] or None),
        ("expected", None if total["value"] is None else f"{total['value']:,} ({asked})"),
        ("on disk", f"{counts['on_disk']:,} ({size_words(counts['bytes'])})"),
        ("pending", pending_words(each)), ("failed", _many(counts["failed"])),
        ("missing", _many(counts["missing"])), ("skipped", _many(counts["skipped"])),
        ("not listed now", _many(counts["gone"])),
        ("quality", each["quality"]), ("only", filter_words(each["filters"])),
        ("how far back", f"the newest {each['depth']:,}" if each["depth"] else "all"),
        ("files", each["template"] or "as usual"), ("for media servers", each["nfo"]),
        ("looked at", look_words(each)), ("downloads", None if each["download"] else "by hand"),
        ("next look", next_look(each)), ("list read", at_and_ago(each["listed_at"])),
        ("to its end", at_and_ago(each["full_at"]) or ("yes" if each["complete"] else "never")),
        ("being done", busy_words(each)), ("at this moment", story),
        ("added", at_and_ago(each["created_at"])),
    ))  # fmt: skip


def pending_words(each: dict[str, Any]) -> str:
    pending, queued = each["counts"]["pending"], each["counts"]["queued"]
    if not pending:
        return ""
    return f"{pending:,}, {'all' if queued == pending else f'{queued:,}'} of them in line"


def look_words(each: dict[str, Any]) -> str:
    return f"every {duration_text(each['interval_s'])}" if each["interval_s"] else "by hand"


def next_look(each: dict[str, Any]) -> str | None:
    words = next_words(each)
    if words in ("by hand", "paused"):
        return None
    return words if words in ("now", "soon") else at_and_ago(each["next_refresh_at"])


def busy_words(each: dict[str, Any]) -> str:
    """With the numbers that `headway jobs` knows."""
    busy = each["busy"]
    words = [f"{what} (job {busy[name]})" for name, what in
             (("listing", "its list is read"), ("counting", "it is counted"))
             if busy[name] is not None]  # fmt: skip
    if busy["downloads_open"]:
        words.append(f"{count(busy['downloads_open'], 'download')} in line")
    return ", ".join(words)


def filter_words(filters: Mapping[str, Any]) -> str:
    words = [f"titles with {_or(filters['title_any'])}"] if filters["title_any"] else []
    words += [f"not with {_or(filters['title_none'])}"] if filters["title_none"] else []
    words += [f"{word} {filters[word][:10]}" for word in ("after", "before") if filters[word]]
    for name, said in (("min", "at least"), ("max", "at most")):
        if filters[f"{name}_duration_s"] is not None:
            words.append(f"{said} {duration_text(filters[f'{name}_duration_s'])} long")
        if filters[f"{name}_views"] is not None:
            words.append(f"{said} {filters[f'{name}_views']:,} views")
    return ", ".join(words)


def _or(found: Sequence[str]) -> str:
    return " or ".join(map(repr, found))


def added_words(each: dict[str, Any], *, served: bool) -> str:
    head = f"{each['name']} is added as {each['id']}: "
    if each["paused"]:
        return f"{head}nothing happens until it is resumed"
    if not served:
        return f"{head}its list is read when a server runs"
    what = "downloads follow" if each["download"] else "nothing is downloaded by itself"
    return f"{head}its list is being read, {what}"


# ---------------------------------------------------------------------- looking and counting


def collection_view(found: dict[str, Any]) -> RenderableType:
    entries = found["entries"]
    what = facts((
        ("kind", "a list" if found["kind"] == "playlist" else "a single video"),
        ("title", found["title"]), ("by", found["uploader"]), ("address", found["url"]),
        ("site", found["site"]), ("videos", found["total"]),
    ))  # fmt: skip
    if not entries:
        return what
    shown = table("title", "length", "published", "address", right=("length",),
                  cut=("title", "address"))  # fmt: skip
    listed = rows(
        shown,
        (
            (each.get("title") or each.get("key") or "", clock_words(each.get("duration_s")),
             day_words(each.get("published_at")), each.get("url") or "")
            for each in entries
        ),
        "",
    )  # fmt: skip
    more = (found["total"] or 0) - len(entries)
    return Group(what, Text(""), listed, *([grey(f"and {more:,} more")] if more > 0 else []))


def day_words(at: Any) -> str:
    """The day, in UTC, of a time that is a number or text."""
    if isinstance(at, int | float):
        return datetime.fromtimestamp(at, UTC).date().isoformat() if 0 < at < 1e11 else ""
    return str(at)[:10] if at else ""


def total_words(answer: dict[str, Any], name: str) -> str:
    fresh = f", as counted {ago(answer['checked_at'])}" if answer["cached"] else ""
    return f"{name} should have {count(answer['expected_total'], 'video')}{fresh}"


# ---------------------------------------------------------------------- videos


def item_table(
    answer: dict[str, Any], names: Mapping[int, str], width: int = WIDE
) -> RenderableType:
    items = answer["items"]
    columns: dict[str, list[Any]] = {
        "id": [each["id"] for each in items],
        "title": [title_text(each) for each in items],
        "of": [_short(names.get(each["subscription"] or 0, "")) for each in items],
        "published": [day_words(each["published_at"]) for each in items],
        "length": [clock_words(each["duration_s"]) for each in items],
        "size": [size_words(each["size_bytes"]) for each in items],
        "state": [Text(each["state"], STYLES.get(each["state"], "")) for each in items],
        "why": [each["reason"] or "" for each in items],
    }
    if width < ROOMY:
        del columns["length"], columns["size"]
    if width < ROOMIER and len(set(columns["of"])) <= 1:
        del columns["of"]
    used = {name: cells for name, cells in columns.items() if any(cells)}
    shown = rows(
        table(*used, right=("id", "length", "size"), cut=("title", "of", "why")),
        zip(*used.values(), strict=True), "no such videos",
    )  # fmt: skip
    return Group(shown, *_more(answer))


def _more(answer: dict[str, Any]) -> list[RenderableType]:
    more = answer["total"] - len(answer["items"])
    if more <= 0 or not answer["items"]:
        return []
    return [Text(""), grey(f"and {more:,} more; see them with --limit")]


def title_text(each: dict[str, Any]) -> Text:
    """It leads to the page of the video where a terminal can do that."""
    return Text(plain(each["title"] or each["url"]), Style(link=plain(each["url"])))


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def failure_table(
    answer: dict[str, Any], names: Mapping[int, str], width: int = WIDE
) -> RenderableType:
    items = answer["items"]
    if not items:
        return grey("no such failures" if answer["classes"] else "nothing has failed")
    columns: dict[str, list[Any]] = {
        "id": [each["id"] for each in items],
        "class": [each["class"] for each in items],
        "title": [title_text(each) for each in items],
        "of": [_short(names.get(each["subscription"] or 0, "")) for each in items],
        "tries": [each["failures"] for each in items],
        "when": [ago(each["changed_at"]) for each in items],
        "message": [each["message"] or "" for each in items],
    }
    if width < ROOMY:
        del columns["of"], columns["tries"]
    shown = table(*columns, right=("id", "tries"), cut=("title", "of", "message"))
    classes = sorted(answer["classes"].items(), key=lambda each: -each[1])
    summed = ", ".join(f"{many:,} {name}" for name, many in classes)
    return Group(
        rows(shown, zip(*columns.values(), strict=True), ""), *_more(answer), Text(""), grey(summed)
    )


def got_words(result: dict[str, Any] | None) -> RenderableType:
    """What came of one download."""
    if result is None:
        return "it is done"
    if "skipped" in result:
        return word(f"it is left out: {result['skipped']}", "yellow")
    there = "was here already" if result["was_there"] else "is here"
    head = f"it {there}: {size_words(result['size_bytes'])}"
    return Group(head, facts(tuple(result["files"].items())))
