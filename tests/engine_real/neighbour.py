"""Another process on the same store: `python neighbour.py URL VERB [COUNT]`."""

import resource
import sys
import threading
import time

from headway import App
from headway.errors import EngineRunning

app = App(sys.argv[1])


@app.job()
def note(number: int) -> int:
    return number


def enqueue(count: int) -> None:
    """Each job on its own, from four threads at once."""

    def some() -> None:
        for number in range(count // 4):
            sys.stdout.write(f"{note.enqueue(number).id}\n")  # one write: `print` makes two

    threads = [threading.Thread(target=some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def enqueue_on_request() -> None:
    """One for each line that comes in; tells when it was acknowledged."""
    app.store  # noqa: B018 - opened before the first request
    print("ready", flush=True)
    for _ in sys.stdin:
        handle = note.enqueue(0)
        print(handle.id, app.now(), flush=True)


def cancel(count: int) -> None:
    """The first so many jobs."""
    for number in range(1, count + 1):
        app.cancel(number)


def engine() -> None:
    try:
        app.start()
    except EngineRunning as refused:
        print(refused)
        sys.exit(3)


def idle(seconds: int) -> None:
    """What an engine costs that has nothing to do; jobs wait in every way there is."""
    app.lane("shut", limit=0)
    app.upstream("slow.example.com", every="1h")
    note.options(delay="1h").enqueue(1)
    note.options(lane="shut").enqueue(2)
    note.options(upstream="slow.example.com").enqueue(3)
    note.options(upstream="slow.example.com").enqueue(4)
    app.schedule("hourly", note.call(5), "1h")
    app.start()
    assert app.engine is not None
    app.handle(3).wait(10)
    threading.Event().wait(0.5)
    turns = 0
    turn = app.engine.brain.turn

    def counted() -> float:
        nonlocal turns
        turns += 1
        return turn()

    app.engine.brain.turn = counted  # type: ignore[method-assign]
    cpu_s, began_at = time.process_time(), time.monotonic()
    threading.Event().wait(seconds)
    took_s = time.monotonic() - began_at
    print((time.process_time() - cpu_s) / took_s, turns, flush=True)
    app.stop()


def fill(count: int) -> None:
    for first in range(0, count, 10_000):
        app.enqueue_many(note.call(first + step) for step in range(min(10_000, count - first)))


def start(count: int) -> None:
    """Start on a store with so many jobs. Tells how long it took, and the most memory used."""
    app.lane("default", limit=0)
    began_at = time.monotonic()
    app.start()
    assert app.engine is not None
    between = threading.Event()
    while len(app.engine.brain.core.tickets) < count:
        between.wait(0.01)
    app.pause("all")  # it answers
    took_s = time.monotonic() - began_at
    print(took_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, flush=True)
    app.close()


if __name__ == "__main__":
    verb = globals()[sys.argv[2]]
    verb(*(int(each) for each in sys.argv[3:]))
