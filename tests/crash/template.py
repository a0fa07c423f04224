"""A warm process that forks one life after the other: `python -m tests.crash.template`.

It has imported everything and has no thread of its own, so that a fork is safe, and a life costs
milliseconds instead of the start of an interpreter. It reads one life a line, and answers with
the status that the life ended with.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from tests.crash.scenario import live


def main() -> None:
    for line in sys.stdin:
        url, directory, life, crash, producing = json.loads(line)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                point = None if crash is None else (crash[0], crash[1])
                live(url, Path(directory), life, point, producing=producing)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


if __name__ == "__main__":
    main()
