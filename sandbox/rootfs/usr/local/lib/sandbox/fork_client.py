"""In place of the interpreter: a process that the fork server makes; where none listens, the interpreter itself.

    python -ES fork_client.py SOCKET [what an interpreter is given...]

It imports as little as it can, since it is started for each module: no site-packages (-S), and of sockets and systems
the parts in C, of which everything else is made.
"""

import _socket
import posix
import sys

_program, server, *arguments = sys.argv
link = _socket.socket(_socket.AF_UNIX)
try:
    link.connect(server)
except OSError:
    posix.execv(sys.executable, [sys.executable, *arguments])
# As the server reads them: the mask, the number of arguments, these and the variables.
words = [b"%d" % posix.umask(0o22), b"%d" % len(arguments)]
words += [word.encode(sys.getfilesystemencoding(), "surrogateescape") for word in arguments]
words += [name + b"=" + value for name, value in posix.environ.items()]
asked = b"\0".join(words)
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
link.sendmsg([len(asked).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
link.sendall(asked)
answer = link.recv(16)
sys.exit(int(answer) if answer else 1)
