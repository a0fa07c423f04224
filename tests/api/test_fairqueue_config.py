"""The `config.json` of the slot handler, as those who run it have it."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import __version__
from headway.api.fairqueue.config import FairQueueConfig, is_fairqueue_config, load, parse
from headway.api.fairqueue.profiles import KEYS, PROBING, WHOLE
from headway.core import BreakerRule
from headway.engine.settings import policy_of
from headway.engine.slots.terms import Terms, Weighting
from headway.errors import BadSettings

DOCUMENT: dict[str, Any] = {
    "listen": ":8080",
    "logLevel": "warn",
    "auth": {"enabled": True, "header": "X-Key", "token": "the clients' key"},
    "backend": {
        "mode": "postgrest",
        "postgrest": {"baseUrl": "https://db.example.com", "authHeader": "Bearer rest-secret"},
        "postgres": {"dsn": "postgres://me:db-secret@db.example.com:5432/slots"},
    },
    "fairQueue": {
        "maxWaitMs": 60_000,
        "pollIntervalMs": 250,
        "pollWindowMs": 5_000,
        "minSlotHoldMs": 800,
        "smoothReleaseIntervalMs": None,
        "sessionIdleSeconds": 45,
        "maxSlotPerHost": 8,
        "maxSlotPerIp": 2,
        "maxWaitersPerIp": 3,
        "maxWaitersPerHost": 40,
        "zombieTimeoutSeconds": 20,
        "ipCooldownSeconds": 4,
        "defaultGrantedCleanupDelay": 7,
        "weightedScheduler": {
            "enabled": True,
            "hotPendingFactor": 4,
            "hotPendingMin": 16,
            "coldAvgWaitMs": 500,
            "hotAvgWaitMs": 2300,
            "maxProbesPerCycle": 5,
            "baseWeight": 2,
            "weightPerWait": 0.5,
        },
        "rpc": {"tryAcquireFunc": "download_try_acquire_slot"},
        "cleanup": {"enabled": True, "intervalSeconds": 600, "queueDepthZombieTtlSeconds": 10},
    },
    "internalApiToken": "the operators' key",
    "controller": {
        "url": "https://controller.example.com/",
        "apiToken": "the controller's key",
        "env": "prod",
        "instanceId": "slots-1",
    },
}


def with_queue(**keys: Any) -> FairQueueConfig:
    return parse({"fairQueue": keys})


def refused(document: Any) -> str:
    with pytest.raises(BadSettings) as caught:
        parse(document)
    return str(caught.value)


# ---------------------------------------------------------------------- a whole document


def test_a_whole_document_loads_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(DOCUMENT))
    config = load(file)

    assert (config.host, config.port, config.log_level) == ("0.0.0.0", 8080, "warning")
    assert (config.auth.enabled, config.auth.header) == (True, "X-Key")
    assert config.auth.token == "the clients' key"
    assert config.internal_api_token == "the operators' key"
    assert config.controller.enabled
    assert config.controller.url == "https://controller.example.com"
    assert config.controller.token == "the controller's key"
    assert (config.controller.env, config.controller.role) == ("prod", "slot-handler")
    assert (config.controller.instance_id, config.controller.app_name) == (
        "slots-1",
        "slot-handler",
    )
    assert (config.cleanup.enabled, config.cleanup.interval_s, config.cleanup.ttl_s) == (
        True, 600, 10,
    )  # fmt: skip
    profile = config.profile("any.example.com")
    assert profile.terms == Terms(
        lease_s=20, max_wait_s=60, idle_s=45, claim_s=2, keep_s=7, max_waiters=40,
        max_waiters_per_tenant=3, weighting=Weighting(base=2.0, per_wait=0.5, wait_s=0.25),
    )  # fmt: skip
    assert profile.window_s == 5.0
    assert profile.settings == {
        "limit": 8,
        "min_hold": "0.800s",
        "breaker": True,
        "tenant": {"limit": 2, "cooldown": "4s", "only": "ip:"},
    }


def test_what_has_no_effect_is_noted_with_the_reason() -> None:
    notes = parse(DOCUMENT).notes

    noted = {note.partition(" ")[0] for note in notes}
    assert noted == {
        "backend.mode",
        "backend.postgrest",
        "backend.postgres.dsn",
        "fairQueue.rpc",
        *(f"fairQueue.weightedScheduler.{key}" for key in PROBING),
    }
    assert all(note.endswith(".") for note in notes)
    assert "fairQueue.rpc is not needed: no function of a database is called." in notes


def test_an_empty_document_has_all_the_defaults() -> None:
    config = parse({})

    assert (config.host, config.port, config.log_level, config.dsn) == (None, None, None, None)
    assert (config.auth.enabled, config.auth.header) == (False, "X-FQ-Auth")
    assert (config.internal_api_token, config.controller.enabled) == ("", False)
    assert (config.config_version, config.max_sessions) == ("local", 10_000)
    assert (config.cleanup.enabled, config.cleanup.interval_s, config.cleanup.ttl_s) == (
        True, 1800, 20,
    )  # fmt: skip
    assert config.base.terms == Terms(
        lease_s=30, max_wait_s=20, idle_s=90, claim_s=2, keep_s=5, max_waiters=50,
        max_waiters_per_tenant=None, weighting=None,
    )  # fmt: skip
    assert config.base.window_s == 6.0
    assert config.base.settings == {
        "limit": 5,
        "breaker": True,
        "tenant": {"limit": 1, "only": "ip:"},
    }
    assert config.notes == ()
    assert config.controller.app_version == __version__
    assert config.controller.instance_id == parse({}).controller.instance_id != ""


def test_null_is_the_same_as_missing() -> None:
    empty = {"fairQueue": dict.fromkeys(KEYS), "auth": None, "backend": None, "controller": None}

    assert parse(empty) == parse({})


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize("value", [0, -1, -2.0])
def test_zero_and_less_switches_off_what_can_be_off(value: float) -> None:
    config = with_queue(
        minSlotHoldMs=value, maxWaitersPerHost=value, maxWaitersPerIp=value, ipCooldownSeconds=value
    )

    terms, settings = config.base.terms, config.base.settings
    assert (terms.max_waiters, terms.max_waiters_per_tenant) == (None, None)
    assert "min_hold" not in settings
    assert "cooldown" not in settings["tenant"]


@pytest.mark.parametrize("value", [0, -1, -2.0])
def test_zero_and_less_of_all_else_means_the_default(value: float) -> None:
    others = {key: value for key, (_, may_be_off) in WHOLE.items() if not may_be_off}

    config = parse({"fairQueue": {**others, "maxSessions": value}})

    assert (config.base, config.max_sessions) == (parse({}).base, 10_000)


def test_a_weight_of_zero_and_less_is_1() -> None:
    weights = {"enabled": True, "baseWeight": 0, "weightPerWait": -1.5}

    assert with_queue(weightedScheduler=weights).base.terms.weighting == Weighting()


def test_a_cleanup_every_0_seconds_is_off() -> None:
    assert not with_queue(cleanup={"intervalSeconds": 0}).cleanup.enabled
    assert not with_queue(cleanup={"enabled": False}).cleanup.enabled
    assert with_queue(cleanup={"queueDepthZombieTtlSeconds": 0}).cleanup.ttl_s == 20


def test_a_whole_number_may_come_as_a_float() -> None:
    assert with_queue(maxSlotPerHost=4.0).base.settings["limit"] == 4


def test_an_answer_comes_before_its_client_gives_up() -> None:
    assert with_queue(pollWindowMs=30_000).base.window_s == 7.5


def test_nobody_is_waited_for_longer_than_its_place_is_kept() -> None:
    kept = with_queue(claimWindowMs=9_000, cleanup={"queueDepthZombieTtlSeconds": 3})

    assert kept.base.terms.claim_s == 3.0
    assert with_queue(claimWindowMs=9_000).base.terms.claim_s == 9.0


def test_how_long_a_breaker_stays_open_can_be_set() -> None:
    config = with_queue(throttleTimeWindowSeconds=15)

    assert policy_of("upstream", config.base.settings).breaker == BreakerRule(open_s=15.0)


def test_the_global_limit_has_two_names() -> None:
    assert with_queue(maxSessions=7).max_sessions == 7
    assert with_queue(globalMaxWaiters=500).max_sessions == 500
    assert with_queue(globalMaxWaiters=500, maxSessions=7).max_sessions == 7


def test_the_poll_interval_is_needed_for_the_weights_only() -> None:
    idle = with_queue(pollIntervalMs=500)
    used = with_queue(pollIntervalMs=500, profiles={"*": {"weightedScheduler": {"enabled": True}}})

    assert [note.partition(" ")[0] for note in idle.notes] == ["fairQueue.pollIntervalMs"]
    assert used.notes == ()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"fairQueue": {"maxSlotPerHost": "x"}},
         'fairQueue.maxSlotPerHost must be a whole number, not "x"'),
        ({"fairQueue": {"maxSlotPerIp": 1.5}},
         "fairQueue.maxSlotPerIp must be a whole number, not 1.5"),
        ({"fairQueue": {"maxWaitMs": True}},
         "fairQueue.maxWaitMs must be a whole number, not true"),
        ({"fairQueue": {"maxWaitMs": 10**400}}, "fairQueue.maxWaitMs must be at most 999999999"),
        ({"fairQueue": {"cleanup": {"enabled": 10**400}}},
         "fairQueue.cleanup.enabled must be true or false, not a number"),
        ({"fairQueue": {"weightedScheduler": {"baseWeight": float("nan")}}},
         "fairQueue.weightedScheduler.baseWeight must be a number, not NaN"),
        ({"fairQueue": []}, "fairQueue must be an object, not a list"),
        ({"fairQueue": {"profiles": {"a.com": 5}}},
         "fairQueue.profiles.a.com must be an object, not a number"),
        ({"auth": {"enabled": "yes"}}, 'auth.enabled must be true or false, not "yes"'),
        ({"backend": {"mode": "mysql"}}, 'backend.mode must be postgrest or postgres, not "mysql"'),
        (None, "the settings must be an object, not null"),
        ([], "the settings must be an object, not a list"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_its_path(document: Any, message: str) -> None:
    assert refused(document) == message


# ---------------------------------------------------------------------- addresses and keys


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", ("0.0.0.0", 8080)),
        ("127.0.0.1:9", ("127.0.0.1", 9)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
        ("  ", (None, None)),
    ],
)
def test_where_to_listen(text: str, address: tuple[str | None, int | None]) -> None:
    config = parse({"listen": text})

    assert (config.host, config.port) == address


@pytest.mark.parametrize("text", ["8080", "::1:80", ":http", ":65536", "a b:1", "http://a:1", ":"])
def test_where_nobody_can_listen(text: str) -> None:
    assert refused({"listen": text}).startswith("listen must be an address like")


def test_an_unknown_log_level_is_info() -> None:
    config = parse({"logLevel": "loud"})

    assert config.log_level == "info"
    assert config.notes == ('logLevel is debug, info, warn or error, not "loud"; info is taken.',)


def test_the_store_is_that_of_the_document_only_in_its_mode() -> None:
    dsn = "postgres://me:secret@db.example.com/slots"
    direct = {"backend": {"mode": "postgres", "postgres": {"dsn": dsn}}}

    assert parse(direct).dsn == dsn
    assert parse(direct).notes == ()
    assert parse({"backend": {"postgres": {"dsn": dsn}}}).dsn is None
    assert "backend.postgres.dsn must be" in refused({"backend": {"mode": "postgres"}})


def test_auth_needs_a_token_and_a_header_that_can_be_sent() -> None:
    assert "auth.token is empty" in refused({"auth": {"enabled": True, "token": " "}})
    assert "auth.header" in refused({"auth": {"header": "X Key"}})
    assert parse({"auth": {"header": ""}}).auth.header == "X-FQ-Auth"


def test_no_secret_is_in_a_repr_or_in_an_error() -> None:
    config = parse(DOCUMENT | {"backend": {**DOCUMENT["backend"], "mode": "postgres"}})
    secrets = ("the clients' key", "the operators' key", "the controller's key", "db-secret")

    assert set(config.secrets) == set(secrets[:3])
    assert config.dsn is not None
    assert not any(secret in repr(config) for secret in secrets)
    assert not any("secret" in note or "key" in note for note in config.notes)
    for wrong in (
        {"auth": {"token": ["the clients' key"]}},
        {"auth": "the clients' key"},
        {"internalApiToken": {"the": "operators' key"}},
        {"controller": {"url": "https://me:pass@c.example.com"}},
        {"controller": {"token": "a key\n"*2}},
        {"backend": {"mode": "postgres", "postgres": {"dsn": "host=db password=db-secret"}}},
    ):  # fmt: skip
        message = refused(wrong)
        assert not any(word in message for word in ("key", "db-secret", "me:pass"))


def test_the_controller_may_stand_flat_at_the_top() -> None:
    flat = parse({
        "controllerUrl": "http://c:1", "controllerApiToken": "t", "env": "e", "role": "r",
        "instanceId": "i", "appName": "n", "appVersion": "v",
    })  # fmt: skip
    nested = parse({
        "controller": {"url": "http://c:1/", "token": "t", "env": "e", "role": "r",
                       "instanceId": "i", "appName": "n", "appVersion": "v"},
    })  # fmt: skip

    assert flat.controller == nested.controller
    assert flat.controller.enabled
    assert flat.notes == nested.notes == ()


def test_what_stands_in_the_controller_goes_before_what_stands_flat() -> None:
    config = parse({"env": "flat", "appName": "flat", "controller": {"env": "nested"}})

    assert (config.controller.env, config.controller.app_name) == ("nested", "flat")
    assert config.notes == ()


def test_without_an_address_or_a_token_there_is_no_controller() -> None:
    alone = parse({"controller": {"url": "http://c:1", "apiToken": ""}})

    assert not alone.controller.enabled
    assert alone.notes == ("controller.token is not set, so no controller is asked.",)
    assert not parse({"controller": {"url": "", "apiToken": "t", "env": "e"}}).controller.enabled


@pytest.mark.parametrize(
    "url", ["c:1", "ftp://c", "http://", "http://u:p@c", "http://c?x", "http://c:99999", "http://["]
)
def test_an_address_that_leads_nowhere_is_refused(url: str) -> None:
    assert refused({"controller": {"url": url}}).startswith("controller.url must be an address")


@pytest.mark.parametrize("key", ["env", "role", "instanceId", "appName", "appVersion", "apiToken"])
def test_what_is_sent_in_a_header_must_fit_into_one(key: str) -> None:
    assert refused({"controller": {key: "a\r\nb: c"}}).startswith(f"controller.{key} is sent")


# ---------------------------------------------------------------------- unknown keys


def test_an_unknown_key_is_noted_and_does_no_harm() -> None:
    config = parse({"notes": "ours", "fairQueue": {"maxSlotsPerHost": 9}, "auth": {"key": 1}})

    assert config.base == parse({}).base
    assert set(config.notes) == {
        "notes is not known and has no effect.",
        "auth.key is not known and has no effect.",
        "fairQueue.maxSlotsPerHost is not known and has no effect; perhaps maxSlotPerHost is "
        "meant.",
    }


def test_a_flood_of_unknown_keys_is_not_a_flood_of_notes() -> None:
    notes = with_queue(**{f"x{number}": 1 for number in range(5_000)}).notes

    assert len(notes) == 11
    assert notes[-1].startswith("fairQueue has 4990 more keys")


# ---------------------------------------------------------------------- profiles


@pytest.fixture
def by_host() -> FairQueueConfig:
    return with_queue(
        maxSlotPerHost=1,
        maxSlotPerIp=9,
        cleanup={"queueDepthZombieTtlSeconds": 1},
        weightedScheduler={"enabled": True, "baseWeight": 3},
        profiles={
            "*.Example.com": {"maxSlotPerHost": 2},
            "*.cdn.example.com": {"maxSlotPerHost": 3, "weightedScheduler": {"weightPerWait": 7}},
            "files.example.COM": {"maxSlotPerHost": 4, "throttleTimeWindowSeconds": 5},
            "*.net": {"maxSlotPerHost": 5},
        },
    )


@pytest.mark.parametrize(
    ("hostname", "limit"),
    [
        ("example.org", 1),
        ("example.com", 1),
        ("notexample.com", 1),
        ("a.example.com", 2),
        ("A.EXAMPLE.COM", 2),
        ("cdn.example.com", 2),
        ("a.b.cdn.example.com", 3),
        ("Files.Example.com", 4),
        ("a.files.example.com", 2),
        ("x.y.net", 5),
        ("", 1),
        ("a." * 100_000 + "net", 1),
    ],
)
def test_the_pattern_that_says_most_about_a_host_wins(
    by_host: FairQueueConfig, hostname: str, limit: int
) -> None:
    assert by_host.profile(hostname).settings["limit"] == limit


def test_a_profile_says_only_what_is_different(by_host: FairQueueConfig) -> None:
    cdn, files = by_host.profile("a.cdn.example.com"), by_host.profile("files.example.com")

    assert cdn.terms.weighting == Weighting(base=3.0, per_wait=7.0, wait_s=0.5)
    assert cdn.terms.claim_s == files.terms.claim_s == 1.0
    assert (cdn.settings["breaker"], files.settings["breaker"]) == (True, {"open_for": "5s"})
    assert cdn.settings["tenant"]["limit"] == files.settings["tenant"]["limit"] == 9


def test_a_profile_is_made_once(by_host: FairQueueConfig) -> None:
    assert by_host.profile("a.example.com") is by_host.profile("b.example.com")


def test_a_star_is_for_all_that_nothing_else_names() -> None:
    config = with_queue(profiles={"*": {"maxSlotPerHost": 2}, "*.net": {"maxSlotPerHost": 3}})

    assert config.profile("a.com").settings["limit"] == 2
    assert config.profile("a.net").settings["limit"] == 3


def test_a_profile_can_switch_off_what_holds_for_all() -> None:
    config = with_queue(
        ipCooldownSeconds=5, maxWaitersPerHost=3,
        profiles={"a.com": {"ipCooldownSeconds": 0, "maxWaitersPerHost": 0}},
    )  # fmt: skip

    profile = config.profile("a.com")
    assert "cooldown" not in profile.settings["tenant"]
    assert profile.terms.max_waiters is None


@pytest.mark.parametrize("pattern", ["", "*.", "a.*.com", "**", "*com", "a b", "x" * 300])
def test_a_pattern_that_names_no_hosts_is_refused(pattern: str) -> None:
    assert "which names no hosts" in refused({"fairQueue": {"profiles": {pattern: {}}}})


def test_what_is_for_all_hosts_has_no_effect_in_a_profile() -> None:
    config = with_queue(profiles={"a.com": {"cleanup": {"enabled": False}, "maxSessions": 1}})

    assert (config.cleanup.enabled, config.max_sessions) == (True, 10_000)
    assert [note.partition(" ")[0] for note in config.notes] == [
        "fairQueue.profiles.a.com.cleanup",
        "fairQueue.profiles.a.com.maxSessions",
    ]


# ---------------------------------------------------------------------- from a controller


def test_what_a_controller_does_not_send_keeps_its_value() -> None:
    before = deepcopy(DOCUMENT)
    config = parse(DOCUMENT).updated(
        {
            "logLevel": "debug",
            "auth": {"token": "another key", "header": ""},
            "fairQueue": {
                "maxSlotPerHost": 3,
                "maxSlotPerIp": None,
                "weightedScheduler": {"baseWeight": 9},
                "profiles": {"a.com": {"maxSlotPerHost": 1}},
            },
        },
        "v7",
    )

    assert (config.config_version, config.log_level) == ("v7", "debug")
    assert (config.auth.header, config.auth.token) == ("X-Key", "another key")
    assert (config.base.settings["limit"], config.base.settings["tenant"]["limit"]) == (3, 2)
    assert config.base.terms.weighting == Weighting(base=9.0, per_wait=0.5, wait_s=0.25)
    assert config.profile("a.com").settings["limit"] == 1
    assert config.controller == parse(DOCUMENT).controller
    assert before == DOCUMENT


def test_a_second_update_goes_on_from_the_first() -> None:
    config = parse({}).updated({"fairQueue": {"maxSlotPerHost": 3}}, "v1")
    config = config.updated({"fairQueue": {"maxSlotPerIp": 2}}, "")

    assert (config.base.settings["limit"], config.base.settings["tenant"]["limit"]) == (3, 2)
    assert config.config_version == "v1"


def test_a_controller_may_send_the_keys_of_the_queue_directly() -> None:
    config = parse({}).updated(
        {"maxSlotPerHost": 3, "maxSlotPerIp": 2, "fairQueue": {"maxSlotPerIp": 4}}, "v1"
    )

    assert (config.base.settings["limit"], config.base.settings["tenant"]["limit"]) == (3, 4)


def test_a_controller_cannot_name_another_controller_or_open_the_internal_routes() -> None:
    config = parse(DOCUMENT).updated(
        {"controller": {"url": "http://evil.example.com"}, "internalApiToken": "mine"}, "v1"
    )

    assert config.controller == parse(DOCUMENT).controller
    assert config.internal_api_token == "the operators' key"
    assert [note.partition(" ")[0] for note in config.notes[:2]] == [
        "controller",
        "internalApiToken",
    ]


def test_what_a_controller_sends_is_checked_like_a_file() -> None:
    config = parse(DOCUMENT)

    for sent in ({"fairQueue": 5}, {"maxSlotPerHost": "x"}, {"auth": []}, [1]):
        with pytest.raises(BadSettings):
            config.updated(sent, "v1")  # type: ignore[arg-type]
    assert parse({}).updated({}, "v\r\n1").config_version == "v??1"


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("config.json", "", True),
        ("CONFIG.JSON", "[lane.default]", True),
        ("settings", "\ufeff \n\t{}", True),
        ("headway.toml", "[server]\nport = 1", False),
        ("empty", "", False),
    ],
)
def test_which_files_are_such_a_document(
    tmp_path: Path, name: str, text: str, expected: bool
) -> None:
    file = tmp_path / name
    file.write_text(text, "utf-8")

    assert is_fairqueue_config(file) is expected
    assert is_fairqueue_config(str(file)) is expected


def test_a_file_that_is_not_there_is_a_document_by_its_name_only(tmp_path: Path) -> None:
    assert is_fairqueue_config(tmp_path / "gone.json")
    assert not is_fairqueue_config(tmp_path / "gone.toml")


def test_a_file_may_begin_with_a_mark(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('\ufeff{"listen": ":1"}', "utf-8")

    assert load(file).port == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not a JSON file"),
        (b"\xff\xfe", "is not a JSON file"),
        (b"[" * 100_000, "is not a JSON file"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "is not a JSON file"),
        (b"null", "the settings must be an object, not null"),
        (b'{"listen": 5}', "listen must be text in quotes, not a number"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)

    with pytest.raises(BadSettings) as caught:
        load(file)
    assert str(file) in str(caught.value)
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"gone\.json cannot be read"):
        load(tmp_path / "gone.json")


# ---------------------------------------------------------------------- whatever comes


texts = st.text(st.characters(), max_size=20)  # with halves of pairs, which JSON can carry
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner),
    max_leaves=8,
)
numbers = st.none() | st.integers(-5, 10**9) | st.floats()


def some_of(values: st.SearchStrategy[Any], *keys: str) -> st.SearchStrategy[dict[str, Any]]:
    """An object with some of these keys, and sometimes something else altogether."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, values)) | anything


