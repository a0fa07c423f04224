"""Alerts as a receiver on loopback hears them: signed, once for each change, also when it was away;
and nothing secret in them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from headway.net.webhooks import new_secret
from tests.contract.calls_kit import OWN, Message, Receiver, receiver
from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually
from tests.servers import NewServer, Server

QUICK = {"alerts_look_every": "0.1s", "alerts_calm_after": "0.3s", "alerts_kinds": "upstream_*"}
TOKEN = "hook-token-canary"


def started(new_server: NewServer, ear: Receiver, **more: object) -> tuple[Server, str]:
    secret = new_secret()
    told = {**QUICK, "outbound_allow": OWN, "alerts_secret": secret,
            "alerts_url": f"{ear.url}?token={TOKEN}", **more}  # fmt: skip
    return new_server(**told), secret


def close(api: Api, name: str) -> None:
    """For so long that it is no cool-down; a ban is something to be told of."""
    kind = new_name()
    api.enqueue(kind, upstream=name)
    work = api.post("/api/work/take", {"types": [kind], "wait_ms": 10_000, "worker": "w"})["jobs"][
        0
    ]
    api.post(f"/api/work/{work['id']}/complete", {"fence": work["fence"], "status_code": 412})


def about(ear: Receiver, name: str) -> list[JSON]:
    return [each.said for each in list(ear.heard)
            if each.said.get("alert", {}).get("subject", {}).get("name") == name]  # fmt: skip


def is_signed(message: Message, secret: str) -> bool:
    headers = {name.lower(): value for name, value in message.headers.items()}
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + message.content
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_what_begins_and_ends_is_told_once_each_and_signed(new_server: NewServer) -> None:
    with receiver() as ear:
        server, secret = started(new_server, ear)
        with Api(server.url) as api:
            close(api, "angry.example")
            eventually(lambda: about(ear, "angry.example"))
            goes_on = eventually(lambda: [e for e in api.get("/api/alerts")["open"]
                                          if e["told_at"]])  # fmt: skip
            assert goes_on[0]["subject"]["name"] == "angry.example"
            api.post("/api/upstreams/angry.example/open")
            eventually(lambda: len(about(ear, "angry.example")) == 2)
            eventually(lambda: not api.get("/api/alerts")["open"])
            seen = api.get("/api/alerts")
        begins, ends = about(ear, "angry.example")
        assert (begins["type"], ends["type"]) == ("alert.begins", "alert.ends")
        assert begins["alert"]["text"].startswith("angry.example is closed")
        assert all(is_signed(each, secret) for each in ear.heard)
        assert (seen["receivers"][0]["told"], seen["signed"]) == (2, True)
        assert TOKEN not in str(seen)
        assert TOKEN not in server.printed()
        assert secret not in server.printed()


def test_a_restart_tells_nothing_twice(new_sqlite_server: NewServer) -> None:
    with receiver() as ear:
        server, _ = started(new_sqlite_server, ear)
        with Api(server.url) as api:
            close(api, "angry.example")
            eventually(lambda: [e for e in api.get("/api/alerts")["open"] if e["told_at"]])
        server.restart()
        with Api(server.url) as api:
            close(api, "other.example")
            eventually(lambda: about(ear, "other.example"))
            api.post("/api/upstreams/angry.example/open")
            eventually(lambda: len(about(ear, "angry.example")) == 2)
        assert [each["type"] for each in about(ear, "angry.example")] == [
            "alert.begins", "alert.ends",
        ]  # fmt: skip


def test_a_receiver_that_was_unwell_hears_all_of_it_later(new_sqlite_server: NewServer) -> None:
    with receiver((500, {}), (503, {"Retry-After": "0"})) as ear:
        server, _ = started(new_sqlite_server, ear)
        with Api(server.url) as api:
            close(api, "one.example")
            eventually(lambda: api.get("/api/alerts")["receivers"][0]["error"])
            close(api, "two.example")
            eventually(lambda: api.get("/api/alerts")["receivers"][0]["told"])
            eventually(lambda: not api.get("/api/alerts")["receivers"][0]["waiting"])
        taken = ear.heard[2:]
        texts = str([each.said for each in taken])
        assert "one.example" in texts
        assert "two.example" in texts
        ids = [each.headers.get("webhook-id") or each.headers["Webhook-Id"] for each in ear.heard]
        assert ids[0] == ids[1]  # the same message, as it was


def test_nobody_is_there_and_the_server_goes_on(new_sqlite_server: NewServer) -> None:
    with receiver() as ear:
        pass  # its port is free again
    server, _ = started(new_sqlite_server, ear)
    with Api(server.url) as api:
        close(api, "one.example")
        eventually(lambda: api.get("/api/alerts")["receivers"][0]["failing_since"])
        assert api.get("/api/info")["version"]
        said = api.post("/api/alerts/test")["items"]
        assert [each["ok"] for each in said] == [False]
        assert TOKEN not in str(said)


def test_many_at_once_are_a_few_messages_and_a_summary(new_sqlite_server: NewServer) -> None:
    with receiver() as ear:
        server, _ = started(new_sqlite_server, ear, alerts_per_minute=2)
        with Api(server.url) as api:
            for number in range(5):
                close(api, f"{number}.example")
            eventually(lambda: any(each.said["type"] == "alert.summary" for each in ear.heard))
        assert len(ear.heard) <= 4


def test_a_test_is_sent_at_once_and_is_in_the_audit_trail(new_sqlite_server: NewServer) -> None:
    with receiver() as ear:
        server, secret = started(new_sqlite_server, ear)
        with Api(server.url) as api:
            [said] = api.post("/api/alerts/test")["items"]
            assert (said["ok"], said["host"]) == (True, f"{OWN}:{ear.port}")
            assert api.get("/api/audit", limit=1)["items"][0]["event"] == "alerts_tested"
        assert ear.heard[0].said["type"] == "alert.test"
        assert is_signed(ear.heard[0], secret)


def test_without_a_receiver_nobody_is_told(new_sqlite_server: NewServer) -> None:
    server = new_sqlite_server(**QUICK)
    with Api(server.url) as api:
        assert api.get("/api/alerts")["receivers"] == []
        said = api.problem(409, "POST", "/api/alerts/test", "no-receiver")
        assert "HEADWAY_ALERTS_URL" in said["detail"]


def test_a_receiver_that_is_named_later_hears_of_what_still_goes_on(
    new_sqlite_server: NewServer,
) -> None:
    server = new_sqlite_server(**QUICK)
    with Api(server.url) as api:
        close(api, "angry.example")
        [goes_on] = eventually(lambda: api.get("/api/alerts")["open"])
        assert goes_on["told_at"] is None
        close(api, "brief.example")
        eventually(lambda: len(api.get("/api/alerts")["open"]) == 2)
        api.post("/api/upstreams/brief.example/open")
        eventually(lambda: len(api.get("/api/alerts")["open"]) == 1)
        assert [each["told_at"] for each in api.get("/api/alerts")["open"]] == [None]
    server.stop()
    with receiver() as ear:
        server.environment |= {"HEADWAY_ALERTS_URL": ear.url, "HEADWAY_OUTBOUND_ALLOW": OWN}
        server.start()
        eventually(lambda: about(ear, "angry.example"))
        with Api(server.url) as api:
            eventually(lambda: api.get("/api/alerts")["open"][0]["told_at"])
        assert not about(ear, "brief.example")


def test_an_address_inside_is_refused_unless_it_is_allowed(new_sqlite_server: NewServer) -> None:
    """A name that leads there is refused when it is called."""
    with receiver() as ear:
        server = new_sqlite_server(alerts_url=f"http://localhost:{ear.port}/hook", **QUICK)
        with Api(server.url) as api:
            [said] = api.post("/api/alerts/test")["items"]
            assert not said["ok"]
            assert "may not be called" in said["error"]
        assert ear.heard == []


def test_an_address_that_may_not_be_called_is_told_before_the_first_alert(
    new_sqlite_server: NewServer,
) -> None:
    server = new_sqlite_server(alerts_url="http://10.1.2.3/hook", **QUICK)
    with Api(server.url) as api:
        [seen] = api.get("/api/alerts")["receivers"]
        assert "whoever runs this server can allow 10.1.2.3:80" in seen["error"]
