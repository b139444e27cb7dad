"""Stand-in for AWS's session-manager-plugin: a session of the sandbox, between standard input and output.

Arguments as the AWS CLI gives them (awscli/customizations/sessionmanager.py): the answer of StartSession, or the name
of the variable that holds it, then region, StartSession, profile, parameters and endpoint. What it says goes to
standard output before the stream, and it ends with 0 whatever happens (session.go of aws/session-manager-plugin).
"""

import json
import os
import socket
import sys
import threading
from urllib.parse import urlsplit

if sys.argv[1:] == ["--version"]:
    print("1.2.764.0")
    sys.exit(0)

session = json.loads(os.environ.get(sys.argv[1]) or sys.argv[1])
print(f"\nStarting session with SessionId: {session['SessionId']}", flush=True)
url = urlsplit(session["StreamUrl"])
stream = socket.create_connection((url.hostname, url.port))
head = f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
stream.sendall(f"{head}X-Session-Token: {session['TokenValue']}\r\n\r\n".encode())
answer = b""
while not answer.endswith(b"\r\n\r\n"):
    byte = stream.recv(1)
    if not byte:
        break
    answer += byte
status = answer.decode().partition("\r\n")[0]
if " 101 " not in status:
    print(f"Cannot perform start session: {status or 'no answer'} (simulated)")
    sys.exit(0)


def send() -> None:
    try:
        while data := os.read(0, 65536):
            stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)
    except OSError:
        # The node went away; the end of its data says so.
        return


threading.Thread(target=send, daemon=True).start()
while data := stream.recv(65536):
    while data:
        data = data[os.write(1, data) :]
