"""Starts a program so that it ends with its parent. Run as a script, never imported.

Python has no safe hook between fork and exec in a process with threads, so this little program
is that hook: it asks the kernel to be killed when the engine dies, then becomes the real one.
"""

import contextlib
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    with contextlib.suppress(OSError, AttributeError):  # only Linux knows it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(126 if isinstance(error, PermissionError) else 127)


if __name__ == "__main__":
    main()
