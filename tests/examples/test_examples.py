"""The examples run as they are, end by themselves, and show what they promise. On the second kind
of store they do so in `make soak`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores import second_store_in_the_soak

ROOT = Path(__file__).resolve().parent.parent.parent
ELSEWHERE = Path(__file__).with_name("elsewhere.py")
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


def run(name: str, url: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(ELSEWHERE), url, str(ROOT / "examples" / name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout


def number(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    assert match is not None, f"{pattern!r} is not in:\n{text}"
    return float(match.group(1))


def test_every_example_is_tested_here() -> None:
    assert EXAMPLES == [
        "celery_executor.py",
        "feed_reader.py",
        "llm_batch.py",
        "polite_celery.py",
        "polite_scraper.py",
        "recurring_feed_check.py",
        "slot_around_a_download.py",
        "video_archive.py",
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_what_it_is_and_how_to_run_it(name: str) -> None:
    text = (ROOT / "examples" / name).read_text("utf-8")
    assert text.startswith('"""')
    assert f"python examples/{name}" in text


@second_store_in_the_soak
def test_the_polite_scraper_fetches_all_and_is_told_off_once(url: str) -> None:
    said = run("polite_scraper.py", url)
    assert "pages: 12 of 12" in said
    assert "requests: 13, pushed back: 1, too early: 0" in said
    assert number(r"shortest gap: (\d+) ms", said) >= 50
    assert number(r"rest after the pushback: ([\d.]+) s", said) >= 0.9


@second_store_in_the_soak
def test_recurring_feeds_keep_their_turns_over_an_outage_and_a_crash(url: str) -> None:
    said = run("recurring_feed_check.py", url)
    assert number(r"failed (\d+) times in a row", said) >= 3
    counts = dict(re.findall(r"feeds\.example/(\w+): (\d+) checks, 0 failures", said))
    assert set(counts) == {"news", "weather", "recipes", "sports"}
    assert all(45 <= int(counts[name]) <= 48 for name in ("news", "weather", "recipes"))
    assert 35 <= int(counts["sports"]) <= 46
    assert number(r"slept through: (\d+) checks", said) >= 4


@second_store_in_the_soak
def test_slots_hold_a_program_of_ones_own_to_two_at_a_time_and_to_a_429(url: str) -> None:
    said = run("slot_around_a_download.py", url)
    assert "downloads: 8 of 8, 9 calls" in said
    assert "most at once: 2" in said
    assert number(r"left alone for ([\d.]+) s", said) >= 0.9


def test_a_batch_runs_beside_online_calls_and_nobody_is_refused() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "llm_batch.py")],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "batch completed: 30 of 30 lines answered" in ended.stdout
    assert "refused by the provider: 0 of" in ended.stdout
    assert number(r"online calls meanwhile: (\d+)", ended.stdout) >= 1


def test_the_first_steps_of_celery_become_polite_with_two_lines() -> None:
    text = (ROOT / "examples" / "polite_celery.py").read_text("utf-8")
    [call] = re.findall(r"^headway\.celery\.polite\(.*\)$", text, re.MULTILINE)
    assert "app" in call
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "polite_celery.py")],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "sums: [0, 2, 4, 6, 8, 10, 12, 14]" in ended.stdout
    assert number(r"at least (\d+) ms apart", ended.stdout) >= 195


def test_a_celery_fleet_fetches_all_at_the_pace_of_each_site() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "celery_executor.py")],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "pages: 12 of 12" in ended.stdout
    assert "pushed back: 1" in ended.stdout
    gaps = [int(each) for each in re.findall(r"at least (\d+) ms apart", ended.stdout)]
    assert len(gaps) == 3
    assert min(gaps) >= 195


def test_a_reader_subscribes_reads_and_is_polite() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "feed_reader.py")],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout
    assert "subscribed to The harbour, with 2 articles:" in said
    assert said.index("refreshed: 1 of 1, 1 new") < said.index("refreshed: 1 of 1, 0 new")
    assert "found: Fog tonight" in said
    assert "3 articles, 2 unread, 1 starred" in said
    assert number(r"at least ([\d.]+) s apart", said) >= 0.99
    assert "answers that nothing was new: 1" in said


@pytest.mark.soak  # tests/live/test_archive_live.py shows the same, and each program takes long
def test_an_archive_downloads_one_at_a_time_and_rests_after_a_412() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "video_archive.py")],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout
    assert re.search(r"1 of 3 are here; the next waits at .*412", said)
    assert "Harbour cameras: 3 on disk, 0 failed" in said
    assert "files: Camera 1.mp4, Camera 2.mp4, Camera 3.mp4" in said
    assert "times, at most 1 at once" in said
    assert "visits to videos by strangers: 0" in said
    assert number(r"it was left alone for ([\d.]+) s", said) >= 2.9
    came = re.search(r"412 to (\w+) .*\nthen (\w+) came; .* asked for 1 more time", said)
    assert came is not None
    assert set(came.groups()) == {"ann", "bob"}  # whoever was refused rests
