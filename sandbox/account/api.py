"""Client of the emulator's control API: hosts to run, calls seen, faults and capacity."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import Any

from sandbox.account import token
from sandbox.errors import SandboxError
from sandbox.paths import Paths

HOST = "127.0.0.1"
PORT = 5199


def endpoint() -> str:
    """The URL that AWS clients use."""
    return f"http://{HOST}:{PORT}"


def request(path: str, body: Any = None, method: str | None = None, timeout: float = 30) -> Any:
    """Call ``/sandbox-api/PATH``; ``body`` is sent as JSON, and the JSON answer is returned.

    Raises:
        SandboxError: the emulator does not answer or refuses.
    """
    data = None if body is None else json.dumps(body).encode()
    call = urllib.request.Request(  # noqa: S310  # always http to the loopback address
        f"{endpoint()}/sandbox-api/{path}",
        data=data,
        method=method or ("GET" if data is None else "POST"),
        headers={"Content-Type": "application/json", token.HEADER: word()},
    )
    try:
        with urllib.request.urlopen(call, timeout=timeout) as answer:  # noqa: S310
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        raise SandboxError(f"The emulator refused '{path}': {text.strip()[:300] or error}.") from error
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise SandboxError(
            f"The emulator does not answer at {endpoint()} ({reason}): start it with 'python -m sandbox up'."
        ) from error


def word() -> str:
    """The word that control calls must know; another one after each start, and empty where nothing was started.

    Raises:
        SandboxError: the file is somebody else's.
    """
    path = Paths.from_environment().token
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except PermissionError as error:
        raise SandboxError(f"{path} is not yours to read: run this as the user who started the sandbox.") from error


def taken() -> bool:
    """Whether any program listens at the endpoint."""
    try:
        with socket.create_connection((HOST, PORT), timeout=2):
            return True
    except OSError:
        return False


def healthy() -> bool:
    """Whether the emulator of this sandbox answers."""
    try:
        request("health", timeout=2)
    except SandboxError:
        return False
    return True
