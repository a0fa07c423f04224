"""`headway demo`: everything there is to see, on this machine alone, until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headway.cli.printing import Output, facts

if TYPE_CHECKING:
    from headway.demo.world import World

SCREENS = (
    ("Overview", "what runs, waits and fails; videos.example closes now and then"),
    ("Upstreams", "412 and 429 with their countdowns; demo-large finds a limit that changes"),
    ("Requests", "why each of them waits, in which place, until when"),
    ("Slots", "ten tenants, one of them greedy: magpie has 24 clients and no more than its share"),
    ("Channels", "online calls, and batches on what they leave over; costs and budgets"),
    ("Feeds", "twelve feeds, new articles every few seconds"),
    ("Archive", "videos from a site for members"),
    ("Schedules, Audit", "what comes again, and what operators do every few seconds"),
)
NO_VIDEOS = "empty: it needs yt-dlp, which `pip install headway[media]` brings"


def demo(
    port: Annotated[int, typer.Option(help="Where the page is; 0 takes any that is free.")] = 8000,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep everything in this new directory, also afterwards."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="Stop by itself after so many.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Another one, another world.")] = 1,
    speed: Annotated[
        float, typer.Option(min=0.1, max=5, help="2: everything happens twice as fast.")
    ] = 1.0,
) -> None:
    """Show everything: a small world on loopback, with sites that push back, on every screen."""
    # Its code is a second of imports that no other command should wait for.
    from headway.demo.world import World  # noqa: PLC0415

    output = Output(False)
    world = World(port=port, seed=seed, speed=speed, directory=keep)
    with told_to_stop(world):
        output.say("Starting a small world on this machine …")
        with world:
            _welcome(output, world, keep)
            world.wait(seconds)
    output.say("The demo has ended." if keep is None else f"The demo has ended; it is in {keep}.")


def _welcome(output: Output, world: World, keep: Path | None) -> None:
    output.say(Text.assemble("Headway is at ", (world.address, "bold cyan underline")))
    screens = [
        (name, NO_VIDEOS if name == "Archive" and not world.has_videos else what)
        for name, what in SCREENS
    ]
    output.console.print(facts(screens))
    where = "in a temporary directory" if keep is None else f"in {keep}"
    output.say(f"Nothing leaves this machine; all of it is {where}. Ctrl-C ends it.")


@contextmanager
def told_to_stop(world: World) -> Iterator[None]:
    """Ctrl-C and SIGTERM are how it ends, not something that goes wrong. While it ends, another
    one makes haste.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def tell(_number: int, _frame: object) -> None:
        if world.ending:
            world.hurry()
        else:
            raise KeyboardInterrupt

    before = {each: signal.signal(each, tell) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
