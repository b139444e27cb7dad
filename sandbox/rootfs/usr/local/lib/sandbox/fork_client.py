"""In place of the interpreter: a process that the fork server makes; where none listens, the interpreter itself.

    python -ES fork_client.py SOCKET [what an interpreter is given...]

Site-packages are not needed for this (-S), and cost most of its start.
"""

from __future__ import annotations

import array
import json
import os
import socket
import sys

_program, server, *arguments = sys.argv
link = socket.socket(socket.AF_UNIX)
try:
    link.connect(server)
except OSError:
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606
asked = json.dumps([arguments, dict(os.environ), os.umask(0o22)]).encode()
link.sendmsg([len(asked).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
link.sendall(asked)
answer = link.recv(16)
sys.exit(int(answer) if answer else 1)
