"""A page in the victim's browser: it can send requests to localhost, but not choose all headers."""

from __future__ import annotations

import json

import pytest

from tests.contract.kit import Api, listening, new_name
from tests.security.kit import Guarded, Wire, ask, send
from tests.servers import Server

JOB = b'{"type": "from-a-page"}'
FOREIGN = ("https://evil.example", "http://evil.example:{port}", "http://localhost:1",
           "https://localhost:{port}", "http://127.0.0.1:{port}", "http://localhost.evil.example",
           "http://localhost:{port}.evil.example", "null", "app://localhost")  # fmt: skip


def jobs_in(server: Server) -> int:
    with Api(server.url) as api:
        return int(api.get("/api/jobs", type="from-a-page")["total"])


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:{port}", "localhost.evil.example", "127.0.0.1.nip.io", "0.0.0.0",
    "localhost@evil.example", "", "[::]", "10.0.0.1", "localhost.", "[",
])  # fmt: skip
@pytest.mark.parametrize("path", ["/api/jobs", "/api/events", "/", "/openapi.json", "/healthz"])
def test_a_name_that_was_bound_to_loopback_leads_nowhere(
    open_server: Server, host: str, path: str
) -> None:
    answer = send(open_server.url, "GET", path, host=host.format(port=open_server.port))
    assert answer.status == 421
    assert json.loads(answer.body)["type"] == "wrong-host"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:{port}", "127.0.0.1:{port}", "[::1]"])
def test_its_own_names_are_known(open_server: Server, host: str) -> None:
    host = host.format(port=open_server.port)
    assert send(open_server.url, "GET", "/api/jobs", host=host).status == 200


def test_a_request_without_a_host_or_with_two_is_refused(open_server: Server) -> None:
    assert ask(open_server.url, b"GET /api/jobs HTTP/1.0\r\n\r\n").status == 421
    twice = b"GET /api/jobs HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n"
    assert ask(open_server.url, twice).status == 400


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_page_of_another_origin_cannot_do_anything(open_server: Server, origin: str) -> None:
    origin = origin.format(port=open_server.port)
    before = jobs_in(open_server)
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
        answer = send(open_server.url, "POST", "/api/jobs", JOB, origin=origin, content_type=kind)
        assert answer.status == 403
        assert json.loads(answer.body)["type"] == "wrong-origin"
    assert send(open_server.url, "POST", "/api/queue/pause", origin=origin).status == 403
    assert send(open_server.url, "DELETE", "/api/schedules/x", origin=origin).status == 403
    assert jobs_in(open_server) == before


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("path", ["/api/jobs", "/api/events", "/metrics", "/api/trail"])
def test_nor_read_anything(open_server: Server, origin: str, path: str) -> None:
    answer = send(open_server.url, "GET", path, origin=origin.format(port=open_server.port))
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_what_a_browser_says_of_a_page_counts(open_server: Server, site: str) -> None:
    """Browsers leave the origin out of images and scripts, which would occupy the streams."""
    url = open_server.url
    assert send(url, "POST", "/api/queue/resume", sec_fetch_site=site).status == 403
    for path in ("/api/events", "/api/jobs", "/static/style.css"):
        embedded = {"sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}
        assert send(url, "GET", path, sec_fetch_site=site, **embedded).status == 403
        framed = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}
        assert send(url, "GET", path, sec_fetch_site=site, **framed).status == 403
    linked = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert send(url, "GET", "/", sec_fetch_site=site, **linked).status == 200
    assert send(url, "POST", "/api/queue/resume", sec_fetch_site=site, **linked).status == 403


def test_our_own_page_and_programs_are_let_in(open_server: Server) -> None:
    with Wire(open_server.url) as wire:
        own = {"origin": f"http://{wire.host}", "sec_fetch_site": "same-origin"}
    assert send(open_server.url, "POST", "/api/queue/resume", **own).status == 200
    assert send(open_server.url, "POST", "/api/queue/resume", sec_fetch_site="none").status == 200
    assert send(open_server.url, "POST", "/api/queue/resume").status == 200
    assert send(open_server.url, "GET", "/api/jobs", **own).status == 200


def test_a_preflight_allows_nothing(open_server: Server) -> None:
    answer = send(open_server.url, "OPTIONS", "/api/jobs", origin="https://evil.example",
                  access_control_request_method="POST",
                  access_control_request_headers="authorization")  # fmt: skip
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("header", ["x_forwarded_for", "x_forwarded_host", "x_forwarded_proto",
                                    "x_real_ip", "forwarded", "via"])  # fmt: skip