weights = some_of(numbers | st.booleans(), "enabled", "baseWeight", "weightPerWait", *PROBING)
queues = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(WHOLE, numbers),
        "weightedScheduler": weights,
        "cleanup": anything,
    },
)
documents = anything | st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("logLevel", "internalApiToken", "env"), texts),
        **dict.fromkeys(("listen", "controllerUrl", "rpc"), anything),
        "auth": some_of(texts | st.booleans(), "enabled", "header", "token"),
        "backend": some_of(texts | anything, "mode", "postgres"),
        "controller": some_of(texts, "url", "token", "apiPrefix", "env"),
        "fairQueue": queues
        | st.fixed_dictionaries({"profiles": st.dictionaries(texts, queues)})
        | anything,
    },
)


@given(documents, documents)
def test_whatever_comes_is_taken_or_refused(document: Any, sent: Any) -> None:
    try:
        config = parse(document).updated(sent, "v1")
    except BadSettings as error:
        str(error).encode()  # it can be written down
        return
    "".join(config.notes).encode()
    assert repr(config)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(WHOLE, st.integers(-5, 999_999_999))))
def test_every_profile_is_a_policy_that_the_engine_takes(queue: dict[str, Any]) -> None:
    profile = parse({"fairQueue": queue}).base

    policy = policy_of("upstream", profile.settings)
    assert policy.cap == profile.settings["limit"] >= 1
    assert policy.min_hold_s * 1000 == pytest.approx(max(queue.get("minSlotHoldMs", 0), 0))
    assert policy.tenant is not None
    assert policy.tenant.cooldown_s == max(queue.get("ipCooldownSeconds", 0), 0)
    assert policy.tenant.only == "ip:"
    assert 0 < profile.window_s <= 7.5
    assert min(profile.terms.lease_s, profile.terms.max_wait_s, profile.terms.claim_s) > 0
