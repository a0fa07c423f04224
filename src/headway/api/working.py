"""What stands between the routes of workers and the engine's remote hands."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
from fastapi import Request

from headway.api.auth import Principal
from headway.api.bodies import as_text, check_type
from headway.api.problems import Problem
from headway.api.site import Site
from headway.core import Kind, Outcome, RetryPolicy, Scope
from headway.core.retry import DEFAULT_POLICIES, DEFAULT_POLICY
from headway.engine.hands import RemoteStop, RemoteWork
from headway.engine.hands.remote import Taker
from headway.engine.metering import LOST
from headway.engine.rules import rule_of
from headway.engine.schedules import ScheduleOptions
from headway.engine.settings import policy_of
from headway.outcomes import outcome_of_status, rates_in, with_rates
from headway.store.records import Schedule

Delivery = tuple[list[RemoteWork], list[RemoteStop]]


def wire(work: RemoteWork) -> dict[str, Any]:
    """A work as it goes over the wire. Payload and checkpoint are JSON already."""
    return {
        "id": work.id,
        "fence": work.fence,
        "type": work.type,
        "args": msgspec.Raw(work.args.encode()),
        "attempt": work.attempt,
        "upstream": work.upstream,
        "tenant": work.tenant,
        "key": work.key,
        "lane": work.lane,
        "timeout_s": work.timeout_s,
        "lease_s": work.lease_s,
        "checkpoint": None if work.checkpoint is None else msgspec.Raw(work.checkpoint.encode()),
    }


class Taking:
    """One request for work. Whoever hangs up gets nothing, and what was on its way comes back."""

    def __init__(self, site: Site, request: Request) -> None:
        self._site = site
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._delivery: asyncio.Future[Delivery] = self._loop.create_future()

    def _deliver(self, works: list[RemoteWork], stops: list[RemoteStop]) -> None:
        """From the brain's thread."""
        self._loop.call_soon_threadsafe(self._arrive, works, stops)

    def _arrive(self, works: list[RemoteWork], stops: list[RemoteStop]) -> None:
        if not self._delivery.done():
            self._delivery.set_result((works, stops))
        elif works:
            self._give_back(works)

    async def run(self, worker: str, types: list[str], size: int, wait_ms: int) -> Delivery:
        site = self._site
        engine = site.engine
        remote = engine.brain.remote
        if site.stopping:
            raise Problem(503, "the server is stopping; ask again when it is back",
                          kind="unavailable", headers={"Retry-After": "1"})  # fmt: skip
        if site.takers >= site.config.max_takers:
            raise Problem(503, f"{site.takers} requests for work wait already; try again",
                          kind="busy", headers={"Retry-After": "1"})  # fmt: skip
        try:
            taker = Taker(worker, types, size, self._deliver)
        except ValueError as error:
            raise Problem(422, str(error), kind="wrong-input") from error
        site.takers += 1
        try:
            await asyncio.wrap_future(engine.ask(lambda now: remote.take(taker, now)))
            here = await self._wait(wait_ms / 1000.0)
            left = self._delivery.done() or await asyncio.wrap_future(
                engine.ask(lambda now: remote.leave(taker, now))
            )
            if left and not self._delivery.done():
                return [], []
            works, stops = await self._delivery  # on its way already
            if not here and works:
                self._give_back(works)
                works = []
            return works, stops
        except asyncio.CancelledError:
            self._abandon(taker)
            raise
        finally:
            site.takers -= 1

    async def _wait(self, wait_s: float) -> bool:
        """For a delivery, or until the time is over. False: the worker has hung up."""
        if self._delivery.done() or not wait_s:
            return True
        gone = asyncio.ensure_future(self._disconnected())
        try:
            either: set[asyncio.Future[Any]] = {self._delivery, gone}
            await asyncio.wait(either, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return not gone.done()
        finally:
            gone.cancel()

    async def _disconnected(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass

    def _abandon(self, taker: Taker) -> None:
        """The request is cut off in the middle."""
        engine = self._site.app.engine
        if engine is None:
            return
        remote = engine.brain.remote
        if self._delivery.done():
            self._give_back(self._delivery.result()[0])
        else:
            self._delivery.cancel()  # what still comes goes back
            engine.ask(lambda now: remote.leave(taker, now))

    def _give_back(self, works: list[RemoteWork]) -> None:
        engine = self._site.app.engine
        if engine is not None and works:
            remote = engine.brain.remote
            engine.ask(lambda now: remote.give_back(works, now))


class Beating:
    def __init__(self, site: Site) -> None:
        self._engine = site.engine

    async def run(self, worker: str, beats: list[dict[str, Any]]) -> list[dict[str, Any]]:
        remote = self._engine.brain.remote
        said = [self._said(beat) for beat in beats]

        def beat_all(now: float) -> list[dict[str, Any]]:
            answers = []
            for id, fence, notes in said:
                beat = remote.heartbeat(id, fence, now, worker=worker, **notes)
                answers.append(
                    {"id": id, "fence": fence, "lease_s": beat.lease_s, "stop": beat.stop}
                )
            return answers

        try:
            return await asyncio.wrap_future(self._engine.ask(beat_all))
        except ValueError as error:
            raise Problem(422, str(error), kind="wrong-input") from error

    def _said(self, beat: dict[str, Any]) -> tuple[int, int, dict[str, Any]]:
        progress, checkpoint = beat["progress"], beat["checkpoint"]
        notes = {
            "progress": None if progress is None
            else (progress["done"], progress["total"], progress["note"]),
            "checkpoint": None if checkpoint is None else as_text(checkpoint),
            "logs": [(line["at"], line["level"], line["line"]) for line in beat["logs"]],
        }  # fmt: skip
        return beat["id"], beat["fence"], notes


class Completing:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def run(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        engine = self._site.engine
        remote = engine.brain.remote
        now = self._site.now()
        judged = [(each["id"], each["fence"], *_judged(each, now)) for each in jobs]

        def complete_all(now: float) -> list[Any]:
            return [
                remote.complete(id, fence, outcome, result, now)
                for id, fence, outcome, result in judged
            ]

        states = await asyncio.wrap_future(engine.ask(complete_all))
        answers = []
        for (id, fence, _, _), state in zip(judged, states, strict=True):
            if state is not None:
                answers.append({"id": id, "fence": fence, "accepted": True, "state": state.value})
            else:
                answers.append(await asyncio.to_thread(self._before, id, fence))
        return answers

    def _before(self, id: int, fence: int) -> dict[str, Any]:
        """Whether a report that is stale now was accepted when it first came."""
        row = self._site.store.job(id)
        ended = [event for event in self._site.store.events_of(id)
                 if event.fence == fence and event.before == "running"]  # fmt: skip
        accepted = bool(ended) and ended[-1].event not in LOST
        state = None if row is None else row.state
        return {"id": id, "fence": fence, "accepted": accepted, "state": state}


def _judged(said: dict[str, Any], now: float) -> tuple[Outcome, str | None]:
    """The outcome that a worker reports, and its result."""
    outcome = with_rates(_outcome(said, now), rates_in(said["headers"], now))
    body = said["body"]
    return outcome, as_text(body) if outcome.kind is Kind.OK and body is not None else None


def _outcome(said: dict[str, Any], now: float) -> Outcome:
    told, status = said["outcome"], said["status_code"]
    if (told is None) == (status is None):
        raise Problem(422, "send either outcome or status_code", kind="wrong-input")
    if told is None:
        return outcome_of_status(
            status, said["retry_after_s"], said["headers"], now=now,
            error=said["error"] or f"HTTP {status}",
        )  # fmt: skip
    error, after_s = told["error"], told["retry_after_s"]
    match told["kind"]:
        case "ok":
            return Outcome.ok(status=told["status"], hit_at=told["hit_at"])
        case "cancelled":
            return replace(Outcome.cancelled(), error=error)
        case "returned":
            return Outcome.returned(after_s=after_s or 0.0)
        case "pushback":
            return Outcome.pushback(
                status=told["status"] or 429, retry_after_s=after_s, ban=told["ban"],
                scope=Scope(told["scope"]), upstream_fault=told["upstream_fault"], error=error,
            )  # fmt: skip
    return Outcome.failed(
        error, fatal=told["fatal"], status=told["status"], retry_after_s=after_s,
        upstream_fault=told["upstream_fault"],
    )  # fmt: skip


class Introduction:
    """A worker says hello: what it can run, and what its code declares."""

    def __init__(self, site: Site, principal: Principal) -> None:
        self._site = site
        self._who = principal.who

    def make(
        self,
        worker: str,
        types: list[dict[str, Any]],
        settings: list[dict[str, Any]],
        schedules: list[dict[str, Any]],
    ) -> None:
        site = self._site
        engine = site.engine
        brain = engine.brain
        keep = {each["name"]: each["keep_result_s"] for each in types if "keep_result_s" in each}
        try:
            policies = {each["name"]: policy_of_type(each) for each in types}
            for each in settings:
                policy_of(each["kind"], each["value"], each["name"])
            rows = [_schedule(each, site.now()) for each in schedules]

            def say(now: float) -> None:
                brain.remote.hello(worker, policies, now, keep_result_s=keep)
                with brain.controls.acting(self._who):
                    for each in settings:
                        brain.controls.declare(each["kind"], each["name"], each["value"], now)
                    for row in rows:
                        brain.controls.schedule(row, now)

            site.wait(engine.ask(say))
        except (ValueError, msgspec.MsgspecError) as error:
            raise Problem(422, str(error), kind="wrong-input") from error


def policy_of_type(said: dict[str, Any]) -> RetryPolicy | None:
    """What is not said is as usual; None: nothing is."""
    rules = {name: value for name, value in said.items() if name not in ("name", "keep_result_s")}
    if not rules:
        return None
    usual = DEFAULT_POLICIES.get(said["name"], DEFAULT_POLICY)
    return RetryPolicy(**{
        name: rules.get(name, getattr(usual, name)) for name in RetryPolicy.__dataclass_fields__
    })  # fmt: skip


def _schedule(said: dict[str, Any], now: float) -> Schedule:
    """As the worker's own code would store it, once it is known to make sense."""
    check_type(said["type"])
    try:
        rule_of(said["rule"])
    except KeyError as error:
        raise ValueError(f"the rule of schedule {said['name']!r} lacks {error}") from None
    msgspec.json.decode(said["options"], type=ScheduleOptions)
    msgspec.json.decode(said["args"], type=dict[str, Any])
    return Schedule(
        said["name"], said["type"], said["args"], said["rule"], said["options"], paused=0,
        strikes=0, last_due_at=None, next_due_at=None, missed=0, created_at=now, source="code",
    )  # fmt: skip
