"""Every place that reads data from outside: one row each, and a new one for each new parser."""

from __future__ import annotations

from functools import partial

import httpx2
import msgspec
from pydantic import ValidationError

from headway.api.problems import Problem
from headway.api.routes.learning import ImportBody
from headway.api.routes.schedules import ScheduleBody
from headway.api.slot_bodies import SlotsToReleaseBody, SlotWishBody
from headway.api.together.absence import ACQUIRE, reply_at
from headway.api.work_bodies import BeatsBody, CompletionsBody, HelloBody
from headway.apps.channels.batches.multipart import BadForm
from headway.apps.channels.batches.planning import Fault
from headway.apps.feeds.parsing.errors import FeedUnreadable
from headway.apps.feeds.parsing.messages import answer_in
from headway.cli.importing import _UNFIT
from headway.errors import BadSettings, HeadwayError, SealedElsewhere, StoreError
from headway.net.outbound import Refused
from headway.remote.address import checked_addresses
from headway.remote.answers import problem_of
from headway.store.holder import Holder
from headway.store.postgres.address import parse as parse_dsn
from headway.store.postgres.marks import Mark
from tests.fuzz import app_reading as app
from tests.fuzz import reading
from tests.fuzz.target import Target, in_text

JSON = (b'{"', b'": ', b"null", b"true", b"1e999", b"-1", b'"\\ud800"', b"[[", b"{}", b'"\\u0000"')
JWT = b"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo5OTk5OTk5OTk5fQ."
RSS = (
    b'application/xml\n<rss version="2.0"><channel><title>A</title><link>/x</link><item><guid>1'
    b"</guid><pubDate>Mon, 16 Nov 2026 10:00:00 GMT</pubDate><description>&lt;p onclick=x&gt;"
    b"</description></item></channel></rss>"
)
ATOM = (
    b'text/xml; charset=gbk\n<feed xmlns="http://www.w3.org/2005/Atom"><title type="html">A</title>'
    b"<entry><id>urn:1</id><link href='j'/><updated>2026-11-16T10:00:00+01:00</updated></entry>"
    b"</feed>"
)
JSON_FEED = (
    b'application/feed+json\n{"version": "https://jsonfeed.org/version/1.1", "title": "A", "items":'
    b' [{"id": 1, "content_html": "<script>", "date_published": "2026-11-16"}]}'
)
OPML = (
    b'<opml version="2.0"><body><outline text="News"><outline type="rss" xmlUrl="http://a.example/'
    b'f" text="A"/></outline></body></opml>'
)
FORM = (
    b"multipart/form-data; boundary=x\n--x\r\nContent-Disposition: form-data; "
    b'name="file"; filename="a"\r\n\r\n{}\r\n--x--\r\n'
)
NETSCAPE = (
    b"# Netscape HTTP Cookie File\n.video.example\tTRUE\t/\tTRUE\t1900000000\tsid\tabcdefgh\n"
)
LINE = (
    b'{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "a", '
    b'"messages": []}}'
)
PROGRESS = (
    b'{"kind": "progress", "done_bytes": 1, "total_bytes": 2, "speed": 3, "eta_s": 4, "parts": 2}'
)

