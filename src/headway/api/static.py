"""The files of the pages as they are sent: known ones only, compressed once, asked for again with a
word instead of a download.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response

from headway.api.problems import Problem

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Plain names in directories of plain names: nothing hidden, nothing above, nothing of Python.
NAME = re.compile(r"(?:[a-z][a-z0-9_-]*/)*[a-z][a-z0-9_-]*\.(html|css|js|svg)", re.ASCII)
LONGEST = 100  # characters of such a name


@dataclass(frozen=True, slots=True)
class File:
    kind: str
    plain: bytes
    packed: bytes
    tag: str  # of what is in it


def static_file(name: str, asked: Headers) -> Response:
    """`asked`: the headers of the request. A page is looked at again each time it is opened, so
    that a new version of the server never meets half of an old page.
    """
    known = len(name) <= LONGEST and NAME.fullmatch(name)
    found = files("headway.web").joinpath(*name.split("/")) if known else None
    if found is None or not found.is_file():
        raise Problem(404, f"there is no page {name!r}")
    # Inside of an archive nothing changes while it runs.
    file = _read(name, found.stat().st_mtime_ns if isinstance(found, Path) else 0)
    headers = {"Cache-Control": "no-cache", "ETag": file.tag, "Vary": "Accept-Encoding"}
    if file.tag in asked.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    packed = "gzip" in asked.get("accept-encoding", "") and len(file.packed) < len(file.plain)
    if packed:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if packed else file.plain, media_type=file.kind, headers=headers)


@lru_cache(maxsize=500)
def _read(name: str, changed_at: int) -> File:  # noqa: ARG001 - another time, another file
    plain = files("headway.web").joinpath(*name.split("/")).read_bytes()
    tag = f'"{hashlib.sha256(plain).hexdigest()[:20]}"'
    return File(TYPES[name.rpartition(".")[2]], plain, gzip.compress(plain, 9, mtime=0), tag)
