"""A site with a feed at every name: answers after 20 ms with 20 entries.

    python -m bench.feeds_site PORT [--entries 20] [--after-ms 20]

`/feed/N` is as it always was, `/edition` has the number of the edition in it, which
`/next` makes another one; `/etags` lets it send ETags. The text of an entry is about 1.5 KB.
"""

from __future__ import annotations

import argparse
import asyncio

import uvloop

WORDS = (
    "Background work at the pace its upstreams allow is what this sentence is about, and it goes "
    "on for a while so that there is <b>something</b> to clean, to store and to search. "
)


class Pages:
    def __init__(self, entries: int, after_s: float) -> None:
        self.entries = entries
        self.after_s = after_s
        self.edition = 1
        self.etags = False
        self.asked = 0

    def body(self, path: str) -> bytes:
        items = "".join(
            f"<item><title>Entry {number} of {path}</title>"
            f"<link>http://site.example{path}/{self.edition}/{number}</link>"
            f"<guid>{path}-{self.edition}-{number}</guid><author>somebody@site.example</author>"
            f"<pubDate>Mon, 16 Nov 2026 {number % 24:02}:00:00 GMT</pubDate>"
            f"<description><![CDATA[<p>{WORDS * 8}</p>]]></description></item>"
            for number in range(self.entries)
        )
        return (
            f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>{path}'
            f"</title><link>http://site.example</link><description>All news</description>{items}"
            "</channel></rss>"
        ).encode()


class Answering(asyncio.Protocol):
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard += data
        while b"\r\n\r\n" in self._heard:
            head, _, self._heard = self._heard.partition(b"\r\n\r\n")
            loop = asyncio.get_running_loop()
            loop.call_later(self._pages.after_s, self._answer, head)

    def _answer(self, head: bytes) -> None:
        pages, transport = self._pages, self._transport
        path = head.split(b" ", 2)[1].decode()
        pages.asked += 1
        if transport.is_closing():
            return
        etag = f'"{pages.edition}"'
        status, headers, body = "200 OK", "", b""
        match path:
            case "/next":
                pages.edition += 1
            case "/etags":
                pages.etags = True
            case _ if pages.etags and f"if-none-match: {etag}".encode() in head.lower():
                status = "304 Not Modified"
            case _:
                body = pages.body(path)
        if pages.etags:
            headers = f"ETag: {etag}\r\n"
        transport.write(  # type: ignore[attr-defined]
            f"HTTP/1.1 {status}\r\nContent-Type: application/rss+xml\r\n{headers}"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )


async def serve(port: int, pages: Pages) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(pages), "127.0.0.1", port, backlog=2_000)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int, nargs="?", default=0)
    parser.add_argument("--entries", type=int, default=20)
    parser.add_argument("--after-ms", type=float, default=20.0)
    args = parser.parse_args()
    uvloop.run(serve(args.port, Pages(args.entries, args.after_ms / 1000)))


if __name__ == "__main__":
    main()