TARGETS = (
    # What upstreams say.
    Target("rate-headers", reading.rate_headers, seeds=(
        b"x-ratelimit-limit-requests: 60\nx-ratelimit-reset-requests: 6m0s",
        b'ratelimit: "a";r=50;t=30\nratelimit-policy: "a";q=100;w=60',
        b"x-ratelimit-limit: 5000\nx-ratelimit-reset: 1800000100\nretry-after: 3",
    )),
    Target("retry-after", in_text(reading.retry_after), seeds=(
        b"120", b"Mon, 16 Nov 2026 10:00:00 GMT", b"Sunday, 06-Nov-94 08:49:37 GMT",
        b"Sun Nov  6 08:49:37 1994")),
    Target("provider-answer", reading.answer_of_provider, seeds=(
        b"retry-after: 1\n\n" + b'{"error": {"message": "no", "type": "x"}}',), words=JSON),
    Target("provider-stream", reading.stream_of_provider, (httpx2.RemoteProtocolError,), seeds=(
        b'data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: [DONE]\n\n',
        b'data: {"choi\xd3es": []}\n\n', b"data: " + b"[" * 3_000 + b"\n\n",
        b'data: {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}\r\n\r\n',
    ), words=JSON),
    # What people write.
    Target("duration", in_text(reading.duration), (ValueError,), seeds=(
        b"1h30m", b"1.5d", b"2w 3d", b"1w" + b" " * 2_000 + b"x")),
    Target("cron", in_text(reading.cron), (ValueError,), seeds=(
        b"0 3 * * MON-FRI|Europe/Berlin", b"*/7 * L * *", b"0 0 29 2 1#3")),
    Target("job-search", in_text(reading.job_search), (Problem,), seeds=(
        b'type:download status:failed,open error:"a b" id:1,2', b"created:>1h label:a=b word")),
    Target("costs-asked", in_text(reading.costs_asked), (ValueError,), seeds=(
        b"1.5|2026-01-31", b"1p|2026-01-31", b"nan|2026-01-31", b"1e999999|2026-01-31",
        b"1|9999-12-31", b"0.000000001|2026-01-31T10:00:00+02:00")),
    Target("export-line", in_text(reading.export_line), (*_UNFIT,), seeds=(
        b'{"kind": "headway-export", "format": 1}',
        b'{"kind": "job", "id": 1, "status": "queued", "schedule": null, "job": {"deadline": "x"}}',
    ), words=JSON),
    # HTTP.
    Target("depth", reading.depth, seeds=(b'{"a": [["[", "\\"]"]]}', b"[" * 60), words=JSON),
    Target("who-asks", in_text(reading.who_asks), seeds=(
        b"Bearer hw_ab_cd\nheadway=1.2.3; a=b\n[::1]:8000", b"GoogleLogin auth=hw_a_b\n;\nA:b")),
    Target("signed-token", in_text(reading.signed_token), (Problem,), seeds=(JWT, b"a.b.c")),
    Target("peer-header", reading.peer_header, seeds=(b"e30=.00", b"\xff.\xff")),
    Target("last-event", in_text(reading.last_event), (ValidationError,), seeds=(b"12",)),
    Target("job-body", reading.job_body, (ValidationError, Problem, HeadwayError), seeds=(
        b'{"type": "a", "args": {"x": 1}, "upstream": ["u"], "at": "2026-11-16T10:00:00Z"}',
        b'{"type": "a", "unique": {"key": "k", "while": "queued"}, "delay_s": 3}'), words=JSON),
    Target("schedule-body", reading.in_body(ScheduleBody), (ValidationError,), seeds=(
        b'{"name": "n", "every": "1h", "job": {"type": "a"}}',), words=JSON),
    Target("slot-wish", reading.in_body(SlotWishBody), (ValidationError,), seeds=(
        b'{"upstream": "u", "wait_s": 1, "lease_s": 10}',), words=JSON),
    Target("slots-to-release", reading.in_body(SlotsToReleaseBody), (ValidationError,), seeds=(
        b'{"slots": [{"id": 1, "fence": 2}]}',), words=JSON),
    Target("worker-hello", reading.in_body(HelloBody), (ValidationError,), seeds=(
        b'{"worker": "w", "types": [{"name": "a"}]}',), words=JSON),
    Target("worker-beats", reading.in_body(BeatsBody), (ValidationError,), seeds=(
        b'{"worker": "w", "jobs": [{"id": 1, "fence": 2}]}',), words=JSON),
    Target("worker-ends", reading.in_body(CompletionsBody), (ValidationError,), seeds=(
        b'{"worker": "w", "jobs": [{"id": 1, "fence": 2, "outcome": {"kind": "ok"}}]}',),
        words=JSON),
    Target("worker-notes", reading.notes, (ValueError, TypeError, msgspec.MsgspecError), seeds=(
        b'[null, "{}", [[1.0, "info", "text"]]]', b'[null, "' + b"[" * 3_000 + b'", []]'),
        words=JSON),
    Target("learned-import", reading.in_body(ImportBody), (ValidationError,), seeds=(
        b'{"items": [{"name": "u", "beliefs": {"rpm": 60}}]}',), words=JSON),
    Target("fairqueue-acquire", reading.acquire_body, (ValidationError, Problem), seeds=(
        b'{"hostname": "a.example", "ip": "1.2.3.4", "now": 1}',), words=JSON),
    Target("fairqueue-release", reading.release_body, (ValidationError,), seeds=(
        b'{"slotToken": "t", "hitUpstreamAtMs": 1e18, "now": 1800000000000}',), words=JSON),
    Target("fairqueue-absent", partial(reply_at, ACQUIRE), seeds=(
        b'{"queryToken": "t"}', b'{"queryToken\xa2": 1}')),
    Target("multipart", reading.form, (BadForm,), seeds=(FORM,), words=(
        b"--x", b"\r\n", b"Content-Disposition: form-data; name=", b"filename*=", b"--x--")),
    Target("batch-line", in_text(reading.batch_line), (Fault,), seeds=(LINE,), words=JSON),
    # Addresses and secrets.
    Target("address", in_text(reading.address), (ValueError, Refused), seeds=(
        b"https://a.example:8443/x?y#z", b"http://[::1]/", b"http://2130706433/",
        b"https://\xe4\xbe\x8b.example/\xc3\xa9", b"http://a@b:c@d/")),
    Target("opened-addresses", in_text(reading.opened_addresses), (BadSettings,), seeds=(
        b"10.0.0.0/8,a.example:80,[fd00::1]:443",)),
    Target("dsn", in_text(parse_dsn), (StoreError,), seeds=(
        b"postgresql://u:p@h:5432/d?schema=x&sslmode=require", b"postgresql:///d?host=/tmp")),
    Target("server-addresses", in_text(checked_addresses), (StoreError,), seeds=(
        b"http://a:8000,http://[::1]:1/x",)),
    Target("sealed", in_text(reading.sealed), (SealedElsewhere,), seeds=(
        b"hw1.0123456789ab.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",)),
    Target("vault-key", in_text(reading.key_of_vault), (BadSettings,), seeds=(b"A" * 43,)),
    Target("redaction", in_text(reading.redaction), seeds=(
        b"Authorization: Bearer hw_ab_cdefghijklmnop api_key=sk-abc https://u:p@h/?token=x",
        JWT, b'{"password": "x y"}'),
        words=(b"eyJ", b"token=", b"Bearer ", b"://", b"@", b"sk-", b"hw_", b"cookie:")),
    # What is stored, and settings.
    Target("holder", in_text(Holder.parse), seeds=(b'{"id": "a", "pid": 1}',), words=JSON),
    Target("mark", in_text(Mark.parse), (ValueError,), seeds=(b"1:2:1,2 3:4: 5 6",)),
    Target("stored-rule", in_text(reading.stored_rule),
        (ValueError, KeyError, TypeError, msgspec.MsgspecError), seeds=(
        b'{"cron": "0 3 * * *", "zone": "UTC"}', b'{"cron": {}, "zone": "UTC"}',
        b'{"every_s": 60, "anchor_at": 0, "jitter_s": 0, "growth": 2, "max_s": null, "seed": ""}'),
        words=JSON),
    Target("gate-settings", reading.gate_settings, (ValueError,), seeds=(
        b'{"limit": 2, "every": "1s", "burst": 3, "quiet": [["23:00", "06:00"]], "zone": "UTC"}',
        b'{"learn": {"rpm": 60, "max_concurrency": 3}, "breaker": {"window": "1m", "share": 0.5}}',
        b'{"tenant": {"limit": 1}, "cooldown": "5s", "hold": "1m", "per_minute": 30}'), words=JSON),
    Target("settings-file", reading.settings_file, seeds=(
        b'[server]\nport = 8000\nallowed_hosts = ["a"]\n[channel.a]\nmodel = "m"\nbase_url = '
        b'"https://a.example/v1"\n[media]\nworkers = 1\n[lane.a]\nlimit = 1\n',
        b"channel = 1\n", b"[channel]\na = 1\n", b"media = 1\n", b"server = 1", b"\xff",
        b"[server]\nmax_body = inf\n", b"[feeds]\nparsers = inf\n[alerts]\nper_minute = inf\n",
        b"[alerts]\nkinds = [1]\nsecret = 0x" + b"f" * 6_000, b"feeds = " + b"[" * 3_000)),
    Target("environment", in_text(reading.environment), seeds=(
        b"PORT=80\nMAX_BODY=inf\nMEDIA_ON=1\nLANE__a__limit=4\nUPSTREAM__b__every=2s",
        b"FEEDS_PARSERS=inf\nALERTS_PER_MINUTE=1e9\nALERTS_URL=https://a.example/x, ,y")),
    Target("fairqueue-config", reading.fairqueue_config, (BadSettings, ValueError), seeds=(
        b'{"listen": ":8080", "auth": {"enabled": true, "token": "t"}, "fairQueue": {"maxSlotPer'
        b'Host": 3, "profiles": {"*.example": {"maxSlotPerIp": 1}}, "cleanup": {}}}',),
        words=(*JSON, b'"fairQueue"', b'"profiles"', b'"controller"', b'"backend"')),
    # Feeds and reader apps.
    Target("feed", app.feed_document, (FeedUnreadable,), seeds=(RSS, ATOM, JSON_FEED), words=(
        b"<!DOCTYPE", b"<!ENTITY", b"<![CDATA[", b"]]>", b"&#x0;", b"<item>", b"xml:base=", b"<?")),
    Target("charset", app.charset, seeds=(
        b'text/html; charset=utf-7\n<meta charset="gbk">\xc4\xe3', b"\n\xff\xfea\0", b"\n\x1b$B")),
    Target("html", in_text(app.html), seeds=(
        b"<p onclick=x>a<a href='java\tscript:x'>b</a><img src=x width=1 height=1>",
        b"<svg><style><img src=x onerror=y>", b"<math><mi//xlink:href='data:x,<script>'>"),
        words=(b"<script", b"<style>", b"onerror=", b"javascript:", b"<!--", b"-->", b"<![CDATA[")),
    Target("page", app.page, seeds=(
        b'<link rel="alternate" type="application/rss+xml" href="/f"><base href="http://[">',
        b"<![if x]><a href='feed:x'>")),
    Target("opml", app.opml, (ValueError,), seeds=(OPML,), words=(b"<!ENTITY", b"<outline ")),
    Target("date", in_text(app.date_of_entry), seeds=(
        b"2026-11-16T10:00:00+01:00", b"20261116", "2026年11月16日 10:00".encode())),
    Target("caching", app.caching, seeds=(
        b"cache-control: max-age=60, s-maxage=9\nage: 3\netag: W/\"a\"",
        b"expires: Mon, 16 Nov 2026 10:00:00 GMT\ndate: x")),
    Target("links", in_text(app.links), seeds=(b"http://[", b"//a.example/x?utm_source=1#y", b"/a"),
        words=(b"http://", b"feed:", b"[", b"]", b"@", b":99999")),
    Target("article-search", in_text(app.article_search), seeds=(
        b'a "b c" -d e*', b"\xe4\xbd\xa0")),
    Target("article-rule", app.article_rule, (msgspec.MsgspecError, UnicodeError), seeds=(
        b'{"name": "n", "actions": ["read"], "conditions": [{"text": "a"}]}',), words=JSON),
    Target("article-body", app.article_body, (ValidationError, ValueError), seeds=(
        b'{"title": "t", "url": "https://a.example/1", "content": "<p>", "published_at": 1}',),
        words=JSON),
    Target("article-place", in_text(app.place_in_list), (ValueError,), seeds=(
        b"1.5_3", b"12", b"0001-01-01", b"9999-12-31T23:59:59-23:59")),
    Target("reader-ids", in_text(app.reader_ids), seeds=(
        b"tag:google.com,2005:reader/item/000a000000000001", b"-17", b"user/-/label/a", b"feed/1")),
    Target("reader-form", app.reader_form, (Problem,), seeds=(
        b"s=feed/1&i=1&n=20&ot=1e3&nt=1700000000000000", b"i=%ff", b"ot=nan")),
    Target("parser-answer", answer_in, (msgspec.MsgspecError,), seeds=(b"\x82\xa4kind\xa6parsed",)),
    # The archive.
    Target("cookies", in_text(app.cookies), (ValueError,), seeds=(
        NETSCAPE, b"sid=abcdefgh; other=1", b'[{"name": "sid", "value": "v", "domain": '
        b'".video.example", "expirationDate": 1e300}]'), words=(b"\t", b"#HttpOnly_", *JSON)),
    Target("account-site", in_text(app.site_of_account), (ValueError,), seeds=(b"www.A.example.",)),
    Target("fetcher-order", app.order, (ValueError, TypeError), seeds=(
        b'{"task": "list", "url": "https://a.example/", "user_agent": "u", "filters": {}}', b'""'),
        words=JSON),
    Target("fetcher-line", in_text(app.line_of_program), (ValueError,), seeds=(
        PROGRESS, b'{"kind": "end", "ok": false, "failure": {"kind": "network", "retry_after": 3}}',
        b'{"kind": "progress", "done_bytes": 1e999, "eta_s": 1e999, "total_bytes": "x"}'),
        words=JSON),
    Target("video-info", app.info, (ValueError,), seeds=(
        b'{"id": "a", "title": "t\\u0000", "upload_date": "20261116", "tags": ["x"], "duration": 3,'
        b' "thumbnail": "file:' + b'//x", "timestamp": 1e308}',), words=JSON),
    Target("info-file", app.info_file, seeds=(b'{"headway": {}, "id": "a"}',), words=JSON),
    Target("file-name", in_text(app.name_of_file), (ValueError,), seeds=(
        b"{site}/{title:.5}/{id}\n../../etc", b"{date}\ncon.mp4", b"{title}\n\xf0\x9f\x91\xa9")),
    Target("video-filters", app.filters, (ValueError, TypeError), seeds=(
        b'{"title_has": ["a"], "min_duration_s": 1, "after": 1e999}',), words=JSON),
    Target("file-range", in_text(app.range_of_file), seeds=(b"bytes=0-1", b"bytes=-5")),
    Target("podcast", app.podcast, seeds=(b"a\x00\xef\xbf\xbe<b>\nhttps://a.example/",)),
    Target("server-problem", lambda data: problem_of(reading.answer_of_server(data)), seeds=(
        b'{"type": "x", "detail": "d", "status": 500}', b'{"\xa2": 1}', b'{"a": ' + b"[" * 3_000),
        words=JSON),
)  # fmt: skip

BY_NAME = {target.name: target for target in TARGETS}
