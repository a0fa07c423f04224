"""The rules of a tenant over HTTP: what becomes of articles as they come."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import uuid4

import msgspec
from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field, StringConstraints

from headway.api.auth import Principal, Reader, Submitter
from headway.api.bodies import NO_NUL, WHOLE, Body, Name
from headway.api.problems import Problem, documented
from headway.api.site import Reply, TheSite
from headway.api.turns import in_own_name
from headway.api.views import moment
from headway.apps.feeds.applying import APPLY, Seen, folders_of, matching, newest_first
from headway.apps.feeds.folders import folder_path
from headway.apps.feeds.routes.reach import TheFeeds, owner
from headway.apps.feeds.rules import (
    MAX_CONDITIONS,
    MAX_RULES,
    MAX_TEXT,
    Action,
    Rule,
    Test,
    fault_in,
)
from headway.apps.feeds.rules import Field as Where
from headway.apps.feeds.ruling import KeptRule, TooManyRules
from headway.apps.feeds.scheduling import BY_HAND, LANE
from headway.store.records import NewJob, Unique, UniqueScope

router = APIRouter(tags=["Feeds"])

TRIED = 100  # articles that a rule is tried on
NEW: dict[str, Any] = {"conditions": ()}  # what a rule is before anything is said of it
MAX_PLACES = 1_000  # feeds or folders that one rule names

RuleId = Annotated[str, Path(max_length=100, description="The id of a rule.")]
Sought = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT, pattern=NO_NUL)]
Place = Annotated[int, Field(ge=1, le=MAX_RULES), WHOLE]
Places = Annotated[list[Name], Field(max_length=MAX_PLACES)]


# ---------------------------------------------------------------------- what is sent and shown


class ConditionBody(Body):
    """Something that must hold of an article. Capitals do not matter."""

    text: Sought = Field(description="What is looked for, letter by letter; no pattern.")
    field: Where = Field("any", description="Where: in all of it, or in one part.")
    test: Test = Field(
        "contains", description="The text is in there, is not in there, or is all of it."
    )


class RuleChangeBody(Body):
    """What changes. All that is left out stays."""

    name: Name = Field("", description="What its owner calls it.")
    actions: Annotated[list[Action], Field(min_length=1, max_length=3)] = Field(
        [], description="What becomes of an article: read, star or drop. A star keeps it."
    )
    conditions: Annotated[list[ConditionBody], Field(max_length=MAX_CONDITIONS)] = Field(
        [], description="All of them must hold; none: every article of its feeds and folders."
    )
    feeds: Places = Field([], description="The ids of the feeds that it is for.")
    folders: Places = Field(
        [], description="The folders that it is for, with those inside; no feed and none: all."
    )
    enabled: bool = Field(True, description="Whether it is followed.")
    place: Place | None = Field(
        None, description="Where it stands among the others, from 1 on; null: where it is."
    )


class RuleBody(RuleChangeBody):
    """A rule for the articles of feeds, as they come."""

    name: Name = Field(description="What its owner calls it.")
    actions: Annotated[list[Action], Field(min_length=1, max_length=3)] = Field(
        description="What becomes of an article: read, star or drop. A star keeps it."
    )
    place: Place | None = Field(
        None, description="Where it stands among the others, from 1 on; null: at the end."
    )


class ConditionModel(BaseModel):
    text: str
    field: Where
    test: Test


class RuleModel(BaseModel):
    id: str
    name: str
    place: int = Field(description="1 is the first.")
    actions: list[Action]
    conditions: list[ConditionModel]
    feeds: list[str]
    folders: list[str]
    enabled: bool
    created_at: str


class RuleList(BaseModel):
    items: list[RuleModel] = Field(description="In their order.")
    count: int
    limit: int = Field(description="How many there may be.")


class MatchModel(BaseModel):
    id: int = Field(description="The id of the article.")
    feed_id: str
    title: str | None
    link: str | None
    published_at: str | None


class TrialModel(BaseModel):
    looked_at: int = Field(description="How many articles it was tried on: the newest.")
    matched: int
    items: list[MatchModel] = Field(description="Those that it is about.")


class ApplyingModel(BaseModel):
    task_id: int = Field(description="The job that does it; its result says how many matched.")
    status: str = Field(description="queued")


def rule_view(kept: KeptRule) -> dict[str, Any]:
    said: dict[str, Any] = msgspec.to_builtins(kept.rule)
    return {"id": kept.id, "place": kept.place, **said, "created_at": moment(kept.created_at)}


def match_view(seen: Seen) -> dict[str, Any]:
    return {
        "id": seen.id, "feed_id": seen.feed, "title": seen.title, "link": seen.link,
        "published_at": moment(seen.at),
    }  # fmt: skip


# ---------------------------------------------------------------------- checking


def checked(
    before: dict[str, Any], body: RuleChangeBody, feeds: TheFeeds, tenant: str
) -> tuple[Rule, int | None]:
    """The rule with what was sent, and the place that it shall have."""
    sent = body.model_dump(exclude_unset=True)
    place = sent.pop("place", None)
    strange = [
        each for each in sent.get("feeds", ()) if (tenant, each) not in feeds.register.subscriptions
    ]
    if strange:
        raise _bad(f"you have no feed {strange[0]!r}; GET /api/backend/feeds lists yours")
    if "folders" in sent:
        sent["folders"] = list(dict.fromkeys(map(folder_path, sent["folders"])))
        if "" in sent["folders"]:
            raise _bad("a folder has a name; leave it out to mean all of them")
    if "actions" in sent:
        sent["actions"] = list(dict.fromkeys(sent["actions"]))
    rule = msgspec.convert({**before, **sent}, Rule)
    fault = fault_in(rule)
    if fault is not None:
        raise _bad(fault)
    return rule, place


def _bad(detail: str) -> Problem:
    return Problem(422, detail, kind="bad-rule")


def _unknown(id: str) -> Problem:
    return Problem(404, f"there is no rule {id!r}", kind="unknown-rule")


def _own(feeds: TheFeeds, principal: Principal, id: str) -> KeptRule:
    try:
        return feeds.ruling.get(owner(principal), id)
    except KeyError:
        raise _unknown(id) from None


# ---------------------------------------------------------------------- routes


@router.get(
    "/api/backend/rules",
    summary="List your rules",
    operation_id="listRules",
    response_class=Reply,
    responses={200: {"model": RuleList}, **documented()},
)
def list_rules(site: TheSite, feeds: TheFeeds, principal: Reader) -> Response:
    assert site.engine  # without one nobody knows them
    kept = feeds.ruling.of_tenant(owner(principal))
    items = [rule_view(each) for each in kept]
    return Reply({"items": items, "count": len(items), "limit": MAX_RULES})


@router.post(
    "/api/backend/rules",
    status_code=201,
    summary="Add a rule",
    operation_id="addRule",
    response_class=Reply,
    responses={201: {"model": RuleModel}, **documented(409)},
)
def add_rule(body: RuleBody, site: TheSite, feeds: TheFeeds, principal: Submitter) -> Response:
    """It is followed from the next article on. What is there already stays as it is until the rule
    is applied to it.
    """
    tenant = owner(principal)
    rule, place = checked(NEW, body, feeds, tenant)
    id = uuid4().hex

    def add(now: float) -> KeptRule:
        try:
            return feeds.ruling.add(tenant, id, rule, place, now)
        except TooManyRules:
            raise Problem(409, f"you have {MAX_RULES} rules, and may not have more; remove one",
                          kind="too-many-rules") from None  # fmt: skip

    kept = in_own_name(site, principal, add)
    return Reply(rule_view(kept), 201, headers={"Location": f"/api/backend/rules/{id}"})


@router.post(
    "/api/backend/rules/try",
    summary="See which of your newest articles a rule would be about",
    operation_id="tryRule",
    response_class=Reply,
    responses={200: {"model": TrialModel}, **documented()},
)
def try_rule(body: RuleBody, feeds: TheFeeds, principal: Reader) -> Response:
    """Nothing is changed, and nothing is kept."""
    tenant = owner(principal)
    rule, _ = checked(NEW, body, feeds, tenant)
    seen = next(newest_first(feeds.store, tenant, rule, TRIED), [])
    found = matching(rule, seen, folders_of(feeds.register, tenant))
    items = [match_view(each) for each in found]
    return Reply({"looked_at": len(seen), "matched": len(items), "items": items})


@router.get(
    "/api/backend/rules/{id}",
    summary="Look at a rule",
    operation_id="getRule",
    response_class=Reply,
    responses={200: {"model": RuleModel}, **documented(404)},
)
def get_rule(id: RuleId, site: TheSite, feeds: TheFeeds, principal: Reader) -> Response:
    assert site.engine
    return Reply(rule_view(_own(feeds, principal, id)))


@router.patch(
    "/api/backend/rules/{id}",
    summary="Change a rule",
    operation_id="changeRule",
    response_class=Reply,
    responses={200: {"model": RuleModel}, **documented(404)},
)
def change_rule(
    id: RuleId, body: RuleChangeBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    """What is left out stays. It holds from the next article on."""
    tenant = owner(principal)

    def change(now: float) -> KeptRule:
        before = msgspec.to_builtins(_own(feeds, principal, id).rule)
        rule, place = checked(before, body, feeds, tenant)
        return feeds.ruling.change(tenant, id, rule, place, now)

    return Reply(rule_view(in_own_name(site, principal, change)))


@router.delete(
    "/api/backend/rules/{id}",
    status_code=204,
    summary="Remove a rule",
    operation_id="removeRule",
    response_class=Response,
    responses=documented(404),
)
def remove_rule(id: RuleId, site: TheSite, feeds: TheFeeds, principal: Submitter) -> Response:
    """What it has done stays."""

    def remove(now: float) -> None:
        feeds.ruling.remove(owner(principal), _own(feeds, principal, id).id, now)

    in_own_name(site, principal, remove)
    return Response(status_code=204)


@router.post(
    "/api/backend/rules/{id}/apply",
    status_code=202,
    summary="Apply a rule to the articles that are there already",
    operation_id="applyRule",
    response_class=Reply,
    responses={202: {"model": ApplyingModel}, **documented(404)},
)
def apply_rule(id: RuleId, site: TheSite, feeds: TheFeeds, principal: Submitter) -> Response:
    """A job goes through all of them, also if the rule is switched off. What you have starred is
    not dropped. `/api/jobs/{task_id}` says how far it is.
    """
    tenant = owner(principal)
    _own(feeds, principal, id)
    args = msgspec.json.encode({"tenant": tenant, "rule": id}).decode()
    wish = NewJob(
        APPLY, args, created_at=site.now(), lane=LANE, tenant=tenant, key=f"{APPLY}:{tenant}",
        priority=BY_HAND, unique=Unique(f"{APPLY}:{id}", UniqueScope.QUEUED),
    )  # fmt: skip
    handle = site.app.enqueue_many((wish,))[0]
    site.record(principal, "rule_applied", f"rule:{id}")
    headers = {"Location": f"/api/jobs/{handle.id}"}
    return Reply({"task_id": handle.id, "status": "queued"}, 202, headers=headers)
