"""The whole of it: sites, server and scripts, from their beginning to their end."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType

from headway.demo import videos
from headway.demo.crowd import Crowd
from headway.demo.feeds import FeedSites, Reader
from headway.demo.models import Models, Providers
from headway.demo.operators import Operators
from headway.demo.server import CannotShow, Server, check_port, settings_text
from headway.demo.sites import open_sites
from headway.demo.stage import Stage, chance_of, logger, play
from headway.demo.town import Town
from headway.demo.traffic import Traffic

LOOK_S = 0.5
END_S = 5.0


class World:
    """`with World(...) as world:`. It lives in `directory`, or in one that goes when it ends."""

    def __init__(
        self, *, port: int, seed: int, speed: float = 1.0, directory: Path | None = None
    ) -> None:
        check_port(port)
        if directory is not None and not _is_new(directory):
            raise CannotShow(f"{directory} is in use; name a new directory with --keep")
        self.address = ""
        self.ending = False
        self.has_videos = videos.is_installed()
        self._port = port
        self._seed = seed
        self._speed = speed
        self._directory = directory
        self._server: Server | None = None
        self._ending = ExitStack()
        self._loop: asyncio.AbstractEventLoop
        self._town = Town()

    def __enter__(self) -> World:
        try:
            self._begin()
        except BaseException:
            self.ending = True
            self._ending.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.ending = True
        self._ending.close()

    def wait(self, seconds: float | None) -> None:
        """For so long, or for ever. CannotShow: the server has ended by itself."""
        assert self._server is not None
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            left_s = LOOK_S if until is None else min(LOOK_S, max(0.0, until - time.monotonic()))
            if self._server.over.wait(left_s):
                raise CannotShow(f"the server has ended: {self._server.last_words()}")

    def hurry(self) -> None:
        """Whoever asks twice does not want to wait."""
        if self._server is not None:
            self._server.kill()

    # ------------------------------------------------------------------ beginning

    def _begin(self) -> None:
        """Each part is there before what needs it, and ends after that."""
        directory = self._made_directory()
        self._ending.enter_context(_Log(directory / "demo.log"))
        chance, now = partial(chance_of, self._seed), time.time()
        sites = open_sites(self._town, chance, self._speed)
        feed_sites = FeedSites(self._town, chance("feed sites"), now)
        video_site = videos.VideoSite(self._town, chance("video site"), now, self._speed)
        providers = Providers()
        self._ending.callback(providers.stop)
        self._serve_sites()
        allowed = [*feed_sites.hosts, video_site.host]
        library = directory / "library" if self.has_videos else None
        text = settings_text(allowed, library, {video_site.host: videos.PACE})
        self._server = server = Server(directory, self._port, text)
        self._ending.callback(server.stop)
        providers.start()
        self.address = server.address()
        stage = Stage(self.address, self._seed, self._speed)
        scripts = asyncio.run_coroutine_threadsafe(
            self._play(stage, sites, feed_sites, video_site, Models(stage, providers)), self._loop
        )
        self._ending.callback(scripts.cancel)

    def _made_directory(self) -> Path:
        if self._directory is None:
            made = Path(tempfile.mkdtemp(prefix="headway-demo-"))
            self._ending.callback(shutil.rmtree, made, ignore_errors=True)
            return made
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotShow(f"{self._directory} cannot be made: {error.strerror}") from error
        return self._directory.resolve()

    def _serve_sites(self) -> None:
        """On a thread of their own, with all scripts."""
        self._loop = asyncio.new_event_loop()
        self._loop.create_task(self._town.serve())
        thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="demo")
        thread.start()

        def end() -> None:
            asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result(END_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(END_S)
            self._loop.close()

        self._ending.callback(end)

    async def _end_all(self) -> None:
        self._town.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _play(
        self, stage: Stage, sites: dict[str, str], feed_sites: FeedSites,
        video_site: videos.VideoSite, channels: Models,
    ) -> None:  # fmt: skip
        operators = Operators(stage, sites)
        await play(stage, "operators", operators.prepare)
        scripts = {
            "jobs": Traffic(stage, sites).flow, "operators": operators.look_after,
            "slots": Crowd(stage).gather, "channels": channels.run,
            "feeds": Reader(stage, feed_sites).read,
        }  # fmt: skip
        if self.has_videos:
            scripts["archive"] = videos.Archivist(stage, video_site).collect
        try:
            async with asyncio.TaskGroup() as everything:
                for name, script in scripts.items():
                    everything.create_task(play(stage, name, script))
        except Exception:
            logger.exception("the demo has stopped moving")
        finally:
            await stage.close()


def _is_new(directory: Path) -> bool:
    return not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))


class _Log:
    """What goes wrong in the demo itself is for its file, not for the terminal."""

    def __init__(self, file: Path) -> None:
        self._handler = logging.FileHandler(file, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))

    def __enter__(self) -> None:
        logger.addHandler(self._handler)
        logger.propagate = False

    def __exit__(self, *_: object) -> None:
        logger.removeHandler(self._handler)
        self._handler.close()
