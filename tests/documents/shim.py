"""A command of the documents: asks the test to run it, and ends as it did. See `commands.py`.

It is started for each command, so it imports as little as it can.
"""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
    asking.connect(os.environ["HEADWAY_DOCUMENT_SOCKET"])
    order = {
        "command": sys.argv[1],
        "arguments": sys.argv[2:],
        "cwd": os.getcwd(),
        "environment": dict(os.environ),
    }
    socket.send_fds(asking, [json.dumps(order).encode()], [0, 1, 2])
    said = asking.recv(100)
sys.exit(int(said or b"1"))
