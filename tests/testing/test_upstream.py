"""Upstreams that answer by a script, and remember when they were called."""

from __future__ import annotations

import pytest

from headway import App, BadStatus
from headway.testing import Answer, World

pytestmark = pytest.mark.usefixtures("worlds")


def test_each_call_gets_the_next_line_and_the_last_one_repeats() -> None:
    with World(App()) as world:
        site = world.upstream("x", [200, (429, "30s"), (503, 5), 404])
        answers = [site.answer() for _ in range(6)]
    assert answers == [
        Answer(200),
        Answer(429, 30.0),
        Answer(503, 5.0),
        Answer(404),
        Answer(404),
        Answer(404),
    ]


def test_without_a_script_all_is_well() -> None:
    with World(App()) as world:
        assert world.upstream("x").answer().status == 200
        assert world.upstream("x", []).answer().status == 200


def test_a_line_may_be_an_exception() -> None:
    with World(App()) as world:
        site = world.upstream("x", [TimeoutError("no answer"), 200])
        with pytest.raises(TimeoutError, match="no answer"):
            site.answer()
        assert site.answer().status == 200
        assert len(site.calls) == 2, "a call without an answer is a call"


def test_an_answer_has_headers_and_raises_for_its_status_like_that_of_a_client() -> None:
    Answer(204).raise_for_status()
    assert Answer(200).headers == {}
    answer = Answer(429, 30.0)
    assert answer.headers == {"Retry-After": "30"}
    with pytest.raises(BadStatus, match="429") as caught:
        answer.raise_for_status()
    assert (caught.value.status, caught.value.retry_after_s) == (429, 30.0)


def test_it_remembers_when_it_was_called() -> None:
    app = App()
    app.upstream("api.example.com", every="10s")

    @app.job(upstream="api.example.com")
    async def fetch() -> int:
        answer = await site.call()
        answer.raise_for_status()
        return answer.status

    with World(app) as world:
        site = world.upstream("api.example.com", [200, (429, "1m"), 200])
        start = world.now
        handles = [fetch.enqueue() for _ in range(4)]
        world.run_for("1h")
        assert [handle.result() for handle in handles] == [200] * 4
        assert [at - start for at in site.calls] == [0.0, 10.0, 70.0, 80.0, 90.0]
        assert site.gaps() == [10.0, 60.0, 10.0, 10.0]
        assert site.name == "api.example.com"


def test_nobody_called_means_no_gaps() -> None:
    with World(App()) as world:
        assert world.upstream("x").gaps() == []