def test_an_open_server_is_not_reached_through_a_proxy(open_server: Server, header: str) -> None:
    for path in ("/api/jobs", "/api/events", "/metrics"):
        answer = send(open_server.url, "GET", path, **{header: "10.1.2.3"})
        assert answer.status == 403
        assert json.loads(answer.body)["type"] == "proxy"


def test_a_page_cannot_use_the_cookie_of_its_visitor(guarded: Guarded) -> None:
    token = guarded.tokens["operator"]
    answer = send(guarded.url, "POST", "/login", f"token={token}".encode())
    cookie = answer.headers["set-cookie"].partition(";")[0]
    for origin in ("https://evil.example", "http://localhost:1", "null"):
        assert (
            send(guarded.url, "POST", "/api/jobs", JOB, cookie=cookie, origin=origin).status == 403
        )
        assert send(guarded.url, "GET", "/api/jobs", cookie=cookie, origin=origin).status == 403
        assert send(guarded.url, "GET", "/api/events", cookie=cookie, origin=origin).status == 403
        assert send(guarded.url, "POST", "/login", b"token=x", origin=origin).status == 403
        assert send(guarded.url, "POST", "/logout", cookie=cookie, origin=origin).status == 403
    assert send(guarded.url, "POST", "/api/queue/resume", cookie=cookie,
                sec_fetch_site="same-site").status == 403  # fmt: skip
    assert send(guarded.url, "POST", "/api/queue/resume", cookie=cookie).status == 200


def test_answers_tell_browsers_to_keep_them_apart(open_server: Server) -> None:
    with Api(open_server.url) as api:
        id = api.enqueue(new_name())
        paths = ["/", "/docs", "/login", "/static/style.css", "/api/jobs", f"/api/jobs/{id}",
                 "/api/jobs/0", "/nowhere", "/openapi.json", "/metrics", "/healthz"]  # fmt: skip
        seen = {path: api.http.get(path).headers for path in paths}
        with api.http.stream("GET", "/api/events") as answer:
            seen["/api/events"] = answer.headers
    for path, headers in seen.items():
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy, path
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert "form-action 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] in ("no-store", "no-cache"), path
        assert "server" not in headers
        if path.startswith("/api/") and path != "/api/events":
            assert headers["cache-control"] == "no-store", path
        assert headers["content-type"].partition(";")[0] != "text/html" or "/api" not in path


def test_the_live_stream_works_for_our_own_page(open_server: Server) -> None:
    with Api(open_server.url) as api:
        name = new_name()
        with listening(api, "/api/events") as stream:
            id = api.enqueue(name)
            api.post(f"/api/jobs/{id}/cancel")
            while stream.event()["data"]["job"] != id:
                pass


@pytest.mark.parametrize("name", [
    "../api/auth.py", "..%2fapi%2fauth.py", "%2e%2e%2f%2e%2e%2fpyproject.toml", "....//auth.py",
    "%00.html", "index.html%00.js", "__init__.py", ".hidden.html", "..", "%2e%2e", "C:%5cx.html",
    "%5c..%5cauth.py", "%ff.html", "a" * 5_000 + ".html", "style.css/", "//etc/passwd",
    "%252e%252e%252fauth.py",
])  # fmt: skip
def test_only_the_pages_of_the_server_can_be_had(open_server: Server, name: str) -> None:
    answer = send(open_server.url, "GET", f"/static/{name}")
    assert answer.status in (404, 422), answer.body
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("next_page", ["next", "url", "return_to", "redirect"])
def test_logging_in_leads_to_our_own_page_only(guarded: Guarded, next_page: str) -> None:
    token = guarded.tokens["operator"]
    for elsewhere in ("https://evil.example", "//evil.example", "/\\evil.example", "%0d%0aX:y"):
        form = f"token={token}&{next_page}={elsewhere}".encode()
        path = f"/login?{next_page}={elsewhere}"
        assert send(guarded.url, "POST", path, form).headers["location"] == "/"
        wrong = send(guarded.url, "POST", path, b"token=wrong")
        assert wrong.headers["location"] == "/login?failed=1"
        assert "set-cookie" not in wrong.headers
