"""The stream of a session: TCP to the instance's port, in place of the WebSocket that AWS's plugin speaks."""

from __future__ import annotations

import socket
from typing import Any

from sandbox.emulator.access.policy import DeniedError
from sandbox.emulator.server.protocol import Start, answer_json
from sandbox.emulator.services import sessions
from sandbox.network import forward

TOKEN = "HTTP_X_SESSION_TOKEN"  # noqa: S105  # the name of a header
SECONDS = 10.0  # for a host to take the connection


def carry(environ: dict[str, Any], start: Start) -> list[bytes]:
    """Be a session's connection until both sides have ended it."""
    try:
        place = sessions.take(environ["PATH_INFO"].removeprefix(sessions.PATH), environ.get(TOKEN, ""))
    except DeniedError as error:
        return answer_json(start, "403 Forbidden", {"error": str(error)})
    if place is None:
        return answer_json(start, "403 Forbidden", {"error": "There is no such session."})
    try:
        target = socket.create_connection(place, timeout=SECONDS)
    except OSError as error:
        return answer_json(start, "502 Bad Gateway", {"error": f"{place[0]}:{place[1]}: {error}"})
    with target:
        target.settimeout(None)
        start("101 Switching Protocols", [("Upgrade", "tcp")])(b"")
        forward.join(environ["werkzeug.socket"], target)
    return []
